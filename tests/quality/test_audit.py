import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from tests.contract import small
from tests.quality.audits import HOSTILE, an_audit
from wscpml import WSCPML
from wscpml.errors import UserError
from wscpml.quality import audit, issues, judging
from wscpml.quality.decisions import Decided


@pytest.fixture(scope="module")
def example():
    return an_audit()


def data_of(page):
    """What the page's script reads."""
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    assert not set(text) & set("<>&\u2028\u2029")
    return json.loads(text)


def test_each_label_has_its_frequency_noise_and_confidence():
    candidates = np.array([[1, 1, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], np.uint8)
    confidence = np.array([[0.2, 0.9, 0], [0.4, 0, 0], [0.9, 0.8, 0], [0, 0.7, 0]])
    truth = np.array([[0, 1, 0], [1, 0, 0], [1, 0, 0], [0, 1, 0]], np.uint8)
    few = replace(
        an_audit(),
        candidates=candidates,
        label_confidence=confidence,
        truth=truth,
        label_names=list("abc"),
    )
    found = audit.by_label(few).set_index("label")
    assert found.tags.tolist() == [3, 3, 0]
    assert found.frequency.tolist() == [0.75, 0.75, 0]
    assert found.suspicious.tolist() == [2, 0, 0]
    np.testing.assert_allclose(found.noise_rate, [0.5, 0.2, np.nan])
    np.testing.assert_allclose(found.average_confidence, [0.5, 0.8, np.nan])
    np.testing.assert_allclose(found.true_noise_rate, [1 / 3, 1 / 3, np.nan])
    np.testing.assert_array_equal(audit.confusion(few).toarray(), [[0, 1, 0], [0, 0, 0], [0, 0, 0]])
    told = audit.summary(few)
    assert (told.tags, told.suspicious, told.touched, told.hopeless) == (6, 2, 2, 1)
    assert (told.false, told.precision, told.recall) == (2, 0.5, 0.5)
    assert told.wrong_share == pytest.approx(2.1 / 6)


def test_items_are_shown_as_text_beside_their_ids_and_cut(example):
    n = len(example.instances)
    shown = pd.DataFrame(
        {
            "label": [f"title of {each}" for each in example.instances],
            HOSTILE[1]: [HOSTILE[0] * 50] * n,
        }
    )
    table = data_of(audit.render(replace(example, shown=shown)))["tables"][0]
    assert [column[:2] for column in table["columns"][:4]] == [
        ["instance", "Instance"],
        ["shown 1", "label"],
        ["shown 2", HOSTILE[1]],
        ["label", "Label"],
    ]
    for instance, title, long, *_ in table["rows"]:
        assert title == f"title of {instance}"
        assert long == (HOSTILE[0] * 50)[: audit.MOST_TEXT] + "…"
    plain = data_of(audit.render(example))["tables"][0]
    assert [[row[0], *row[3:]] for row in table["rows"]] == plain["rows"]


def test_what_is_decided_is_counted_apart_and_never_found_by_us(example):
    row, label = np.nonzero((example.candidates == 1) & (example.label_confidence < 0.5))
    right, wrong = (row[0], label[0]), (row[1], label[1])
    decided = Decided(row[:2], label[:2], np.array([True, False]))
    some = replace(
        example,
        decided=decided,
        label_confidence=decided.settle(example.label_confidence),
        issues=example.issues.iloc[:0],
    )
    before, told = audit.summary(example), audit.summary(some)
    assert (told.decided, told.decided_true) == (2, 1)
    assert told.suspicious == before.suspicious - 2
    false = sum(example.truth[pair] == 0 for pair in (right, wrong))
    assert told.false == before.false - false
    assert told.recall == pytest.approx((before.recall * before.false - false) / told.false)
    page = audit.render(some)
    assert "A person has decided 2 tags: 1 to be right,\n1 to be wrong." in page
    assert "<b>2</b> decided" in page
    asked = "no one who knows the truth was asked"
    assert asked not in page
    assert asked in audit.render(example)
    assert "decided" not in audit.render(example)


def test_a_pair_far_above_chance_is_told_and_others_are_not():
    rng = np.random.default_rng(0)
    right = rng.random((400, 4)) < 0.3
    wrong = ~right & (rng.random((400, 4)) < 0.1)
    wrong[:, 3] |= ~right[:, 3] & right[:, 0] & (rng.random(400) < 0.6)
    many = replace(
        an_audit(),
        candidates=(right | wrong).astype(np.uint8),
        label_confidence=0.9 * right + 0.1 * wrong,
        label_names=list("abcd"),
        truth=None,
    )
    (pair,) = audit.striking_pairs(many)
    assert (pair.false, pair.true) == ("d", "a")
    assert pair.count == (wrong[:, 3] & right[:, 0]).sum()
    assert pair.times > 1.5


def test_of_very_many_pairs_none_is_told_by_chance():
    rng = np.random.default_rng(1)
    right = rng.random((600, 150)) < 0.05
    wrong = ~right & (rng.random((600, 150)) < 0.05)
    many = replace(
        an_audit(),
        candidates=(right | wrong).astype(np.uint8),
        label_confidence=0.9 * right + 0.1 * wrong,
        label_names=list(map(str, range(150))),
        truth=None,
    )
    assert audit.striking_pairs(many) == []


def test_the_page_says_which_noise_it_is_and_how_sure_that_is(example):
    bounds = pd.DataFrame({"lower": [0.1] * 6, "upper": [0.4] * 6})
    noisy = replace(example, noise_rates=bounds, remarks=["<b>rock</b>: can hardly be known"])
    page = audit.render(noisy)
    assert "&lt;b&gt;rock&lt;/b&gt;: can hardly be known." in page
    assert audit.by_label(noisy).lower.tolist() == [0.1] * 6
    assert [name for name, *_ in data_of(page)["tables"][1]["columns"]][5:7] == ["lower", "upper"]


def test_where_every_tag_is_decided_there_is_nothing_to_compare_with_the_truth(example):
    row, label = np.nonzero(example.candidates)
    decided = Decided(row, label, np.ones(len(row), bool))
    page = audit.render(replace(example, decided=decided, issues=example.issues.iloc[:0]))
    assert "There is no tag to judge" in page


def test_the_calibration_curve_compares_confidence_with_truth(example):
    curve = audit.calibration(example)
    chosen = example.candidates == 1
    lowest = chosen & (example.label_confidence < 0.1)
    assert curve.confidence[0] == pytest.approx(example.label_confidence[lowest].mean())
    assert curve.right[0] == pytest.approx(example.truth[lowest].mean())
    assert curve.confidence.is_monotonic_increasing


def test_the_page_asks_for_nothing_and_runs_only_its_own_script(example):
    page = audit.render(example)
    assert "default-src 'none'" in page
    assert "unsafe" not in page.partition("<style>")[0]
    assert not re.search(r"""(src|href|action)\s*=\s*["']?(?!#)""", page.partition("<style>")[0])
    assert not re.search(r"@import|url\(", page)
    assert page == audit.render(example)


def test_what_comes_from_the_data_is_no_markup(example):
    page = audit.render(example)
    for text in (*HOSTILE[:2], "<b>title"):
        assert text not in page
    rows = data_of(page)["tables"][0]["rows"]
    assert {row[1] for row in rows} == set(HOSTILE)
    assert rows[0][:2] == example.issues.iloc[0][["instance", "label"]].tolist()


def test_a_page_of_many_tags_stays_small_and_says_what_it_leaves_out():
    many = an_audit(n=50_000, label_names=[f"label {j}" for j in range(12)])
    page = audit.render(many)
    assert len(page) < 4e6
    left_out = len(many.issues) - audit.MOST_LISTED
    assert f"{left_out:,} others are left out" in " ".join(page.split())
    assert "Shown are 2,942 of the 50,000 instances" in " ".join(page.split())
    data = data_of(page)
    assert len(data["tables"][0]["rows"]) == audit.MOST_LISTED
    assert len(data["map"]["points"]) == 2942


def test_a_large_table_of_confused_labels_shows_those_that_matter():
    page = audit.render(an_audit(n=300, label_names=[f"label {j}" for j in range(40)]))
    assert page.count('<th scope="row"') == audit.MOST_CONFUSED
    assert "cases are\nin other rows and columns" in page


def test_without_truth_nothing_is_said_of_it():
    page = audit.render(an_audit(with_truth=False))
    assert "Calibration" not in page
    assert "In truth" not in page
    assert "True noise rate" not in page


@pytest.mark.parametrize("likely", [0.9, 0.1])
def test_all_tags_may_be_right_or_wrong(likely):
    page = audit.render(an_audit(likely=likely))
    assert ("no tag is more likely wrong" in page) == (likely > 0.5)
    assert "No suspicious tag is beside one that is probably right" in page


def test_an_audit_of_a_fitted_estimator_has_its_names(monkeypatch):
    monkeypatch.setattr(judging, "TREES", 20)
    X, truth, candidates = small()
    ids = pd.Index([f"song {i}" for i in range(len(X))])
    names = ["rock", "jazz", "pop", "folk"]
    fitted = WSCPML(kind="kernel_ridge", random_state=0).fit(
        pd.DataFrame(X, ids), pd.DataFrame(candidates, ids, names)
    )
    made = audit.of(fitted, "songs", pd.DataFrame(truth, ids, names))
    np.testing.assert_array_equal(made.candidates, candidates)
    assert made.label_names == names
    pd.testing.assert_frame_equal(made.issues, fitted.find_label_issues())
    listed = data_of(audit.render(made))["tables"][0]["rows"]
    for instance, label, *_, said in listed:
        right = truth[ids.get_loc(instance), names.index(label)] == 1
        assert said == ("right" if right else "wrong")
    with pytest.raises(UserError, match="it is 59 x 4, and the labels that were fitted are 60 x 4"):
        audit.of(fitted, "songs", truth[1:])


def test_one_column_of_two_classes_can_be_audited(monkeypatch):
    monkeypatch.setattr(judging, "TREES", 20)
    X, _, candidates = small()
    fitted = WSCPML(kind="kernel_ridge", random_state=0).fit(X, candidates[:, 0])
    assert "1 label." in audit.render(audit.of(fitted, "one"))


def test_tags_that_are_probably_missing_are_a_table_of_their_own(example, monkeypatch):
    assert "Missing tags" not in audit.render(example)
    missing = (example.candidates == 0) * np.linspace(0.1, 0.6, len(example.candidates))[:, None]
    listed = issues.find_missing(
        missing, example.evidence, example.label_names, example.instances, 9
    )
    monkeypatch.setattr(audit, "MOST_LISTED", 8)
    page = audit.render(replace(example, missing=listed))
    table = data_of(page)["tables"][2]
    assert (table["name"], table["left_out"], len(table["rows"])) == ("missing", 1, 8)
    assert [name for name, *_ in table["columns"]] == list(listed)
    assert table["rows"][0][:3] == [*listed.iloc[0, :2].map(str), 0.6]
    assert "1 other is left out" in page
    nothing = audit.render(replace(example, missing=listed[:0]))
    assert "Look at the first" not in nothing
