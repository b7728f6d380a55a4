import threading

import numpy as np
import pytest
from scipy import sparse

from tests.review.reviews import LABELS, Review, by_order, some_items
from wscpml.errors import UserError
from wscpml.evaluation import memory
from wscpml.quality import decisions
from wscpml.review import session as module
from wscpml.review.items import Items
from wscpml.review.session import Conflict
from wscpml.review.view import Judgement


@pytest.fixture
def review(tmp_path):
    return Review(tmp_path)


def words(review):
    """The last words on disk: instance, label, decision."""
    table = decisions.last_words(decisions.read(review.journal))
    return table[["instance", "label", "decision"]].to_numpy().tolist()


def decide_item(review, browser, true=True, **more):
    """Decide all that is asked of the next item; returns it."""
    item = review.session.next(browser)
    for label in item["open"]:
        review.session.decide(browser, item["row"], label, true, **more)
    return item


def test_sparse_labels_are_reviewed_as_dense_ones(tmp_path):
    said = []
    for folder, kind in ((tmp_path / "one", np.asarray), (tmp_path / "other", sparse.csr_array)):
        folder.mkdir()
        plain = some_items()
        items = some_items(candidates=kind(plain.candidates))
        found = kind(by_order(plain).label_confidence)
        review = Review(folder, items, first=Judgement(found, lambda _: np.full(len(LABELS), 0.3)))
        item = decide_item(review, "me", true=False)
        review.session.decide("me", item["row"], 2, True)
        said.append([item, review.session.next("me"), review.session.progress("me")])
        said[-1][-1].pop("per_minute")
    assert said[0] == said[1]


def test_a_review_of_very_many_labels_never_has_a_matrix_of_them(tmp_path):
    n, q = 20_000, 5000
    row, label = np.arange(n), np.arange(n) % q
    candidates, found = (
        sparse.csr_array((values, (row, label)), shape=(n, q))
        for values in (np.ones(n, np.uint8), np.linspace(0.1, 0.9, n))
    )
    X = np.arange(n)[:, None] / n
    items = Items("many", range(n), [f"label {j}" for j in range(q)], candidates, X, ["x"], X)
    before = memory.forget_peak()
    review = Review(tmp_path, items, first=Judgement(found, lambda _: np.zeros(q)))
    decide_item(review, "me")
    assert review.session.progress("me")["decided"] == 1
    assert memory.peak() - before < n * q  # a byte for each


def test_an_item_comes_with_all_that_is_asked_of_it_until_that_is_decided(review):
    item = review.session.next("me")
    assert (item["id"], item["open"]) == ("song 0", [0, 1])
    assert review.session.next("me")["row"] == 0
    review.session.decide("me", 0, 0, True)
    assert review.session.next("me")["open"] == [1]
    review.session.decide("me", 0, 1, False)
    assert review.session.next("me")["id"] == "song 1"
    assert words(review) == [["song 0", "rock", "true"], ["song 0", "jazz", "false"]]


def test_a_decision_is_in_the_table_with_its_reviewer_and_note(review):
    review.session.next("me")
    review.session.decide("me", 0, 0, True, "Anna", 'sure,\n"quite"')
    (row,) = decisions.read(review.journal).to_dict("records")
    assert (row["reviewer"], row["note"]) == ("Anna", 'sure, "quite"')
    assert row["time"].endswith("+00:00")


def test_every_tag_is_asked_once_and_then_nothing_is_left(review):
    seen = []
    while item := review.session.next("me"):
        seen += [[item["row"], label] for label in item["open"]]
        for label in item["open"]:
            review.session.decide("me", item["row"], label, True)
    assert sorted(seen) == np.argwhere(review.items.candidates).tolist()
    assert len(words(review)) == 60


def test_what_was_decided_before_is_not_asked_again(review, tmp_path):
    decide_item(review, "me")
    again = Review(tmp_path)
    assert again.session.next("another")["row"] == 1
    assert again.session.progress("another")["decided"] == 2


def test_what_another_program_appends_counts_at_once(review):
    review.session.next("me")
    rows = [{"instance": "song 1", "label": name, "decision": True} for name in ("jazz", "folk")]
    decisions.append(review.journal, rows)
    decide_item(review, "me")
    assert review.session.next("me")["row"] == 2
    assert review.session.progress("me")["decided"] == 4


def test_two_servers_on_one_table_lose_nothing_of_one_another(tmp_path):
    reviews = [Review(tmp_path), Review(tmp_path)]

    def work(review, browser):
        while item := review.session.next(browser):
            for label in item["open"]:
                review.session.decide(browser, item["row"], label, True, browser)

    threads = [
        threading.Thread(target=work, args=(review, name))
        for review, name in zip(reviews, ("Anna", "Bo"), strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    table = decisions.read(tmp_path / "decisions.csv")
    assert len(words(reviews[0])) == 60
    assert len(table.drop_duplicates(["instance", "label", "reviewer"])) == len(table)


def test_a_skipped_pair_is_asked_again_only_if_one_asks_for_it(review):
    review.session.next("me")
    review.session.skip("me", 0, 0)
    assert review.session.next("me")["open"] == [1]
    assert review.session.next("me", leave=True)["row"] == 1
    while item := review.session.next("me"):
        for label in item["open"]:
            review.session.decide("me", item["row"], label, True)
    assert review.session.progress("me")["skipped"] == 2
    review.session.again("me")
    assert review.session.next("me")["open"] == [0, 1]


def test_undo_takes_back_the_last_decision_and_returns_to_its_item(review):
    review.session.next("me")
    review.session.decide("me", 0, 0, True, "Anna")
    review.session.decide("me", 0, 1, False, "Anna")
    assert review.session.next("me")["row"] == 1
    item = review.session.undo("me")
    assert (item["row"], item["open"]) == (0, [1])
    assert words(review) == [["song 0", "rock", "true"]]
    item = review.session.undo("me")
    assert item["open"] == [0, 1]
    assert words(review) == []
    assert review.session.undo("me") is None
    assert len(decisions.read(review.journal)) == 4  # nothing is ever rewritten


@pytest.mark.parametrize("names", [("", ""), ("Anna", "Anna"), ("Anna", "Bo")])
def test_undo_leaves_the_word_of_another_who_has_decided_since(review, names):
    review.session.next("me")
    review.session.decide("me", 0, 0, True, names[0])
    review.clock.now += module.LEASE
    assert review.session.next("another")["row"] == 0
    review.session.decide("another", 0, 0, False, names[1])
    with pytest.raises(Conflict, match="decided anew since"):
        review.session.undo("me")
    assert words(review) == [["song 0", "rock", "false"]]
    assert review.session.undo("me") is None  # it is not tried again


def test_undo_takes_the_item_off_the_screen_of_another(review):
    review.session.next("me")
    review.session.decide("me", 0, 0, True)
    review.clock.now += module.LEASE
    assert review.session.next("another")["row"] == 0
    assert review.session.undo("me")["row"] == 0
    with pytest.raises(Conflict, match="not on your screen any more"):
        review.session.decide("another", 0, 1, True)


def test_undo_after_a_change_of_mind_brings_the_word_before_back(review):
    review.session.next("me")
    review.session.decide("me", 0, 0, True, "Anna", "sure")
    review.session.decide("me", 0, 0, False, "Anna", "not so sure")
    review.session.undo("me")
    (row,) = decisions.last_words(decisions.read(review.journal)).to_dict("records")
    assert (row["decision"], row["reviewer"], row["note"]) == ("true", "Anna", "sure")
    assert review.session.undo("me")["open"] == [0, 1]
    assert words(review) == []
    assert not decisions.remarks(decisions.read(review.journal))


def test_undo_does_not_bring_back_what_another_had_overruled(review):
    review.session.next("me")
    review.session.decide("me", 0, 0, True, "Anna")
    decisions.append(
        review.journal,
        [{"instance": "song 0", "label": "rock", "decision": False, "reviewer": "Bo"}],
    )
    review.session.decide("me", 0, 0, True, "Anna")
    review.session.undo("me")
    assert words(review) == [["song 0", "rock", "false"]]


def test_a_decision_is_on_disk_once_or_told_as_failed(review, monkeypatch):
    review.session.next("me")
    sound = review.journal.read_bytes()
    review.journal.write_bytes(sound + b"nobody,rock,true,,,\n")
    with pytest.raises(UserError, match="nobody"):
        review.session.decide("me", 0, 0, True)
    assert review.journal.read_bytes() == sound + b"nobody,rock,true,,,\n"
    review.journal.write_bytes(sound)
    inner = decisions.append

    def append(path, rows):
        inner(path, rows)
        inner(path, [{"instance": "nobody", "label": "rock", "decision": True}])

    monkeypatch.setattr(decisions, "append", append)
    review.session.decide("me", 0, 0, True)
    assert decisions.read(review.journal).instance.tolist() == ["song 0", "nobody"]
    with pytest.raises(UserError, match="nobody"):
        review.session.next("me")


def test_a_label_that_was_no_candidate_can_be_added_and_refused(review):
    item = review.session.next("me")
    assert [tag["name"] for tag in item["missing"]] == LABELS[2:]
    review.session.decide("me", 0, 2, True)
    review.session.decide("me", 0, 3, False)
    assert words(review) == [["song 0", "folk", "true"], ["song 0", LABELS[3], "false"]]
    item = review.session.next("me")
    assert item["missing"] == []
    told = {tag["label"]: tag["word"] and tag["word"]["true"] for tag in item["tags"]}
    assert told == {0: None, 1: None, 2: True, 3: False}


def test_two_browsers_never_have_the_same_item(review):
    rows = {browser: [] for browser in ("one", "other")}
    for _ in range(10):
        shown = {browser: review.session.next(browser)["row"] for browser in rows}
        assert shown["one"] != shown["other"]
        for browser in rows:
            rows[browser].append(decide_item(review, browser)["row"])
    assert not set(rows["one"]) & set(rows["other"])
    assert len(words(review)) == 40


def test_the_item_of_a_browser_that_was_closed_is_given_to_another(review):
    review.session.next("closed")
    assert review.session.next("me")["row"] == 1
    review.clock.now += module.LEASE
    decide_item(review, "me")
    assert review.session.next("me")["row"] == 0
    with pytest.raises(Conflict, match="not on your screen any more"):
        review.session.decide("closed", 0, 0, True)
    assert len(words(review)) == 2


def test_a_label_that_is_not_there_is_refused(review):
    review.session.next("me")
    with pytest.raises(UserError, match="label 4: there is none"):
        review.session.decide("me", 0, 4, True)
    assert words(review) == []


def test_progress_tells_counts_pace_and_the_errors_that_are_left(review):
    confidence = by_order(review.items).label_confidence
    left = (1 - confidence[review.items.candidates == 1]).sum()
    before = review.session.progress("me")
    assert before["errors_left"] == pytest.approx(left)
    assert (before["tags"], before["decided"], before["per_minute"]) == (60, 0, None)
    review.session.next("me")
    for label, true in ((0, True), (1, False)):
        review.clock.now += 10
        review.session.decide("me", 0, label, true)
    after = review.session.progress("me")
    assert (after["decided"], after["false"], after["per_minute"]) == (2, 1, 6.0)
    assert after["errors_left"] == pytest.approx(left - (1 - confidence[0, :2]).sum())


def test_what_the_random_part_of_the_answers_proves_is_told_with_each_judgement(tmp_path):
    review = Review(tmp_path, every=60)
    while review.session.next("me"):
        decide_item(review, "me", False)
    assert review.session.progress("me")["wrong"] == ""
    (work,) = review.started
    work()
    assert review.session.progress("me")["wrong"] == "between 94 and 100 % (95 %)"


def test_after_so_many_decisions_all_is_judged_anew_and_the_order_changes(tmp_path):
    asked = []
    items = some_items()

    def judge(decided):
        asked.append(decided.true.tolist())
        turned = (1 - by_order(items).label_confidence) * items.candidates
        return Judgement(decided.settle(turned), by_order(items).probabilities)

    review = Review(tmp_path, items, judge, every=3)
    for _ in range(2):
        decide_item(review, "me")
    (work,) = review.started
    assert review.session.progress("me")["judging"]
    assert review.session.next("me")["row"] == 2  # the review goes on meanwhile
    work()
    assert asked == [[True] * 4]
    progress = review.session.progress("me")
    assert (progress["judging"], progress["rounds"], progress["problem"]) == (False, 1, "")
    assert decide_item(review, "me")["row"] == 2  # what is on the screen stays there
    assert review.session.next("me")["row"] == 29


def test_judging_that_fails_is_told_and_ends_nothing(tmp_path):
    def judge(decided):
        raise ValueError("no way")

    review = Review(tmp_path, judge=judge, every=2)
    decide_item(review, "me")
    (work,) = review.started
    work()
    progress = review.session.progress("me")
    assert (progress["problem"], progress["rounds"]) == ("judging anew failed: no way", 0)
    assert decide_item(review, "me")["row"] == 1


def test_decisions_that_came_while_judging_are_judged_by_right_after(tmp_path):
    review = Review(tmp_path, every=2)
    decide_item(review, "me")
    decide_item(review, "me")
    (work,) = review.started
    work()
    assert len(review.started) == 2


@pytest.mark.parametrize("name", ["decisions.parquet", "folder/decisions.csv/x.csv"])
def test_a_journal_that_cannot_be_appended_to_is_refused_at_once(tmp_path, name):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/decisions.csv").touch()
    with pytest.raises(UserError, match="decisions"):
        module.Session(some_items(), by_order, by_order(some_items()), tmp_path / name)


def test_a_journal_that_breaks_off_in_its_last_line_goes_on(review, tmp_path):
    decide_item(review, "me")
    with review.journal.open("a") as file:
        file.write("song 1,ja")
    again = Review(tmp_path)
    assert decide_item(again, "me")["row"] == 1
    assert [pair[:2] for pair in words(again)] == [
        ["song 0", "rock"],
        ["song 0", "jazz"],
        ["song 1", "jazz"],
        ["song 1", "folk"],
    ]


def test_decisions_on_items_that_are_held_out_are_let_be(tmp_path):
    rows = [{"instance": "song 99", "label": "rock", "decision": True}]
    decisions.append(tmp_path / "decisions.csv", rows)
    review = Review(tmp_path, some_items(held_out=["song 99"]))
    assert review.session.progress("me")["decided"] == 0
    decide_item(review, "me")
    assert len(words(review)) == 3


def test_a_journal_of_another_data_set_is_refused_at_once(tmp_path):
    decisions.append(
        tmp_path / "decisions.csv", [{"instance": "x", "label": "rock", "decision": True}]
    )
    with pytest.raises(UserError, match="another data set"):
        Review(tmp_path)
