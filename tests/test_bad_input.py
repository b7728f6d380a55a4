"""What people get wrong in a table, each told in one line, in the words of every door."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from wscpml import WSCPML, label_confidence
from wscpml.cli import main
from wscpml.datasets import own
from wscpml.datasets.songs import WORDS, songs
from wscpml.errors import UserError

TABLE = songs(30)[0]
TAGS = np.array([[name in tags for name in WORDS] for tags in TABLE.tags], np.uint8)


def changed(row: int, column: str, value: object) -> pd.DataFrame:
    """The songs with another value in one cell."""
    cells = [value if i == row - 1 else cell for i, cell in enumerate(TABLE[column])]
    return TABLE.assign(**{column: pd.Series(cells, dtype=object)})


def with_lists(*cells: object) -> pd.DataFrame:
    """The songs with a column of lists, the last cell in the last row."""
    return TABLE.assign(sound=[cells[0]] * (len(TABLE) - 1) + [cells[-1]])


def with_tag_columns(value: object) -> pd.DataFrame:
    """The songs with columns of 0 and 1 for tags, but for a value in row 8 of that of folk."""
    tags = pd.DataFrame(TAGS, columns=[f"tag_{name.lower()}" for name in WORDS]).astype(object)
    tags.loc[7, "tag_folk"] = value
    return pd.concat([TABLE.drop(columns="tags"), tags], axis=1)


TWICE = TABLE.set_axis(["tempo" if name == "energy" else name for name in TABLE], axis=1)
MIXED = TABLE.assign(sound=pd.Series([*[["a", "b"], 3] * 14, "x", None], dtype=object))
WAYS = {
    "FILE": "--text, --category or --ignore",
    "params": "dataset.columns",
    "X": "columns=",
}
CELLS = {  # the table; the line, where a door's words are braces
    "text in one row of a number column": (
        changed(17, "tempo", "fast"),
        "row 17, column 'tempo': 'fast' is not a number such as '70.0', as most of the column; "
        "mend that value, or say what the column is by {}",
    ),
    "dates of two formats": (
        changed(9, "released", "31.12.1999"),
        "row 9, column 'released': '31.12.1999' is not a date such as '1988-12-10', as most of "
        "the column; mend that value, or say what the column is by {}",
    ),
    "two columns of one name": (
        TWICE,
        "column 'tempo' is there twice, as numbers 2 and 4; rename one",
    ),
}


@pytest.fixture(autouse=True)
def empty_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def command(capsys, *words: str) -> str:
    """The line that a command ends with."""
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    said = capsys.readouterr()
    assert not said.out
    assert all(line.startswith("warning: ") for line in said.err.splitlines())
    (line,) = str(ended.value.code).splitlines()
    return line


def refused(call, *args, **named) -> str:
    with pytest.raises(UserError) as mistake:
        call(*args, **named)
    (line,) = str(mistake.value).splitlines()
    return line


@pytest.mark.parametrize("case", CELLS)
def test_a_wrong_cell_is_one_line_through_every_door(case, capsys):
    table, line = CELLS[case]
    table.to_csv("x.csv", index=False)
    for words in (["describe"], ["clean", "-o", "clean.csv"], ["audit", "--html", "page.html"]):
        told = command(capsys, words[0], "x.csv", "--tags", "tags", "--id", "song", *words[1:])
        assert told == f"x.csv: {line.format(WAYS['FILE'])}"
    sources = own.Sources(Path("x.csv"), tags="tags", id="song", named=own.in_params)
    assert refused(own.load, sources) == f"x.csv: {line.format(WAYS['params'])}"
    features = table.drop(columns=["song", "tags"])
    told = refused(WSCPML().fit, features, table.tags)
    assert told == f"X: {in_memory(line).format(WAYS['X'])}"
    assert [*Path().iterdir()] == [Path("x.csv")]


def in_memory(line: str) -> str:
    """A line on a table that was never text, and has no column of ids."""
    line = line.replace("'fast' is not a number such as '70.0', as", "is text,")
    return line.replace("text, most of the column", "text, most of the column is a number").replace(
        "numbers 2 and 4", "numbers 1 and 3"
    )


FILES = {
    "mixed types": (
        MIXED,
        "x.jsonl",
        "row 2, column 'sound': has a number, those before have a list; mend that value",
    ),
    "lists of another length": (
        with_lists([1.0, 2.0], [1.0]),
        "x.parquet",
        "row 30, column 'sound': has 1 numbers, the others have 2; mend that value",
    ),
    "lists within lists": (
        with_lists([[1.0], [2.0]]),
        "x.parquet",
        "row 1, column 'sound': is not a list of numbers; mend that value",
    ),
    "a list within a list": (
        with_lists([1.0, 2.0], [[1.0], 2.0]),
        "x.jsonl",
        "row 30, column 'sound': has, in its list, a list, those before have a number; mend that "
        "value",
    ),
    "tags within tags": (
        TABLE.assign(tags=[[["Folk"]]] * len(TABLE)),
        "x.parquet",
        "row 1, column 'tags': has a list within the list; a row has one list of labels",
    ),
    "an empty cell of a tag": (
        with_tag_columns(None),
        "x.csv",
        "row 8, column 'tag_folk': is empty; write 1 where the label is given, and 0 where it is "
        "not",
    ),
    "another number for a tag": (
        with_tag_columns(2),
        "x.csv",
        "row 8, column 'tag_folk': 2 is not 0 or 1 (or -1 or 1); mend that value",
    ),
    "a word for a tag": (
        with_tag_columns("yes"),
        "x.csv",
        "row 8, column 'tag_folk': 'yes' is not a number; {tags} names one column of lists, or "
        "columns of 0 and 1",
    ),
}


@pytest.mark.parametrize("case", FILES)
def test_what_a_file_has_wrong_is_one_line(case, capsys):
    table, name, line = FILES[case]
    match name:
        case "x.jsonl":
            table.to_json(name, orient="records", lines=True)
        case "x.parquet":
            table.to_parquet(name)
        case _:
            table.to_csv(name, index=False)
    tags = "tags" if "tags" in table else "tag_*"
    told = command(capsys, "describe", name, "--tags", tags, "--id", "song")
    assert told == f"{name}: {line.format(tags='--tags')}"
    sources = own.Sources(Path(name), tags=tags, id="song", named=own.in_params)
    assert refused(own.load, sources) == f"{name}: {line.format(tags='dataset.tags')}"


def test_a_column_all_missing_is_left_out_and_told(capsys):
    TABLE.assign(mood=np.nan).to_csv("x.csv", index=False)
    main(["describe", "x.csv", "--tags", "tags", "--id", "song"])
    said = capsys.readouterr().out
    assert "mood          left out: is empty in every row\n" in said
    assert "warning: x.csv: column 'mood' is empty in every row: it is left out\n" in said


def test_what_is_not_utf_8_is_told_with_its_line(capsys):
    text = TABLE.to_csv(index=False)
    end = len(text.split("song 5,")[0]) + len("song 5")
    content = text[:end].encode() + b"\xe9" + text[end:].encode()
    Path("x.csv").write_bytes(content)
    Path("x.jsonl").write_bytes(
        TABLE.to_json(orient="records", lines=True).encode().replace(b"song 5", b"song \xe95")
    )
    told = [command(capsys, "describe", name, "--tags", "tags") for name in ("x.csv", "x.jsonl")]
    assert told[0] == f"x.csv: is not UTF-8 text (line 6, byte {end}); save it as UTF-8"
    assert told[1].startswith("x.jsonl: is not UTF-8 text (line 5, byte ")


def test_an_excel_file_of_two_sheets_is_told_with_their_names(capsys):
    with pd.ExcelWriter("x.xlsx") as book:
        TABLE.to_excel(book, sheet_name="songs", index=False)
        TABLE.to_excel(book, sheet_name="more", index=False)
    assert command(capsys, "describe", "x.xlsx", "--tags", "tags") == (
        "x.xlsx: has 2 sheets, songs, more; save the one with the table as a file of its own"
    )


def probabilities(row: int, value: object) -> pd.DataFrame:
    """Probabilities of all tags, but for a value in one row of jazz."""
    table = pd.DataFrame(0.4, TABLE.song, list(WORDS)).astype(object)
    table.loc[f"song {row}", "Jazz"] = value
    return table


GIVEN = {
    "above 1": (probabilities(5, 1.5), "row 'song 5', column 'Jazz': must be from 0 to 1, got 1.5"),
    "below 0": (probabilities(5, -1), "row 'song 5', column 'Jazz': must be from 0 to 1, got -1"),
    "NaN": (probabilities(5, np.nan), "row 'song 5', column 'Jazz': must be from 0 to 1, got nan"),
    "text": (
        probabilities(5, "high"),
        "row 'song 5', column 'Jazz': must be from 0 to 1, got 'high'",
    ),
    "a row less": (probabilities(5, 0.5)[:-1], "has no row 'song 30', which the candidates have"),
    "a column less": (
        probabilities(5, 0.5).drop(columns="Folk"),
        "has no column 'Folk', which the candidates have",
    ),
}


@pytest.mark.parametrize("case", GIVEN)
def test_probabilities_that_are_none_are_told_with_row_and_column(case, capsys):
    table, line = GIVEN[case]
    candidates = pd.DataFrame(TAGS, TABLE.song, list(WORDS))
    assert refused(label_confidence, candidates, table) == f"probabilities: {line}"
    features = TABLE.set_index("song")[["tempo", "energy"]].fillna(0)
    model = WSCPML()
    assert refused(model.fit, features, candidates, probabilities=table) == f"probabilities: {line}"
    features.reset_index().to_csv("x.csv", index=False)
    candidates.reset_index().to_csv("tags.csv", index=False)
    table.reset_index().to_csv("oof.csv", index=False)
    files = ["x.csv", "tags.csv", "--id", "song", "--probabilities", "oof.csv"]
    told = command(capsys, "clean", *files, "-o", "y.csv")
    assert told == f"oof.csv: --probabilities: {line}"


@pytest.mark.parametrize("shape", [(29, 6), (30, 5), (30,)])
def test_probabilities_of_another_shape_are_refused(shape):
    told = " x ".join(map(str, shape))
    line = f"probabilities: is {told}, and must be 30 x 6, as the candidates are"
    assert refused(label_confidence, TAGS, np.full(shape, 0.4)) == line


Y = {
    "an empty cell": (None, "is empty; write 1 where the label is given, and 0 where it is not"),
    "another number": (2, "2 is not 0 or 1 (or -1 or 1); mend that value"),
    "a word": ("yes", "'yes' is not 0 or 1 (or -1 or 1); mend that value"),
}


@pytest.mark.parametrize("case", Y)
def test_labels_in_python_that_are_none_are_told_with_row_and_column(case):
    value, line = Y[case]
    table = pd.DataFrame(TAGS, TABLE.song, list(WORDS)).astype(object)
    table.loc["song 8", "Folk"] = value
    X = TABLE.set_index("song")[["tempo", "energy"]].fillna(0)
    assert refused(WSCPML().fit, X, table) == f"y: row 'song 8', column 'Folk': {line}"
    told = refused(WSCPML().fit, X.to_numpy(), table.to_numpy())
    assert told == f"y: row 7, column 2: {line}"
    told = refused(label_confidence, table, np.full(TAGS.shape, 0.4))
    assert told == f"candidates: row 'song 8', column 'Folk': {line}"


def test_lists_in_python_that_are_none_are_refused():
    X = TABLE[["tempo", "energy"]].fillna(0)
    nested = [[["Folk"]]] * len(X)
    line = "y: row 1, column 'y': has a list within the list; a row has one list of labels"
    assert refused(WSCPML().fit, X, nested) == line
    few = TABLE.tags.tolist()[:20]
    assert refused(WSCPML().fit, X, few) == "y: has labels of 20 rows, and there are 30"
