"""A real browser for tests of pages: Chromium without a window."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from selenium.webdriver import Chrome, ChromeOptions, ChromeService

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1200,900",
]


def found(*names: str) -> str:
    """The program of one of these names; the test is skipped where there is none."""
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        pytest.skip(f"{names[0]} is not installed: the page was not opened in a browser")
    return path


@contextmanager
def chromium(profile: Path) -> Iterator[Chrome]:
    """A browser that keeps its profile in a directory, and logs what it asks for."""
    options = ChromeOptions()
    options.binary_location = found("chromium", "chromium-browser", "google-chrome")
    driver = found("chromedriver")
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    logged = {"browser": "ALL", "performance": "ALL"}
    options.set_capability("goog:loggingPrefs", logged)
    with Chrome(options, ChromeService(driver)) as chrome:
        chrome.get("about:blank")  # Chromium's own page for a new tab asks for much
        yield chrome


ELSEWHERE = "http://127.0.0.1:9/x"
TRIED = {  # what a stranger's code would do in a page, by the directive that refuses it
    "script-src-elem": "make('script', {textContent: 'document.title = \"owned\"'})",
    "script-src-attr": "make('div').setAttribute('onclick', 'document.title = \"owned\"')",
    "script-src": "setTimeout(() => Function('document.title = \"owned\"')())",
    "style-src-elem": "make('style', {textContent: 'body {color: red}'})",
    "style-src-attr": "make('p').setAttribute('style', 'color: red')",
    "connect-src": "fetch(elsewhere).catch(() => 0)",
    "img-src": "make('img', {src: elsewhere})",
    "media-src": "make('audio', {src: elsewhere})",
    "font-src": "new FontFace('x', `url(${elsewhere})`).load().catch(() => 0)",
    "frame-src": "make('iframe', {src: elsewhere})",
    "object-src": "make('object', {data: elsewhere})",
    "worker-src": "new Worker('data:text/javascript,0')",
    "base-uri": "make('base', {href: elsewhere})",
    "form-action": "make('form', {action: elsewhere}).submit()",
}


def let_in(chrome: Chrome) -> set[str]:
    """What of all that is not refused by the policy of the page that is open."""
    tries = ", ".join(f"() => {each}" for each in TRIED.values())
    refused = chrome.execute_async_script(
        f"""
        const done = arguments[0], elsewhere = "{ELSEWHERE}", refused = [];
        document.addEventListener("securitypolicyviolation",
            (event) => refused.push(event.effectiveDirective));
        const make = (tag, given = {{}}) => {{
            const made = Object.assign(document.createElement(tag), given);
            document.body.append(made);
            return made;
        }};
        for (const each of [{tries}]) try {{ each(); }} catch {{ }}
        setTimeout(() => done(refused), 300);"""
    )
    chrome.get_log("browser")  # what was refused is told there, and is no mistake of ours
    return TRIED.keys() - set(refused)
