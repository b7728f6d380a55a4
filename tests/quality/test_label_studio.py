"""What people decide in Label Studio comes back, by the documented forms of its exports."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.quality.test_review import HOSTILE, judged_tags
from wscpml.cli import main
from wscpml.errors import UserError
from wscpml.quality import decisions, review

LATER = "2026-03-02T10:00:00.000000Z"


def annotation(choices, who=1, time=LATER, **more):
    """An annotation of a task, as the export JSON has it."""
    result = {
        "id": "Dx_aB91ISN",
        "from_name": "labels",
        "to_name": "instance",
        "type": "choices",
        "origin": "manual",
        "value": {"choices": choices},
    }
    return {
        "id": 1001,
        "result": [result] if choices else [],
        "was_cancelled": False,
        "ground_truth": False,
        "created_at": "2026-03-01T09:00:00.000000Z",
        "updated_at": time,
        "lead_time": 4.2,
        "task": 1,
        "completed_by": who,
    } | more


def exported(*annotations):
    """Our tasks as Label Studio exports them, the first with these annotations."""
    tasks = review.label_studio_tasks(judged_tags(), "wscpml 1")
    whole = [
        task | {"id": k, "project": 1, "annotations": [], "drafts": []}
        for k, task in enumerate(tasks, start=1)
    ]
    whole[0]["annotations"] = list(annotations)
    return whole


def in_short(tasks):
    """The same as JSON-MIN, which has a record for each annotation that is not cancelled."""
    records = []
    for task in tasks:
        for each in task["annotations"]:
            if each["was_cancelled"]:
                continue
            record = task["data"] | {"id": task["id"]}
            if each["result"]:
                (chosen,) = (one["value"]["choices"] for one in each["result"])
                record["labels"] = chosen[0] if len(chosen) == 1 else {"choices": chosen}
            who = each["completed_by"]
            record |= {"annotator": who["id"] if isinstance(who, dict) else who}
            names = ("created_at", "updated_at", "lead_time")
            record |= {"annotation_id": each["id"]} | {name: each[name] for name in names}
            records.append(record)
    return records


def words(found):
    return list(found[["instance", "label", "decision"]].itertuples(index=False, name=None))


@pytest.mark.parametrize("form", [lambda tasks: tasks, in_short])
@pytest.mark.parametrize("chosen", [[], HOSTILE[:1], HOSTILE[1:], HOSTILE])
def test_chosen_tags_are_true_and_candidates_that_are_not_are_false(form, chosen):
    found = review.label_studio_decisions(form(exported(annotation(chosen))), "export.json")
    said = [("a", label, "true" if label in chosen else "false") for label in HOSTILE]
    assert words(found) == said
    assert set(found.reviewer) == {"1"}
    assert set(found.time) == {LATER}


@pytest.mark.parametrize("form", [lambda tasks: tasks, in_short])
def test_a_label_that_was_no_candidate_may_be_chosen(form):
    tasks = exported()
    tasks[1]["annotations"] = [annotation([HOSTILE[0]])]
    found = review.label_studio_decisions(form(tasks), "export.json")
    assert words(found) == [("7", HOSTILE[1], "false"), ("7", HOSTILE[0], "true")]


@pytest.mark.parametrize("form", [lambda tasks: tasks, in_short])
def test_every_annotator_is_kept_the_latest_last_and_cancelled_work_says_nothing(form):
    tasks = exported(
        annotation(HOSTILE, who=2),
        annotation([], who=1, time="2026-03-01T00:00:00.000000Z"),
        annotation(HOSTILE[:1], who=3, was_cancelled=True),
    )
    found = review.label_studio_decisions(form(tasks), "export.json")
    assert found.reviewer.tolist() == ["1"] * 3 + ["2"] * 3
    assert decisions.last_words(found).decision.tolist() == ["true"] * 3
    assert len(decisions.contradictions(found)) == 6


def test_a_reviewer_is_told_by_the_address_where_there_is_one():
    who = {"id": 7, "email": "ann@example.invalid", "first_name": "Ann", "last_name": ""}
    found = review.label_studio_decisions(exported(annotation([], who=who)), "export.json")
    assert set(found.reviewer) == {"ann@example.invalid"}


def test_tasks_that_nobody_has_looked_at_decide_nothing():
    tasks = review.label_studio_tasks(judged_tags(), "wscpml 1")
    for export in (
        tasks,
        exported(),
        [task["data"] | {"annotation_id": None} for task in tasks],
        [],
    ):
        assert not len(review.label_studio_decisions(export, "export.json"))


@pytest.mark.parametrize(
    "export",
    [
        ["text"],
        [{"annotations": [annotation([])], "data": {"image": "x.png"}}],
        [{"annotations": [annotation([])], "data": {"instance": 7, "tags": ["rock"]}}],
        [{"annotations": [{"id": 1}], "data": {"instance": "a", "tags": ["rock"]}}],
        [{"annotations": ["x"], "data": {"instance": "a", "tags": ["rock"]}}],
        [{"annotation_id": 1, "labels": "rock"}],
        [{"annotation_id": 1, "instance": "a", "tags": ["rock"], "labels": {"rating": 3}}],
        [{"annotation_id": 1, "instance": "a", "tags": [3], "labels": "rock"}],
    ],
)
def test_what_is_no_export_of_our_tasks_is_one_line(export):
    with pytest.raises(UserError) as told:
        review.label_studio_decisions(export, "export.json")
    assert str(told.value).startswith("export.json: task 1 is none of Label Studio's with tags")
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("content", [b"[" * 100_000, b'["a\\ud800"]', b"\xff", b"", b"9" * 5000])
def test_an_export_that_cannot_be_read_is_one_line(tmp_path, content):
    path = tmp_path / "export.json"
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"export\.json: cannot be read as JSON \("):
        review.label_studio_export(path)


def test_a_pair_of_halves_is_a_character(tmp_path):
    path = tmp_path / "export.json"
    path.write_text('["\\ud83c\\udfb5"]')
    assert review.label_studio_export(path) == ["\N{MUSICAL NOTE}"]


def test_an_export_is_a_list():
    with pytest.raises(UserError, match="export.json: is no list of tasks"):
        review.label_studio_decisions({"tasks": []}, "export.json")


def test_the_command_appends_what_is_new_and_what_is_decided_needs_no_task(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    export = tmp_path / "export.json"
    export.write_text(json.dumps(exported(annotation(HOSTILE[:1]))))
    main(["import-decisions", "export.json", "-o", "decisions.csv"])
    assert capsys.readouterr().out == "decisions.csv: 3 decisions are new, 0 were there\n"
    first = (tmp_path / "decisions.csv").read_text()
    two = exported(annotation(HOSTILE[:1]), annotation(HOSTILE, who=2, time=f"{LATER}x"))
    export.write_text(json.dumps(two), encoding="utf-8-sig")
    main(["import-decisions", "export.json", "-o", "decisions.csv", "--json"])
    said = capsys.readouterr()
    assert json.loads(said.out) == {
        "decisions": 3,
        "known_before": 3,
        "taken_back": 0,
        "contradictions": 2,
        "output": "decisions.csv",
    }
    assert "warning: decisions.csv: reviewers differ on 2 pairs" in said.err
    assert (tmp_path / "decisions.csv").read_text().startswith(first)
    table = decisions.read("decisions.csv")
    decided = decisions.decided(table, ["b", "a", "<i>", 7], HOSTILE, "decisions.csv")
    np.testing.assert_array_equal(decided.true, [True] * 3)
    left = review.label_studio_tasks(judged_tags(decided), "wscpml 1")
    assert [task["data"]["instance"] for task in left] == ["7", "b"]


def of_second_task(*annotations):
    """An export in which the second task, on "7" with one tag, has these annotations."""
    tasks = exported()
    tasks[1]["annotations"] = list(annotations)
    return tasks


@pytest.mark.parametrize("form", [lambda tasks: tasks, in_short])
def test_a_label_that_was_added_and_is_not_ticked_any_more_is_taken_back(
    tmp_path, monkeypatch, capsys, form
):
    monkeypatch.chdir(tmp_path)
    tag, other = HOSTILE[1], HOSTILE[0]
    for choices, time in (([tag, other], LATER), ([tag], f"{LATER}x"), ([tag], f"{LATER}x")):
        export = form(of_second_task(annotation(choices, time=time)))
        Path("export.json").write_text(json.dumps(export))
        main(["import-decisions", "export.json", "-o", "decisions.csv"])
    said = capsys.readouterr().out.splitlines()
    assert said == [
        "decisions.csv: 2 decisions are new, 0 were there",
        "decisions.csv: 1 decisions are new, 0 were there, 1 are taken back",
        "decisions.csv: 0 decisions are new, 1 were there",
    ]
    assert words(decisions.last_words(decisions.read("decisions.csv"))) == [("7", tag, "true")]


def test_only_what_the_same_reviewer_has_added_to_the_same_instance_is_taken_back():
    tag, other = HOSTILE[1], HOSTILE[0]
    said = [("7", other, "true", "2"), ("b", other, "true", "1"), ("7", "no", "false", "1")]
    there = pd.DataFrame(said, columns=["instance", "label", "decision", "reviewer"])
    export = of_second_task(
        annotation([]), annotation([other], time=f"{LATER}x"), annotation([], time=f"{LATER}y")
    )
    found = review.news(
        review.label_studio_decisions(export, "export.json"), decisions.checked(there, "there")
    )
    assert [(row["label"], row["decision"], row["time"][len(LATER) :]) for row in found] == [
        (tag, "false", ""),
        (tag, "false", "x"),
        (other, "true", "x"),
        (tag, "false", "y"),
        (other, "", "y"),
    ]
    assert {(row["instance"], row["reviewer"]) for row in found} == {("7", "1")}


@pytest.mark.parametrize("content", [None, b"[1, 2", b"\xff\xfe"])
def test_a_file_that_is_no_json_is_one_line_and_nothing_is_written(tmp_path, monkeypatch, content):
    monkeypatch.chdir(tmp_path)
    if content:
        (tmp_path / "export.json").write_bytes(content)
    with pytest.raises(SystemExit) as end:
        main(["import-decisions", "export.json", "-o", "decisions.csv"])
    assert str(end.value).startswith("export.json: cannot be read as JSON (")
    assert not (tmp_path / "decisions.csv").exists()
