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
