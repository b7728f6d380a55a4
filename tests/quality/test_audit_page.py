"""The audit's page in a real browser: Chromium without a window."""

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select, WebDriverWait

from tests.chromium import chromium, let_in
from tests.conftest import ROOT
from tests.quality.audits import HOSTILE, an_audit
from wscpml.quality import audit, diff, issues

PATIENCE = 20  # seconds


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("profile")) as chrome:
        yield chrome


class Page:
    """The page in the browser, and what a person would do with it."""

    def __init__(self, browser: Chrome, folder: Path, made: audit.Audit) -> None:
        self.browser, self.folder, self.audit = browser, folder, made
        file = folder / "audit.html"
        file.write_text(audit.render(made), encoding="utf-8")
        self.address = file.as_uri()
        for kind in ("browser", "performance"):
            browser.get_log(kind)  # what is of other pages
        browser.execute_cdp_cmd(
            "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(folder)}
        )
        browser.get(self.address)
        self.wait_for_the_map()

    def wait_for_the_map(self) -> None:
        """It is drawn in the frame after its size is known, and once more if a bar changes that."""
        frames = "const done = arguments[0], next = requestAnimationFrame;"
        self.browser.execute_async_script(frames + "next(() => next(() => next(() => done())));")

    def all(self, selector: str):
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector: str):
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def rows(self) -> list[list[str]]:
        """The rows of the suspicious tags that are in the page now, as text."""
        script = """return [...document.querySelectorAll("#table-tags tbody tr")]
            .map((row) => [...row.cells].map((cell) => cell.textContent))"""
        return self.browser.execute_script(script)

    def all_rows(self) -> list[list[str]]:
        """The same for this page of the table and all after it."""
        rows = self.rows()
        while (after := self.button("Next")).is_enabled():
            after.click()
            rows += self.rows()
        return rows

    def button(self, text: str):
        (found,) = [b for b in self.all("#table-tags .controls button") if b.text == text]
        return found

    def sort_by(self, title: str) -> str:
        """Press a column's header; returns how the browser tells of its order."""
        for header in self.all("#table-tags th"):
            if header.text.startswith(title):
                header.find_element(By.TAG_NAME, "button").click()
                return header.get_attribute("aria-sort")
        raise AssertionError(title)

    def download(self) -> list[list[str]]:
        file = self.folder / "suspicious_tags.csv"
        file.unlink(missing_ok=True)
        self.button("Download CSV").click()
        WebDriverWait(self.browser, PATIENCE).until(lambda _: file.exists())
        with file.open(encoding="utf-8", newline="") as text:
            return list(csv.reader(text))

    def events(self, name: str) -> list[dict[str, Any]]:
        """What the browser tells of its network since it was last asked."""
        every = [json.loads(e["message"])["message"] for e in self.browser.get_log("performance")]
        return [event["params"] for event in every if event["method"] == f"Network.{name}"]


@pytest.fixture(scope="module")
def made():
    return an_audit()


@pytest.fixture
def page(browser, tmp_path, made):
    opened = Page(browser, tmp_path, made)
    yield opened
    assert browser.title == "A <b>title</b>: which tags are wrong"
    assert [e for e in browser.get_log("browser") if e["level"] in ("SEVERE", "WARNING")] == []
    asked = {event["request"]["url"] for event in opened.events("requestWillBeSent")}
    assert {url for url in asked if not url.startswith("blob:")} == {opened.address}


def test_every_suspicious_tag_is_there_the_worst_first(page):
    assert page.one("#table-tags th[aria-sort=ascending]").text.startswith("Confidence")
    rows = page.all_rows()
    issues = page.audit.issues
    assert [row[:2] for row in rows] == issues[["instance", "label"]].to_numpy().tolist()
    shown = [row[3:6] for row in rows]
    assert shown == issues[["nearest", "prototype_rank", "competing"]].astype(str).values.tolist()
    assert [float(row[2]) for row in rows] == pytest.approx(
        issues.label_confidence.tolist(), abs=6e-4
    )


def test_every_column_sorts_up_and_down(page):
    titles = [cell.text.rstrip(" ↕▲▼") for cell in page.all("#table-tags th")]
    assert len(titles) == 7
    for c, title in enumerate(titles):
        assert page.sort_by(title) == "ascending"
        once = page.all_rows()
        assert page.sort_by(title) == "descending"
        again = page.all_rows()
        assert sorted(once) == sorted(again)
        up, down = ([row[c] for row in rows] for rows in (once, again))
        assert up == down[::-1]
        assert up[0] != up[-1]
        if title in ("Confidence", "Rank of its prototype"):
            assert list(map(float, up)) == sorted(map(float, up))


def test_the_filters_leave_what_was_asked_for(page):
    issues = page.audit.issues
    label = HOSTILE[0]
    Select(page.one("#table-tags select")).select_by_visible_text(label)
    assert [row[0] for row in page.all_rows()] == issues[issues.label == label].instance.tolist()
    page.one("#table-tags input").send_keys("SONG 1")
    both = issues[(issues.label == label) & issues.instance.str.contains("song 1")]
    assert 0 < len(both) < (issues.label == label).sum()
    assert [row[0] for row in page.all_rows()] == both.instance.tolist()
    assert page.one("#table-tags [role=status]").text == f"1 to {len(both)} of {len(both)} rows"
    page.one("#table-tags input").send_keys("no such song")
    assert page.rows() == []
    assert not page.button("Download CSV").is_enabled()


def test_the_download_is_the_rows_that_are_left_in_their_order(page):
    page.one("#table-tags input").send_keys("song")
    page.sort_by("Instance")
    page.sort_by("Instance")
    shown = page.all_rows()
    header, *rows = page.download()
    assert header == [*page.audit.issues.columns, "truth"]
    assert 20 < len(rows) == len(shown) < len(page.audit.issues)
    for row, seen in zip(rows, shown, strict=True):
        texts = [row[c].removeprefix("'") for c in (0, 1, 3, 4, 5, 6)]
        assert texts == [seen[c] for c in (0, 1, 3, 4, 5, 6)]
        assert f"{float(row[2]):.3f}" == seen[2]


def test_a_spreadsheet_takes_no_cell_of_the_download_for_a_formula(page):
    _, *rows = page.download()
    cells = {cell for row in rows for cell in row}
    assert f"'{HOSTILE[2]}" in cells
    assert not [cell for cell in cells if cell.strip().startswith(("=", "+", "-", "@"))]


def test_numbers_as_ids_stay_as_they_are_in_the_download(browser, tmp_path, made):
    ids = ["-5", "+1.5e-3", "-5+cmd", "\t=1", "@x"]
    listed = made.issues.head(5).assign(instance=ids)
    changed = an_audit(with_truth=False)
    page = Page(browser, tmp_path, type(changed)(**(vars(changed) | {"issues": listed})))
    _, *rows = page.download()
    assert [row[0] for row in rows] == ["-5", "+1.5e-3", "'-5+cmd", "'\t=1", "'@x"]


def test_hostile_names_are_shown_as_text(page):
    assert page.all("img") == []
    assert len(page.all("script")) == 2
    body = page.one("body").get_attribute("textContent")
    for name in HOSTILE[:4]:
        assert name in body
    assert page.one("h1").text == "A <b>title</b>: which tags are wrong"


def test_the_map_shows_the_instances_of_a_label(page):
    def legend():
        script = """return [...document.querySelectorAll("#map-of-instances .legend li")]
            .map((item) => item.innerText)"""
        return page.browser.execute_script(script)  # at once: it is drawn again with each size

    suspicious = (page.audit.candidates == 1) & (page.audit.label_confidence < 0.5)
    assert legend()[1] == f"some suspicious tag ({suspicious.any(axis=1).sum()})"
    assert len(page.all("#map-of-instances .plot .prototype")) == 5  # one label has no instance
    Select(page.one("#map-of-instances select")).select_by_visible_text(HOSTILE[0])
    right = (page.audit.label_confidence[:, 0] >= 0.5).sum()
    assert legend()[1:3] == [
        f"tag probably right ({right})",
        f"tag suspicious ({suspicious[:, 0].sum()})",
    ]
    (name,) = page.all("#map-of-instances .plot text")
    assert name.text == HOSTILE[0][:29] + "…"


def test_the_map_zooms_in_on_the_prototypes(page):
    def across():
        """From the first prototype at the left to the last at the right, in shares of the map."""
        script = """const plot = document.querySelector("#map-of-instances .plot");
            const box = (each) => each.getBoundingClientRect();
            const found = [...plot.querySelectorAll(".prototype")].map(box);
            const left = Math.min(...found.map((each) => each.left));
            const right = Math.max(...found.map((each) => each.right));
            return (right - left) / box(plot).width"""
        return page.browser.execute_script(script)

    assert across() < 0.8
    page.one("#map-of-instances input").click()
    assert across() > 0.9


@pytest.mark.parametrize("width", [1200, 400])
def test_nothing_but_wide_tables_is_wider_than_the_window(page, width):
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    page.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        across = "return [document.documentElement.scrollWidth, window.innerWidth]"
        needed, there = page.browser.execute_script(across)
        assert there == width
        assert needed <= there
    finally:
        page.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_in_a_frame_that_downloads_nothing_the_page_says_what_to_do(browser, tmp_path, made):
    (tmp_path / "audit.html").write_text(audit.render(made), encoding="utf-8")
    frame = '<iframe sandbox="allow-scripts" width="1000" height="800" src="audit.html"></iframe>'
    (tmp_path / "outer.html").write_text(frame)
    browser.get((tmp_path / "outer.html").as_uri())
    browser.switch_to.frame(browser.find_element(By.TAG_NAME, "iframe"))
    try:
        told = browser.find_element(By.CSS_SELECTOR, "#table-tags .controls").text
        assert "To download the table, download this page and open it by itself." in told
        assert "Download CSV" not in told
    finally:
        browser.switch_to.default_content()


def test_missing_tags_are_shown_the_likeliest_first(browser, tmp_path, made):
    missing = (made.candidates == 0) * np.linspace(0.1, 0.6, len(made.candidates))[:, None]
    listed = issues.find_missing(missing, made.evidence, made.label_names, made.instances, limit=5)
    page = Page(browser, tmp_path, replace(made, missing=listed))
    shown = [cell.text for cell in page.all("#table-missing tbody tr td:nth-child(3)")]
    assert [float(each) for each in shown] == pytest.approx(listed.probability, abs=1e-3)


def test_the_page_of_a_difference_is_filtered_by_change_and_by_label(browser, tmp_path):
    pairs = [(f"song {i}", HOSTILE[i % 2]) for i in range(30)]
    sides = []
    for name, confidence in (("then", [0.9] * 30), ("now", [0.1] * 10 + [0.7] * 20)):
        table = pd.DataFrame(pairs, columns=["instance", "label"])
        table = diff.candidates(table.assign(label_confidence=confidence), name)
        sides.append(diff.Version(name, table))
    file = tmp_path / "difference.html"
    file.write_text(diff.render(diff.compare(*sides)), encoding="utf-8")
    browser.get_log("browser")
    browser.get(file.as_uri())

    def told(table):
        return browser.find_element(By.CSS_SELECTOR, f"#table-{table} .status").text

    assert browser.find_element(By.CSS_SELECTOR, ".tiles li").text == "10\nflipped"
    assert told("changes") == "1 to 20 of 30 rows"
    label, change = browser.find_elements(By.CSS_SELECTOR, "#table-changes select")
    Select(change).select_by_visible_text("dropped")
    assert told("changes") == "1 to 10 of 10 rows"
    Select(label).select_by_visible_text(HOSTILE[0])
    assert told("changes") == "1 to 5 of 5 rows"
    assert (told("labels"), told("instances")) == ("1 to 2 of 2 rows", "1 to 20 of 30 rows")
    assert browser.find_elements(By.CSS_SELECTOR, "#table-instances select") == []
    assert [e for e in browser.get_log("browser") if e["level"] in ("SEVERE", "WARNING")] == []
    assert let_in(browser) == set()
    assert browser.title == "then and now: which labels changed"


def test_the_policy_of_the_page_lets_nothing_in(browser, tmp_path, made):
    Page(browser, tmp_path, made)
    assert let_in(browser) == set()
    assert browser.title == "A <b>title</b>: which tags are wrong"


def test_the_policy_of_the_studys_report_lets_nothing_in_but_styles(browser, tmp_path):
    head = (ROOT / "experiments/report.html.j2").read_text()
    policy = next(line for line in head.splitlines() if "Content-Security-Policy" in line)
    file = tmp_path / "report.html"
    file.write_text(f"<!doctype html><head>{policy}<title>t</title></head><body></body>")
    browser.get(file.as_uri())
    assert let_in(browser) == {"style-src-elem", "style-src-attr"}
    assert browser.title == "t"
