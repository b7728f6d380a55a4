import multiprocessing

import numpy as np
import pandas as pd
import pytest

from wscpml.errors import UserError
from wscpml.quality import decisions
from wscpml.quality.decisions import Decided

BREAKS_OFF = "the last line of the decisions breaks off, and is left out"
HEADER = "instance,label,decision,reviewer,time,note\n"


def write(path, text):
    path.write_text(text)
    return path


def table(*rows):
    """Rows of instance, label, decision[, reviewer[, time]]."""
    found = pd.DataFrame([dict(zip(decisions.COLUMNS, row, strict=False)) for row in rows])
    return decisions.checked(found, "decisions=")


def pairs(found):
    return list(found[["instance", "label", "decision"]].itertuples(index=False, name=None))


def mistake(path):
    with pytest.raises(UserError) as told:
        decisions.read(path)
    text = str(told.value)
    assert "\n" not in text
    return text.removeprefix(f"{path}: ")


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize(
    "words",
    [["true", "false"], ["TRUE", " False "], ["1", "0"], [1, 0], [True, False], [1.0, 0.0]],
)
def test_decisions_are_true_and_false_however_they_are_written(tmp_path, kind, words):
    path = tmp_path / f"decisions.{kind}"
    given = pd.DataFrame({"decision": words, "instance": [7, 8], "label": ["NA", "R&B, old"]})
    given.to_csv(path, index=False) if kind == "csv" else given.to_parquet(path)
    found = decisions.read(path)
    assert pairs(found) == [("7", "NA", "true"), ("8", "R&B, old", "false")]
    assert found.columns.tolist() == list(decisions.COLUMNS)
    assert set(found.note) == {""}


def test_the_last_word_on_a_pair_counts_by_the_order_of_the_rows():
    found = table(
        ("a", "rock", "true", "ann", "2030"),
        ("b", "rock", "true", "ann"),
        ("a", "jazz", "false", "ann"),
        ("a", "rock", "false", "bob", "2020"),
    )
    assert pairs(decisions.last_words(found)) == [
        ("b", "rock", "true"),
        ("a", "jazz", "false"),
        ("a", "rock", "false"),
    ]


def test_an_empty_decision_takes_back_what_that_reviewer_said():
    found = table(
        ("a", "rock", "true", "ann"),
        ("a", "rock", "false", "bob"),
        ("a", "rock", "", "bob"),
        ("b", "jazz", "true", "bob"),
        ("b", "jazz", "", "bob"),
    )
    assert pairs(decisions.last_words(found)) == [("a", "rock", "true")]
    assert not len(decisions.contradictions(found))


def test_contradictions_are_the_last_words_of_reviewers_that_differ():
    found = decisions.contradictions(
        table(
            ("a", "rock", "true", "ann"),
            ("b", "rock", "true", "ann"),
            ("a", "jazz", "true", "ann"),
            ("a", "rock", "false", "bob"),
            ("a", "jazz", "false", "bob"),
            ("a", "jazz", "true", "bob"),
            ("b", "rock", "true", "bob"),
        )
    )
    assert found.to_dict("records") == [
        {"instance": "a", "label": "rock", "reviewer": "ann", "decision": "true"},
        {"instance": "a", "label": "rock", "reviewer": "bob", "decision": "false"},
    ]


def test_what_may_not_be_meant_is_told():
    one_mind = table(("a", "rock", "true", "ann", "1"), ("a", "rock", "false", "ann", "2"))
    assert not decisions.remarks(one_mind)
    both = table(("a", "rock", "true", "ann"), ("a", "rock", "false", "ann"))
    assert decisions.remarks(both) == [
        "1 pairs are decided both ways by one reviewer at one time, such as 'a', 'rock'; "
        "the last row counts"
    ]
    two = table(("a", "rock", "true", "ann"), ("a", "rock", "false", "bob"))
    assert decisions.remarks(two) == [
        "reviewers differ on 1 pairs, such as 'a', 'rock'; the last word counts"
    ]


def test_pairs_become_places_in_the_data():
    found = decisions.decided(
        table(("9", "jazz", "true"), ("7", "rock", "false"), ("9", "jazz", "false")),
        [7, 8, 9],
        ["rock", "jazz"],
        "decisions=",
    )
    assert found.row.tolist() == [0, 2]
    assert found.label.tolist() == [0, 1]
    assert found.true.tolist() == [False, False]


def test_what_is_decided_is_told_apart_from_what_is_not():
    found = Decided(np.array([0, 1]), np.array([1, 0]), np.array([True, False]))
    assert found.words(np.array([[1, 1], [1, 0]])).tolist() == ["", "true", "false"]
    assert found.undecided(np.array([[1, 1], [1, 1]])).tolist() == [[1, 0], [0, 1]]
    assert found.added_to(np.zeros((2, 2))).tolist() == [[0, 1], [0, 0]]


def test_what_is_decided_of_some_rows_is_counted_among_them():
    found = Decided(np.array([0, 1, 3]), np.array([1, 0, 1]), np.array([True, False, True]))
    some = found.of_rows(np.array([False, True, True, True]))
    assert (some.row.tolist(), some.label.tolist()) == ([0, 2], [0, 1])
    assert some.true.tolist() == [False, True]


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (
            [("a", "rock", "true"), ("x", "rock", "true")],
            "instance 'x' not in the data (1 such); mend the name, or leave the rows out",
        ),
        (
            [("a", "roll", "true"), ("b", "rolls", "true")],
            "label 'roll', 'rolls' not in the data (2 such); mend the name, or leave the rows out",
        ),
        (
            [("x", "rock", "true"), ("y", "rock", "true")],
            "2 of its 2 instances are not in the data (x, y): these seem to be the decisions on "
            "another data set; give those on this one",
        ),
    ],
)
def test_names_that_are_not_in_the_data_are_refused(rows, told):
    with pytest.raises(UserError) as mistake:
        decisions.decided(table(*rows), ["a", "b"], ["rock", "jazz"], "decisions=")
    assert str(mistake.value) == f"decisions=: {told}"


def test_instances_must_have_names_of_their_own():
    with pytest.raises(UserError, match="decisions=: instance 'a' is there twice in the data"):
        decisions.decided(table(("a", "rock", "true")), ["a", "a"], ["rock"], "decisions=")


@pytest.mark.parametrize("text", ["", HEADER, "instance,label,decision", "instance,lab"])
def test_a_table_without_rows_decides_nothing(tmp_path, text):
    found = decisions.read(write(tmp_path / "x.csv", text))
    assert not len(found)
    nothing = decisions.decided(found, ["a"], ["rock"], "x.csv")
    assert len(nothing.row) == len(nothing.label) == len(nothing.true) == 0
    assert nothing.added_to(np.ones((1, 1))).tolist() == [[1]]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("instance,label\na,rock\n", "has no column 'decision'; decisions have the columns"),
        ("instance,label,label,decision\n", "column 'label' is there twice, as numbers 2 and 3"),
        ("instance,label,decision\na,rock,maybe\n", "row 1: 'maybe' is no decision; write true"),
        ("instance,label,decision\na,rock,maybe", "row 1: 'maybe' is no decision; write true"),
        ("instance,label,decision\na,rock,1\n,rock,1\n", "row 2: instance is empty"),
        ("instance,label,decision\na,,true\n", "row 1: label is empty"),
        ("instance,label,decision\na,true\nb,rock,true\n", "row 1: has 2 cells"),
    ],
)
def test_a_table_that_is_wrong_is_one_line(tmp_path, text, told):
    assert mistake(write(tmp_path / "x.csv", text)).startswith(told)


def test_a_file_that_is_none_is_one_line(tmp_path):
    assert mistake(tmp_path / "x.csv") == "no such file of decisions"
    assert mistake(tmp_path / "x.json") == "decisions are a table, .csv or .parquet"
    damaged = tmp_path / "x.parquet"
    damaged.write_bytes(b"PAR1")
    assert mistake(damaged).startswith("cannot be read as parquet")
    damaged = tmp_path / "x.csv"
    damaged.write_bytes(b"instance,label,decision\n\xff,rock,true\n")
    assert "UTF" in mistake(damaged)


def test_a_person_s_table_in_a_frame_is_checked_alike():
    columns = ["instance", "label", "label", "decision"]
    with pytest.raises(UserError, match="decisions=: column 'label' is there twice; rename one"):
        decisions.taken(pd.DataFrame([["a", "b", "c", "true"]], columns=columns))
    with pytest.raises(UserError, match="decisions=: must be a table or a file, got list"):
        decisions.taken([("a", "b", "true")])


def test_what_is_appended_is_read_again(tmp_path):
    path = tmp_path / "new/journal.csv"
    decisions.append(
        path,
        [
            {"instance": 7, "label": 'say "hi", you', "decision": True, "reviewer": "ann"},
            {"instance": 7, "label": "rock", "decision": np.False_, "note": "two\nlines"},
        ],
    )
    decisions.append(path, [{"instance": 7, "label": "rock", "decision": None}])
    assert path.read_text() == (
        HEADER + '7,"say ""hi"", you",true,ann,,\n7,rock,false,,,two lines\n7,rock,,,,\n'
    )
    assert pairs(decisions.last_words(decisions.read(path))) == [("7", 'say "hi", you', "true")]


def test_a_person_s_own_columns_separator_and_missing_end_of_line_are_kept(tmp_path):
    path = write(tmp_path / "x.csv", "decision;id;label;instance\ntrue;1;rock;a")
    decisions.append(path, [{"instance": "b", "label": "jazz", "decision": False}])
    assert path.read_text() == "decision;id;label;instance\ntrue;1;rock;a\nfalse;;jazz;b\n"
    assert pairs(decisions.read(path)) == [("a", "rock", "true"), ("b", "jazz", "false")]
    with pytest.raises(UserError, match="has no column 'reviewer'; add it, or name a new file"):
        decisions.append(
            path, [{"instance": "b", "label": "jazz", "decision": True, "reviewer": "ann"}]
        )


@pytest.mark.parametrize(
    "header",
    [HEADER, "instance,label,decision\n"],
)
def test_a_journal_may_break_off_anywhere_in_its_last_line(tmp_path, header):
    path = tmp_path / "x.csv"
    rows = [("a", "rock", "true"), ('"é ""b"""', "jazz", "false")]
    first, last = (",".join([*row, *[""] * (header.count(",") - 2)]) + "\n" for row in rows)
    before, whole = (header + first).encode(), (header + first + last).encode()
    for end in range(len(before) + 1, len(whole) + 1):
        path.write_bytes(whole[:end])
        found = decisions.read(path)
        complete = end >= len(whole) - 1
        assert pairs(found)[1:] == ([('é "b"', "jazz", "false")] if complete else [])
        told = decisions.remarks(found)
        assert told == ([] if complete else [BREAKS_OFF])
        decisions.append(path, [{"instance": "c", "label": "rock", "decision": True}])
        assert pairs(decisions.read(path))[-1] == ("c", "rock", "true")
        assert len(decisions.read(path)) == 2 + complete


@pytest.mark.parametrize("character", ["é", "€", "🎵"])
def test_a_journal_may_break_off_within_a_character_of_a_note(tmp_path, character):
    path, before = tmp_path / "x.csv", (HEADER + "a,rock,true,ann,,\n").encode()
    last = f"b,jazz,false,ann,,{character}".encode()
    for cut in range(1, len(character.encode())):
        path.write_bytes(before + last[:-cut])
        assert decisions.remarks(decisions.read(path)) == [BREAKS_OFF]
        decisions.append(path, [{"instance": "c", "label": "rock", "decision": True}])
        assert pairs(decisions.read(path)) == [("a", "rock", "true"), ("c", "rock", "true")]


def test_a_last_line_that_is_no_text_is_told(tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes((HEADER + "a,rock,true,ann,,").encode() + b"caf\xe9 noir")
    with pytest.raises(UserError, match="UTF-8"):
        decisions.read(path)


def test_a_last_note_over_two_lines_is_whole(tmp_path):
    path = write(tmp_path / "x.csv", HEADER + 'a,rock,true,ann,,"one\ntwo"')
    assert decisions.read(path).note.tolist() == ["one\ntwo"]


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"instance": "a\nb", "label": "rock", "decision": True}, "has a line break"),
        ({"instance": "a\ud800", "label": "rock", "decision": True}, "has half of a character"),
        ({"instance": "a", "label": "rock", "decision": "maybe"}, "is no decision"),
        ({"instance": "a", "decision": True}, "is no decision"),
    ],
)
def test_nothing_is_appended_of_what_cannot_be_read_again(tmp_path, row, told):
    path = tmp_path / "x.csv"
    with pytest.raises(UserError, match=told):
        decisions.append(path, [{"instance": "a", "label": "rock", "decision": True}, row])
    assert not path.exists()


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ('instance,label,decision,note\na,rock,true,"x\n', 2),
        ('instance,label,decision,"note\n', 1),
        ('instance,label,decision,note,"x', 1),
    ],
)
def test_a_quote_that_is_left_open_would_hide_what_is_appended(tmp_path, content, line):
    path = tmp_path / "x.csv"
    path.write_text(content)
    row = {"instance": "b", "label": "rock", "decision": True}
    for use in (decisions.read, lambda path: decisions.append(path, [row])):
        with pytest.raises(
            UserError, match=rf"x\.csv: line {line}: a quote is left open; close it"
        ):
            use(path)
    assert path.read_text() == content


def test_only_csv_is_appended_to_and_where_it_can_be_written(tmp_path):
    with pytest.raises(UserError, match="are appended to a .csv alone"):
        decisions.append(tmp_path / "x.parquet", [])
    (tmp_path / "x.csv").mkdir()
    with pytest.raises(UserError, match="x.csv: cannot be written"):
        decisions.append(tmp_path / "x.csv", [])


def _append_many(path, reviewer):
    for i in range(50):
        decisions.append(
            path,
            [{"instance": i, "label": x, "decision": True, "reviewer": reviewer} for x in "ab"],
        )


def test_processes_that_append_at_once_do_not_mix_their_lines(tmp_path):
    path = tmp_path / "journal.csv"
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_append_many, args=(path, name)) for name in ("ann", "bob")]
    for each in writers:
        each.start()
    for each in writers:
        each.join()
    found = decisions.read(path)
    for name in ("ann", "bob"):
        said = found[found.reviewer == name]
        assert said.instance.tolist() == [str(i) for i in range(50) for _ in "ab"]
        assert set(np.diff(said.index.to_numpy()[:2])) == {1}
    assert len(found) == 200
