import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from wscpml import artifacts
from wscpml.datasets import own
from wscpml.datasets.encoding import DIRECTIONS, Encoding, encode
from wscpml.errors import UserError

N = 60


def songs(n=N, seed=0):
    """Columns of every kind, with holes."""
    rng = np.random.default_rng(seed)
    moods = np.array(
        ["slow blues for guitar", "fast drums and bass", "a quiet piano", None], object
    )
    table = pd.DataFrame(
        {
            "tempo": rng.normal(120, 20, n).round(1),
            "live": rng.random(n) < 0.3,
            "genre": rng.choice(np.array(["pop", "folk", "jazz", None], object), n),
            "released": pd.to_datetime("2000-03-01")
            + pd.to_timedelta(rng.integers(0, 3000, n), "D"),
            "about": rng.choice(moods, n),
            "vector": list(rng.normal(size=(n, 3))),
        }
    )
    table["about"] = table.about + " no. " + pd.Series(range(n)).astype(str)
    table.loc[3, ["tempo", "released", "vector"]] = None
    return table


def encoded(table, **given):
    return encode(table, "x.csv", own.on_command_line, given)


@pytest.fixture
def stored(tmp_path, monkeypatch):
    """The encoding of the songs in files."""
    monkeypatch.chdir(tmp_path)
    artifacts.write_directory("encoding", encoded(songs()).encoding.to_files())
    return Path("encoding")


def read(directory):
    return Encoding.from_files(artifacts.read_directory(directory, Encoding.FILES))


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        (pd.Series(["[1, 2]"] * 15 + ["[1]"] + ["[1, 2]"] * 4), "has 1 numbers, the others have 2"),
        (pd.Series([None] * 15 + [np.inf] + [1.0] * 4), "inf is not a finite number"),
    ],
)
def test_the_row_of_a_cell_is_that_of_the_file_where_others_are_held_out(cells, told):
    table = pd.DataFrame({"v": cells, "x": range(20)})
    with pytest.raises(UserError, match=rf"^x\.csv: row 16, column 'v': {told}"):
        encode(table, "x.csv", own.in_python, None, np.arange(20) >= 10)


def test_a_table_of_numbers_alone_is_what_it_was():
    table = pd.DataFrame({"a": [1, 2], "b": [True, False], "c": [0.5, -1e300]})
    found = encoded(table)
    assert found.encoding is None
    np.testing.assert_array_equal(found.matrix, table.to_numpy(float))
    assert found.names == ["a", "b", "c"]


def test_a_missing_number_is_the_median_and_says_so():
    found = encoded(pd.DataFrame({"a": [1.0, np.nan, 3.0, 7.0], "b": [1, 2, 3, 4]}))
    assert found.names == ["a", "a missing", "b"]
    assert found.matrix.tolist() == [[1, 0, 1], [3, 1, 2], [3, 0, 3], [7, 0, 4]]
    later = found.encoding(pd.DataFrame({"b": ["NA", "2"], "a": [None, "5"]}), "new.csv")
    assert later.tolist() == [[3, 1, 2.5], [5, 0, 2]]


def test_categories_have_a_column_each_and_rare_and_unknown_ones_share_one():
    found = encoded(pd.DataFrame({"g": ["pop"] * 8 + ["folk"] * 6 + [None] * 5 + ["polka"] * 2}))
    assert found.names == ["g=", "g=folk", "g=pop", "g other"]
    assert found.matrix.sum(axis=0).tolist() == [5, 6, 8, 2]
    later = found.encoding(pd.DataFrame({"g": ["pop", "ska", None]}), "new.csv")
    assert later.tolist() == [[0, 0, 1, 0], [0, 0, 0, 1], [1, 0, 0, 0]]


def test_categories_may_be_written_as_numbers():
    found = encoded(pd.DataFrame({"g": [1, 2] * 5}), g="category")
    assert found.names == ["g=1", "g=2", "g other"]
    later = found.encoding(pd.DataFrame({"g": [2.0, np.nan]}), "new.csv")
    assert later.tolist() == [[0, 1, 0], [0, 0, 1]]


def test_dates_are_their_parts_and_have_hours_if_some_do():
    days = ["2024-05-31", "2023-01-02", None, "2023-01-02"]
    found = encoded(pd.DataFrame({"d": days}))
    assert found.names == ["d year", "d month", "d day", "d weekday", "d missing"]
    assert found.matrix[[0, 2]].tolist() == [[2024, 5, 31, 4, 0], [2023, 1, 2, 0, 1]]
    old = found.encoding(pd.DataFrame({"d": ["1066-10-14", "9999-12-31"]}), "new.csv")
    assert old[:, :3].tolist() == [[1066, 10, 14], [9999, 12, 31]]
    found = encoded(pd.DataFrame({"d": ["31/5/2024", "2/1/2023"]}))
    assert found.encoding.encoders[0].how == "year, month, day, weekday of dates such as 31/05/2024"
    found = encoded(pd.DataFrame({"d": ["2024-05-31 10:00", "2023-01-02 00:00"]}))
    assert found.names[-1] == "d hour"
    assert found.matrix[:, -1].tolist() == [10, 0]


def test_texts_that_share_words_are_near_each_other():
    texts = ["slow guitar blues", "fast drums", "guitar blues at night", "loud drums"] * 5
    found = encoded(pd.DataFrame({"t": [f"{text} {i}" for i, text in enumerate(texts)]}))
    assert "t: guitar" in found.names
    assert sum(name.startswith("t letters") for name in found.names) <= DIRECTIONS
    misspelt = found.encoding(pd.DataFrame({"t": ["a guitarr", "the drumms"]}), "new.csv")
    likeness = misspelt @ found.matrix[[0, 1]].T
    assert likeness[0, 0] > likeness[0, 1]
    assert likeness[1, 1] > likeness[1, 0]


def test_a_text_without_words_that_two_rows_share_is_left_out():
    found = encoded(pd.DataFrame({"t": ["ab cd", "ef gh", "ij kl"], "x": [1, 2, 3]}))
    assert found.columns[0].why == "has no word that two rows share"
    assert found.names == ["x"]


def test_vectors_are_their_numbers():
    found = encoded(pd.DataFrame({"v": [[1, 2], (3, 4), None, np.array([5, 6])]}))
    assert found.names == ["v 1", "v 2", "v missing"]
    assert found.matrix.tolist() == [[1, 2, 0], [3, 4, 0], [3, 4, 1], [5, 6, 0]]


def test_vectors_may_be_written_as_text():
    found = encoded(pd.DataFrame({"v": ["[1, 2e0]", " [3,4]", None, "[5 6]"]}))
    assert found.matrix.tolist() == [[1, 2, 0], [3, 4, 0], [3, 4, 1], [5, 6, 0]]
    new = pd.DataFrame({"v": ["[7, 8]", "7 8"]})
    assert found.encoding(new[:1], "new.csv").tolist() == [[7, 8, 0]]
    with pytest.raises(UserError, match="row 2, column 'v': is not a list of numbers"):
        found.encoding(new, "new.csv")


def test_what_is_fitted_does_not_depend_on_rows_that_are_held_out():
    table, train = songs(), np.arange(N) < 40
    changed = table.copy()
    changed.loc[50:, ["tempo", "about"]] = [1e9, "unheard of"]
    one, other = (encode(each, "x", own.in_python, {}, train).matrix for each in (table, changed))
    np.testing.assert_array_equal(one[:40], other[:40])


def test_a_row_has_the_same_numbers_whatever_is_beside_it():
    found = encoded(songs())
    for rows in (slice(5, 6), slice(40, 60)):
        alone = found.encoding(songs()[rows], "new.csv")
        np.testing.assert_array_equal(alone, found.matrix[rows])


def test_read_back_in_another_process_it_gives_the_same_bits(stored):
    new = songs(seed=1).assign(extra="x")
    new.loc[5, "genre"] = "unknown"
    new.loc[6, new.columns.drop("live")] = None
    artifacts.write("new.parquet", new)
    code = (
        "from wscpml import artifacts\n"
        "from wscpml.datasets.encoding import Encoding\n"
        "files = artifacts.read_directory('encoding', Encoding.FILES)\n"
        "X = Encoding.from_files(files)(artifacts.read('new.parquet'), 'new.parquet')\n"
        "artifacts.write('X.npy', X)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    expected = encoded(songs()).encoding(new, "new.parquet")
    assert np.isfinite(expected).all()
    assert artifacts.read("X.npy").tobytes() == expected.tobytes()


def test_the_same_table_gives_the_same_files(tmp_path, stored):
    again = tmp_path / "again"
    artifacts.write_directory(again, encoded(songs()).encoding.to_files())
    for name in Encoding.FILES:
        assert (again / name).read_bytes() == (stored / name).read_bytes()


@pytest.mark.parametrize(
    "damage",
    [
        lambda plain, _: plain[0].update(role="pickle"),
        lambda plain, _: plain[0].pop("median"),
        lambda plain, _: plain[0].update(more=1),
        lambda plain, _: plain[4]["words"].pop(),
        lambda _, arrays: arrays.pop("4.directions"),
        lambda _, arrays: arrays.update({"4.directions": np.zeros((2, 2))}),
        lambda plain, _: plain.append(7),
    ],
)
def test_what_is_no_encoding_is_refused(stored, damage):
    files = artifacts.read_directory(stored, Encoding.FILES)
    damage(*files.values())
    with pytest.raises(ValueError, match="its encoding of columns is not one"):
        Encoding.from_files(files)


def refusal(table, encoding=None):
    with pytest.raises(UserError) as raised:
        encoding(table, "new.csv", 10) if encoding else encoded(table)
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_cells_that_cannot_be_taken_are_told_with_their_rows(stored):
    found, new = read(stored), songs(seed=1)
    for column, value, told in (
        ("tempo", "fast", "'fast' is not a number"),
        ("tempo", np.inf, "inf is not a finite number"),
        ("released", "soon", "'soon' is not a date such as 2024-05-31"),
        ("vector", [1.0, 2.0], "has 2 numbers, the others have 3"),
        ("vector", [1.0, 2.0, [3.0]], "is not a list of numbers"),
        ("vector", [1.0, 2.0, np.nan], "is not a list of numbers"),
    ):
        wrong = new.astype(object)
        wrong.at[2, column] = value
        assert refusal(wrong, found) == (
            f"new.csv: row 12, column {column!r}: {told}; mend that value"
        )
    assert refusal(new.drop(columns="genre"), found).startswith("new.csv: has no column genre,")


def test_tables_that_cannot_be_taken_are_told():
    two = pd.DataFrame([[1, 2]], columns=["a", "a"])
    assert refusal(two) == "x.csv: column 'a' is there twice, as numbers 1 and 2; rename one"
    nothing = pd.DataFrame({"a": [None, None], "b": ["x1", "x2"]})
    assert refusal(nothing) == (
        "x.csv: has no column to learn from: 'a' is empty in every row; 'b' is one word, another "
        "in nearly every row, as ids are"
    )


ODD = {
    "nullable": pd.array([1, None] * 15, dtype="Int64"),
    "switches with holes": pd.array([True, None] * 15, dtype="boolean"),
    "categories of numbers": pd.Categorical([1, None] * 15),
    "days": pd.period_range("2020", periods=30, freq="D"),
    "spans": pd.to_timedelta(range(30), "s"),
    "with a zone": pd.date_range("2020", periods=30, tz="Europe/Berlin"),
    "blank": [" "] * 30,
    "decimals": [Decimal("1.5"), None] * 15,
    "large": [10**30, 1] * 15,
    "sets": [{1, 2}, {3}] * 15,
    "lists of words": [["a", "b"]] * 30,
    "empty lists": [[]] * 30,
    "matrices": [np.zeros((2, 2))] * 30,
    "records": [{"a": 1}] * 30,
    "long words": ["x" * 9999 + f" {i}" for i in range(30)],
    "other signs": ["\x00 a 😀", "wörld ß", None] * 10,
    "bytes": [b"a", b"b"] * 15,
}


@pytest.mark.parametrize("role", [None, "text", "category", "number", "date", "ignore"])
@pytest.mark.parametrize("odd", ODD)
def test_an_odd_column_becomes_finite_numbers_or_one_line(odd, role):
    table = pd.DataFrame({"c": pd.Series(ODD[odd]), "x": range(30)})
    line, found = "", None
    try:
        found = encoded(table, **({"c": role} if role else {}))
    except UserError as mistake:
        line = str(mistake)
    if found is None:
        assert "column 'c'" in line
        assert "\n" not in line
        return
    assert np.isfinite(found.matrix).all()
    if found.encoding:
        np.testing.assert_array_equal(found.encoding(table[7:8], "x"), found.matrix[7:8])


def test_a_column_of_which_the_training_rows_know_nothing_is_no_mistake():
    train = np.arange(10) < 5
    days = pd.to_datetime(["2024-05-31"] * 10).where(~train)
    table = pd.DataFrame({"n": np.where(train, np.nan, 1.0), "d": days, "x": range(10)})
    matrix = encode(table, "x", own.in_python, {}, train).matrix
    assert np.isfinite(matrix).all()
