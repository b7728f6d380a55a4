import json

import numpy as np
import pandas as pd
import pytest

from tests.quality.audits import HOSTILE
from wscpml.errors import UserError
from wscpml.quality import diff


def a_table(*rows, column="label_confidence") -> pd.DataFrame:
    """Rows of instance, label, confidence, and what is decided if it is."""
    found = pd.DataFrame([(*row, "")[:4] for row in rows])
    return found.set_axis(["instance", "label", column, "decided"], axis=1)


def a_version(name, *rows, column="label_confidence", **more) -> diff.Version:
    return diff.Version(name, diff.candidates(a_table(*rows, column=column), name), **more)


OLD = [
    ("a", "rock", 0.9),
    ("a", "jazz", 0.2),
    ("b", "rock", 0.6),
    ("b", "pop", 0.95),
    ("c", "pop", 0.7),
]
NEW = [
    ("a", "rock", 0.4),
    ("a", "jazz", 1.0, "true"),
    ("b", "rock", 0.65),
    ("b", "pop", 0.8),
    ("d", "pop", 0.1),
]


@pytest.fixture
def found() -> diff.Difference:
    return diff.compare(a_version("then", *OLD), a_version("now", *NEW))


def test_every_change_is_told_flips_first(found):
    told = found.changes[["instance", "label", "change"]].to_numpy().tolist()
    assert told == [
        ["a", "rock", "dropped"],
        ["a", "jazz", "kept"],
        ["d", "pop", "added"],
        ["c", "pop", "gone"],
        ["b", "pop", "moved"],
    ]
    assert found.changes.decided.tolist() == ["", "true", "", "", ""]
    assert found.changes.old_confidence.tolist()[:2] == [0.9, 0.2]
    assert np.isnan(found.changes.old_confidence[2])


def test_the_figures_are_those_of_the_changes(found):
    s = found.summary
    assert (s.flipped, s.dropped, s.kept, s.by_person) == (2, 1, 1, 1)
    assert (s.added, s.gone, s.moved) == (1, 1, 1)
    assert (s.old_instances, s.new_instances, s.old_tags, s.new_tags) == (3, 3, 5, 5)
    assert (s.old_suspicious, s.new_suspicious) == (1, 2)


def test_labels_and_instances_have_their_counts_and_noise_rates(found):
    labels = found.labels.set_index("label")
    assert labels.index[-1] == "pop"  # without a flip
    counts = ["old_tags", "new_tags", "added", "gone", "moved"]
    assert labels.loc["pop", counts].tolist() == [2, 2, 1, 1, 1]
    assert labels.loc["rock", "old_noise_rate"] == pytest.approx(0.25)
    assert labels.loc["rock", "new_noise_rate"] == pytest.approx(0.475)
    assert found.instances.instance[0] == "a"
    assert found.instances.loc[0, ["dropped", "kept"]].tolist() == [1, 1]
    assert sorted(found.instances.instance) == ["a", "b", "c", "d"]


def test_a_result_does_not_differ_from_itself():
    same = diff.compare(a_version("one", *OLD), a_version("two", *reversed(OLD)))
    assert len(same.changes) == len(same.instances) == same.summary.flipped == 0
    assert "0 decisions flipped" in diff.text(same)
    assert "which labels changed" in diff.render(same)


@pytest.mark.parametrize(("bound", "moved"), [(0.04, 2), (0.1, 1), (0.16, 0)])
def test_a_confidence_has_moved_if_it_moved_further_than_the_bound(bound, moved):
    found = diff.compare(a_version("then", *OLD), a_version("now", *NEW), bound)
    assert found.summary.moved == moved
    assert found.summary.flipped == 2


def test_what_differs_behind_is_told_where_it_is_known():
    old = a_version(
        "then", *OLD, settings={"alpha": 1, "seed": 0}, data={"d": "1"}, code={"s": "x"}
    )
    new = a_version("now", *NEW, settings={"alpha": 2, "seed": 0}, data={"d": "2"}, code={"s": "x"})
    found = diff.compare(old, new)
    assert found.settings == {"alpha": (1, 2)}
    assert (found.data, found.code) == (["d"], [])
    assert "settings: alpha 1 -> 2\ndata: d\n" in diff.text(found)
    assert diff.compare(old, a_version("now", *NEW)).settings == {}


def test_the_text_names_labels_and_instances(found):
    lines = diff.text(found).splitlines()
    assert lines[2] == (
        "2 decisions flipped: 1 tags were kept and are dropped, 1 the other way; 1 by a person"
    )
    assert [line.split()[0] for line in lines if "->" in line] == ["jazz", "rock", "pop"]
    assert lines[-1] == "instances with most flips: a 2"


def test_json_has_it_all(found):
    told = json.loads(json.dumps(found.plain(), allow_nan=False))
    assert told["flipped"] == 2
    assert told["changes"][2] == {
        "instance": "d", "label": "pop", "change": "added", "old_confidence": None,
        "new_confidence": 0.1, "decided": "",
    }  # fmt: skip


def test_pseudo_labels_of_another_method_are_compared_and_told_to_be_no_probabilities():
    found = diff.compare(a_version("ours", *OLD), a_version("theirs", *NEW, column="F"))
    assert found.remarks == [
        "ours has label_confidence and theirs has F: F is a pseudo-label, and no probability"
    ]
    assert found.labels.new_noise_rate.isna().all()
    assert not found.labels.old_noise_rate.isna().any()


@pytest.mark.parametrize(
    ("table", "told"),
    [
        (a_table(*OLD).drop(columns="label"), "x: has no column 'label'; give a table that"),
        (a_table(*OLD, column="score"), "x: has no column 'label_confidence'; give"),
        (a_table(*OLD, OLD[0]), "x: row 6: instance 'a' has 'rock' twice; ids must"),
        (a_table(("a", "rock", 1.5)), "x: row 1: label_confidence must be from 0 to 1, got 1.5"),
        (a_table(("a", "rock", "?")), "x: row 1: label_confidence must be from 0 to 1, got ?"),
    ],
)
def test_what_is_no_result_is_told(table, told):
    with pytest.raises(UserError) as mistake:
        diff.candidates(table, "x")
    assert str(mistake.value).startswith(told)


def test_results_of_two_data_sets_are_not_compared():
    with pytest.raises(UserError, match="then and now: have no label in common; compare results"):
        diff.compare(a_version("then", *OLD), a_version("now", ("a", "folk", 0.5)))
    with pytest.raises(UserError, match="have no instance in common"):
        diff.compare(a_version("then", *OLD), a_version("now", ("z", "rock", 0.5)))


def test_the_page_shows_names_as_text():
    rows = [(name, "rock", 0.9) for name in HOSTILE]
    changed = [(name, "rock", 0.1) for name in HOSTILE]
    page = diff.render(diff.compare(a_version(HOSTILE[1], *rows), a_version("now", *changed)))
    for name in HOSTILE[:2]:
        assert name not in page
    assert "<b>5</b> flipped" in page


def test_a_page_of_many_changes_says_what_it_leaves_out(monkeypatch):
    monkeypatch.setattr(diff, "MOST_LISTED", 2)
    page = diff.render(diff.compare(a_version("then", *OLD), a_version("now", *NEW)))
    assert "3 rows are left out of this page" in page
