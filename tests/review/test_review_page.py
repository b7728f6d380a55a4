"""The review in a real browser: Chromium without a window."""

import csv
import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from tests.chromium import chromium, let_in
from tests.conftest import ROOT
from tests.quality.audits import HOSTILE
from tests.review.reviews import LABELS, Review, by_order, some_items
from wscpml.cli import INTERRUPTED
from wscpml.quality import decisions
from wscpml.review import app
from wscpml.review.session import LEASE
from wscpml.review.view import Judgement

PATIENCE, PAUSE = 20, 0.02  # seconds that are waited for something, and between two looks
PIXEL = bytes.fromhex(  # a PNG of one pixel
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"
    "0000000c49444154789c63f8cfc0000003010100c9fe92ef0000000049454e44ae426082"
)
ELSEWHERE = "http://127.0.0.1:9/x.png"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("profile")) as chrome:
        yield chrome


class Page:
    """The page in a tab of the browser, and what a person would do with it."""

    def __init__(self, browser, address):
        self.browser, self.address = browser, address
        self.tab = browser.current_window_handle
        browser.get(address)
        self.wait()

    def one(self, selector):
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector):
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def wait(self):
        """Until the page is up to date."""
        ready = """const shown = (id) => !document.getElementById(id)?.hidden;
            return document.readyState === "complete" && !document.body.ariaBusy
                && (shown("work") || shown("done"))"""
        WebDriverWait(self.browser, PATIENCE, PAUSE).until(lambda b: b.execute_script(ready))

    def press(self, *keys):
        for key in keys:
            self.one("body").send_keys(key)
            self.wait()

    def press_focused(self, key):
        """Press a key where the focus is."""
        self.browser.switch_to.active_element.send_keys(key)
        self.wait()

    def type(self, key, text):
        """Press a key that leads to a field, and fill that."""
        self.one("body").send_keys(key)
        self.browser.switch_to.active_element.send_keys(text + Keys.ENTER)
        self.wait()

    def pair(self):
        """The names of the item on the screen and of the tag that is chosen."""
        return self.one("#id").text, self.one(".tag[aria-current] .name").get_property(
            "textContent"
        )

    def states(self):
        """What is told of each tag."""
        return {
            tag.find_element(By.CSS_SELECTOR, ".name").text: tag.get_attribute("class").split()[1]
            for tag in self.all(".tag")
        }

    def events(self, name):
        """What the browser tells of its network since it was last asked."""
        every = [json.loads(e["message"])["message"] for e in self.browser.get_log("performance")]
        return [event["params"] for event in every if event["method"] == f"Network.{name}"]

    def asked_for(self):
        return {event["request"]["url"] for event in self.events("requestWillBeSent")}


@contextmanager
def served(session, reviewer="Anna"):
    """The address of a session's page, for as long as it is served."""
    with app.listen(0) as listening:
        server, address = app.server(session, listening, reviewer)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield address
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture
def opened(browser, tmp_path):
    """Opens the page of a review; nothing in it may fail, or ask for anything elsewhere."""
    for kind in ("browser", "performance"):
        browser.get_log(kind)  # what is of other pages
    reviews = []

    @contextmanager
    def opened(items=None):
        review = Review(tmp_path, items)
        with served(review.session) as address:
            page = Page(browser, address)
            page.review = review
            reviews.append(address)
            yield page
            assert browser.title == "A <b>title</b>: review"
            bad = [e for e in browser.get_log("browser") if e["level"] in ("SEVERE", "WARNING")]
            assert bad == []
            assert {url for url in page.asked_for() if not url.startswith(address)} == set()

    yield opened
    assert reviews


def words(journal):
    """The last words on disk, by pair."""
    table = decisions.last_words(decisions.read(journal))
    return {(row.instance, row.label): row.decision for row in table.itertuples()}


def test_keys_keep_drop_skip_and_go_on(opened):
    with opened() as page:
        assert page.pair() == ("song 0", "rock")
        page.press("k")
        assert page.pair() == ("song 0", "jazz")
        assert page.states()["rock"] == "kept"
        page.press("d")
        assert page.pair() == ("song 1", "jazz")
        page.press("s")
        assert page.states()["jazz"] == "skipped"
        page.press("n")
        assert page.pair()[0] == "song 2"
        assert page.one("#decided").text == "2"
        assert words(page.review.journal) == {
            ("song 0", "rock"): "true",
            ("song 0", "jazz"): "false",
        }


def test_undo_returns_to_the_decision_and_takes_it_back(opened):
    with opened() as page:
        page.press("k", "d", "u")
        assert page.pair() == ("song 0", "jazz")
        page.press("u")
        assert page.pair() == ("song 0", "rock")
        assert not page.one("#undo").is_enabled()
        assert words(page.review.journal) == {}


def test_a_missing_tag_is_added_and_a_note_goes_with_a_decision(opened):
    with opened() as page:
        page.type("m", HOSTILE[1])
        page.type("a", "folk")
        assert page.states()["folk"] == "kept"
        assert page.pair() == ("song 0", "rock")
        (row,) = decisions.read(page.review.journal).to_dict("records")
        assert (row["label"], row["reviewer"], row["note"]) == ("folk", "Anna", HOSTILE[1])
        page.browser.refresh()
        page.wait()
        assert page.one(".by").text == f"by Anna: {HOSTILE[1]}"
        page.type("a", "no such label")
        assert "no such label" in page.one("#problem").text
        assert len(words(page.review.journal)) == 1


def test_a_tag_is_added_if_the_server_takes_it_and_the_chosen_one_stays_chosen(browser, tmp_path):
    items = some_items()
    likely = Judgement(by_order(items).label_confidence, lambda _: np.array([0, 0, 0, 0.3]))
    review = Review(tmp_path, items, first=likely)
    with served(review.session) as address:
        page = Page(browser, address)
        page.press(Keys.ARROW_UP)
        assert page.pair() == ("song 0", LABELS[3])  # the last, which may be missing
        sound = review.journal.read_bytes()
        review.journal.write_bytes(sound + b"nobody,rock,true,,,\n")
        page.type("a", "folk")
        assert "nobody" in page.one("#problem").text
        assert "folk" not in page.states()
        assert page.one("#add").get_property("value") == "folk"
        review.journal.write_bytes(sound)
        page.type("a", "")
        assert page.states()["folk"] == "kept"
        assert page.pair() == ("song 0", LABELS[3])
        assert page.one("#add").get_property("value") == ""
    browser.get_log("browser")  # tells of the refusal


def test_the_focus_stays_on_the_tag_that_is_asked(browser, opened):
    with opened() as page:
        page.one(".tag[aria-current]").click()
        for expected in ("jazz", "jazz", "folk"):
            page.press_focused("k")
            assert page.pair()[1] == expected
            assert browser.switch_to.active_element == page.one(".tag[aria-current]")
        page.one("body").click()


def test_the_arrows_choose_any_tag_and_why_it_is_doubted_is_told(opened):
    with opened() as page:
        page.press(Keys.ARROW_DOWN)
        assert page.pair() == ("song 0", "jazz")
        assert page.one("#with-title").text == "with “jazz”"
        assert [each.text for each in page.all("#with b")] == ["song 1", "song 4", "song 5"]
        assert [each.text for each in page.all("#without b")] == ["song 2", "song 3", "song 6"]
        page.press(Keys.ARROW_UP, Keys.ARROW_UP)
        assert page.pair() == ("song 0", LABELS[3])
        page.press("d")
        assert page.states()[LABELS[3]] == "dropped"
        assert page.one("#id").text == "song 0"  # the others are still asked for


def test_at_the_end_what_was_skipped_can_be_asked_again(opened):
    with opened(some_items(2, shown=None)) as page:
        page.press("n", "k", "d")
        assert page.one("#done h2").is_displayed()
        assert page.one("#rest").text == "You skipped 2 tags."
        page.one("#again").click()
        page.wait()
        assert page.pair() == ("song 0", "rock")


def test_two_browsers_at_once_share_the_work_out(browser, opened):
    with opened() as one:
        first = browser.current_window_handle
        browser.switch_to.new_window("tab")
        second = browser.current_window_handle
        other = Page(browser, one.address)
        seen = {first: [], second: []}
        for _ in range(3):
            for tab in (first, second):
                browser.switch_to.window(tab)
                seen[tab].append(one.pair()[0])
                one.press("k", "d")
        assert not set(seen[first]) & set(seen[second])
        assert len(words(one.review.journal)) == 12
        assert "1 other reviewer is here" in other.one("#status").text
        browser.close()
        browser.switch_to.window(first)


def of_hostile_things(tmp_path):
    (tmp_path / "a.png").write_bytes(PIXEL)
    things = [*HOSTILE, "javascript:document.title='owned'", ELSEWHERE, "a.png"]
    shown = pd.DataFrame({f"<i>{c}</i>": [thing] * 4 for c, thing in enumerate(things)})
    labels = [*HOSTILE[:3], "plain"]
    return some_items(4, shown=shown, ids=HOSTILE[:4], labels=labels, root=tmp_path)


def test_hostile_items_are_shown_as_text_and_ask_for_nothing_elsewhere(opened, tmp_path):
    with opened(of_hostile_things(tmp_path)) as page:
        shown = [each.get_property("textContent") for each in page.all("#item .value")]
        assert shown == [*HOSTILE, "javascript:document.title='owned'"]
        assert page.one("#id").get_property("textContent") == HOSTILE[0]
        (link,) = page.all("#item a")
        assert (link.get_attribute("href"), link.get_attribute("rel")) == (
            ELSEWHERE,
            "noopener noreferrer",
        )
        (picture,) = page.all("#item img")
        WebDriverWait(page.browser, PATIENCE, PAUSE).until(
            lambda _: picture.get_property("complete")
        )
        assert picture.get_property("naturalWidth") == 1
        assert len(page.all("script")) == 1
        page.press("k", "d")
        assert len(words(page.review.journal)) == 2


def test_a_picture_elsewhere_is_asked_for_if_it_is_allowed_and_is_not_told_the_token(
    browser, tmp_path
):
    browser.get_log("performance")
    items = replace(of_hostile_things(tmp_path), allow_remote=True)
    with served(Review(tmp_path, items).session) as address:
        page = Page(browser, address)
        sent = [each["request"] for each in page.events("requestWillBeSent")]
        (asked,) = {json.dumps(each["headers"]) for each in sent if each["url"] == ELSEWHERE}
        assert json.loads(asked).get("Referer", "") == ""
        assert browser.title == "A <b>title</b>: review"


def test_the_policy_of_the_page_lets_nothing_in(browser, tmp_path):
    with served(Review(tmp_path).session) as address:
        Page(browser, address)
        assert let_in(browser) == set()
        assert browser.title == "A <b>title</b>: review"


def test_a_server_that_is_gone_is_told(browser, tmp_path):
    review = Review(tmp_path)
    with served(review.session) as address:
        page = Page(browser, address)
    page.press("k")
    assert "The server does not answer" in page.one("#problem").text
    assert page.pair() == ("song 0", "rock")
    assert words(review.journal) == {}


def test_an_item_that_was_given_to_another_meanwhile_is_told(opened):
    with opened() as page:
        page.review.clock.now += LEASE
        assert page.review.session.next("another")["id"] == "song 0"
        page.press("k")
        assert "not on your screen any more" in page.one("#problem").text
        assert page.pair()[0] == "song 1"
        assert words(page.review.journal) == {}
        page.browser.get_log("browser")  # tells of the refusal


@pytest.mark.parametrize("width", [1200, 400])
def test_nothing_is_wider_than_the_window(browser, opened, width):
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        with opened():
            across = "return [document.documentElement.scrollWidth, window.innerWidth]"
            needed, there = browser.execute_script(across)
            assert there == width
            assert needed <= there
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


class Command:
    """`wscpml review` on a table of songs, as a process of its own."""

    def __init__(self, folder):
        self.folder, self.journal = folder, folder / "decisions.csv"
        rng = np.random.default_rng(0)
        X = rng.normal(size=(80, 4))
        given = (X > 0.3) | (rng.random((80, 4)) < 0.25)
        table = pd.DataFrame(X, columns=list("abcd"))
        table["song"] = [f"song {i}" for i in range(80)]
        table["title"] = [f"Title {i}" for i in range(80)]
        names = np.array(["rock", "jazz", "folk", "pop"])
        table["tags"] = [";".join(names[row]) for row in given]
        table.to_csv(folder / "songs.csv", index=False)

    def start(self):
        """Returns the address of its page."""
        options = "review songs.csv --tags tags --id song --decisions decisions.csv --port 0"
        more = ["--show", "title", "--set", "classifier.kind=kernel_ridge", "--every", "7"]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "wscpml", *options.split(), *more],
            cwd=self.folder,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        return self.process.stdout.readline().removeprefix("review at ").strip()


def test_twenty_decisions_survive_undo_reload_and_the_death_of_the_server(browser, tmp_path):
    command = Command(tmp_path)
    expected = {}

    def decide(page, count):
        for number in range(count):
            key, word = ("k", "true") if number % 3 else ("d", "false")
            pair = page.pair()
            assert pair not in expected
            assert page.one("#item .value").text == pair[0].replace("song", "Title")
            page.press(key)
            expected[pair] = word

    try:
        page = Page(browser, command.start())
        decide(page, 8)
        for _ in range(2):
            page.press("u")
            assert expected.pop(page.pair())
        decide(page, 4)
        browser.refresh()
        page.wait()
        assert page.one("#decided").text == "10"
        decide(page, 2)
        command.process.kill()
        command.process.communicate()
        assert words(command.journal) == expected
        page = Page(browser, command.start())
        assert page.one("#decided").text == "12"
        decide(page, 8)
        assert words(command.journal) == expected
        assert len(expected) == 20
        with command.journal.open(newline="") as file:
            assert len(list(csv.reader(file))) == 1 + 20 + 2 * 2  # two were decided and taken back
        command.process.send_signal(signal.SIGINT)
        assert command.process.communicate(timeout=PATIENCE)[1].splitlines()[-1] == "stopped"
        assert command.process.returncode == INTERRUPTED
    finally:
        command.process.kill()
        command.process.communicate()
