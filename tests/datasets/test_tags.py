import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from wscpml.datasets import dataset, own, tags
from wscpml.errors import UserError

LABELS = ["R&B", "folk", "rock"]
MATRIX = [[0, 1, 1], [1, 0, 0], [0, 0, 0], [0, 0, 1]]


def read(cells, separator=None):
    column = pd.Series(cells, name="tags")
    found = tags.read_lists(column, separator, "x.csv", own.on_command_line)
    return *found.indicator(), found.remarks


@pytest.mark.parametrize(
    ("cells", "separator"),
    [
        (["rock;folk", "R&B", None, "rock"], None),
        ([" rock ;; folk;", "R&B;R&B", "", "rock"], None),
        (["rock, folk", "R&B", None, "rock"], None),
        (["rock|folk", "R&B", None, "rock"], None),
        (["rock/folk", "R&B", None, "rock"], "/"),
        (["rock and folk", "R&B", None, "rock"], " and "),
        (['["rock", "folk"]', '["R&B"]', "[]", '["rock", null]'], None),
        (["['rock', 'folk']", "['R&B']", None, "['rock']"], None),
        ([["rock", "folk"], ["R&B"], [], ["rock"]], None),
        ([np.array(["rock", "folk"]), ("R&B",), None, {"rock"}], None),
        ([["rock", "folk"], "R&B", None, '["rock"]'], None),
        ([["rock", "folk", np.nan], ["R&B", None], [pd.NA], ["rock"]], None),
        (pd.Series(["rock;folk", "R&B", None, "rock"], dtype="category"), None),
    ],
)
def test_every_form_of_a_list_gives_the_same_labels(cells, separator):
    names, matrix, _ = read(cells, separator)
    assert names == LABELS
    assert matrix.tolist() == MATRIX


def test_numbers_in_lists_are_labels_that_are_whole_where_they_can_be():
    assert read([[1, 2], [1.0, np.nan], [1.5]])[0] == ["1", "1.5", "2"]


def test_a_stray_mark_is_not_taken_for_what_stands_between_labels():
    cells = ["R&amp;B, jazz", *["rock, jazz"] * 11]
    names, _, told = read(cells)
    assert names == ["R&amp;B", "jazz", "rock"]
    assert told[0].startswith(
        "x.csv: column 'tags': ',' is taken for what stands between labels, 12"
    )
    assert read(cells, ";")[::2] == (["B, jazz", "R&amp", "rock, jazz"], [])
    names, _, told = read(["Smith, John; Doe, Jane", *["Smith, John"] * 5])
    assert names == ["Doe, Jane", "Smith, John"]
    assert told == [
        "x.csv: column 'tags': 1 cells have ';', 6 have ','; if that stands between labels, give "
        "it as --separator"
    ]


def test_columns_of_zero_and_one_are_told_from_lists():
    for cells in (["1", "0", " 1"], [1.0, -1.0, 1.0], ["True", "false", "true"]):
        found = tags.of_zero_and_one(pd.Series(cells))
        assert (found > 0).tolist() == [True, False, True]
    assert tags.of_zero_and_one(pd.Series([1.0, np.nan])).isna().tolist() == [False, True]
    for cells in (["1", "0", "-1"], ["1;0"], [[1], [0]], [None, None], ["rock", "1"]):
        assert tags.of_zero_and_one(pd.Series(cells)) is None


def test_what_was_found_by_looking_is_told():
    assert read(["a,b", "c", "d|e,f"])[2] == [
        "x.csv: column 'tags': ',' is taken for what stands between labels, 2 cells have it; if it "
        "does not, give what does as --separator"
    ]
    assert read(["a;b", "c,d"])[2] == []
    assert read(["a", "b"])[2] == []
    assert read(["a/b", "c"])[2] == [
        "x.csv: column 'tags': no cell has ';', 1 have '/'; if that stands between labels, give it "
        "as --separator"
    ]
    assert read(["a", "b"], "+")[2] == [
        "x.csv: column 'tags': no cell has '+', so each cell is one label"
    ]
    assert read(['["a", "b"', "{'c'}"], ";")[2][-1] == (
        "x.csv: column 'tags': 2 cells look like JSON and are no lists, such as '[\"a\", \"b\"'; "
        "they are cut at ';'"
    )


@pytest.mark.parametrize(
    ("cells", "line"),
    [
        (["a", '["b", ["c"]]'], "row 2, column 'tags': has a list within the list"),
        ([["a"], [["b"]]], "row 2, column 'tags': has a list within the list"),
        ([["a"], 7], "row 2, column 'tags': 7 is not a list of labels"),
    ],
)
def test_what_is_no_list_of_labels_is_refused_with_its_row(cells, line):
    with pytest.raises(UserError) as raised:
        read(cells)
    assert str(raised.value).startswith(f"x.csv: {line}")


def test_variants_are_found_and_merged_under_the_most_frequent_name():
    names = ["Hip Hop", "hip  hop", "jazz", "HIP HOP"]
    labels = np.array([[1, 0, 1, 0], [0, 1, 0, 1], [0, 1, 0, 0]], np.uint8)
    groups = tags.variants(names, labels.sum(axis=0))
    assert groups == [[1, 0, 3]]
    counts = np.array([0, 2, 1, 1], np.uint64)  # what the sum of bytes is
    assert tags.variants(names, counts) == [[1, 3, 0]]
    kept, (merged,) = tags.merged(names, [labels], groups)
    assert kept == ["hip  hop", "jazz"]
    assert merged.tolist() == [[1, 1], [1, 0], [1, 0]]


def test_odd_labels_are_told():
    labels = np.eye(20, dtype=np.uint8)
    names = [f"l{i}" for i in range(18)] + ["Rock", "rock"]
    told = tags.odd_labels(names, labels, own.in_params, merging=False)
    assert told == [
        "1 labels are written in several ways, 'Rock'/'rock': dataset.merge_variants makes one of "
        "each",
        "20 labels occur once, so that nothing can be learned of them: l0, l1, l2, l3, l4, ...; "
        "dataset.min_count leaves rare ones unjudged",
        "there are 20 different labels in 20 rows: is it the right column, and dataset.separator "
        "what stands between them?",
    ]


@pytest.mark.parametrize(
    "y",
    [
        [["rock", "folk"], ["R&B"], [], ["rock"]],
        ["rock;folk", "R&B", "", "rock"],
        np.array(["rock, folk", "R&B", "", "rock"]),
        pd.Series([["rock", "folk"], ["R&B"], None, ["rock"]], index=list("abcd")),
        pd.Series(["rock|folk", "R&B", None, "rock"], index=list("abcd")),
    ],
)
def test_labels_in_memory_come_in_every_form(y):
    found, _ = tags.as_table(y, pd.Index(list("abcd")))
    assert found.columns.tolist() == LABELS
    assert found.index.tolist() == list("abcd")
    assert found.to_numpy().tolist() == MATRIX


def test_one_column_of_two_words_is_two_classes_and_matrices_are_what_they_were():
    for y in (["spam", "ham"], [[0, 1], [1, 0]], np.eye(2), np.array([1, 2, 3]), pd.Series([0, 1])):
        assert tags.as_table(y, None)[0] is y
    signs = np.array([[-1, 1], [1, -1]])
    for y in (signs, signs.tolist()):
        assert tags.as_table(y, None)[0].tolist() == [[0, 1], [1, 0]]
    table, _ = tags.as_table(pd.DataFrame(signs, columns=["a", "b"]), None)
    assert table.to_numpy().tolist() == [[0, 1], [1, 0]]
    with pytest.raises(UserError, match="^y: row 1, column 2: 3 is not 0 or 1"):
        tags.as_table([[0, 1, 0], [1, 1, 3]], None)


@pytest.mark.parametrize(
    "y", [[[7, 8], [8, 9]], [{7, 8}, {8, 9}], pd.Series([[7, 8], [8, 9]]), [(7, 8), (8, 9)]]
)
def test_lists_of_numbers_that_are_as_long_are_lists_of_labels(y):
    table, _ = tags.as_table(y, None)
    assert table.columns.tolist() == ["7", "8", "9"]
    assert table.to_numpy().tolist() == [[1, 1, 0], [0, 1, 1]]
    zero_one, _ = tags.as_table([{0, 1}, {1}], None)
    assert zero_one.to_numpy().tolist() == [[1, 1], [0, 1]]


def test_what_may_not_be_meant_by_lists_in_memory_is_told_in_the_words_of_python():
    told = [
        line
        for y in (
            ["a/b", "c/d", "e"],
            ["a,b", "c", "d"],
            ["a b", "c d", "e f"],
            ["Rock;a", "rock", "b"],
        )
        for line in tags.as_table(y, None)[1]
    ]
    assert told == [
        "y: column 'y': no cell has ';', 2 have '/'; if that stands between labels, give a list of "
        "labels for each row",
        "y: column 'y': ',' is taken for what stands between labels, 1 cells have it; if it does "
        "not, give a list of labels for each row",
        "y: column 'y': each cell is one label, such as 'a b'; if blanks stand between labels, "
        "give a list of labels for each row",
        "y: 1 labels are written in several ways, 'Rock'/'rock': write them alike to make one of "
        "each",
    ]


def test_a_column_is_written_without_wrong_labels_as_it_was_written():
    cells = ["rock, Folk", '["rock", "R&B"]', None, "rock,folk", "jazz"]
    found = tags.read_lists(pd.Series(cells, name="tags"), ",", "x", own.in_python)
    left = found.without({(0, "rock"), (1, "R&B"), (4, "jazz")}, {"Folk": "folk"})
    assert left == ["folk", '["rock"]', None, "rock,folk", ""]
    lists = tags.read_lists(pd.Series([["a", "b"], []]), None, "x", own.in_python)
    assert lists.without({(0, "b")}, {}) == [["a"], []]


def test_labels_of_very_many_rows_stay_sparse_and_are_the_same(monkeypatch):
    rng = np.random.default_rng(0)
    column = pd.Series([";".join(f"tag {j}" for j in rng.integers(0, 60, 3)) for _ in range(200)])
    column[3], column[7] = None, "Tag 1;tag 1"
    plain_names, plain, _ = read(column)
    monkeypatch.setattr(dataset, "LARGE", 1000)
    names, found, _ = read(column)
    assert sparse.issparse(found)
    assert names == plain_names
    np.testing.assert_array_equal(found.toarray(), plain)
    groups = tags.variants(names, found.sum(axis=0))
    assert groups
    merged_names, (merged,) = tags.merged(names, [found], groups)
    same_names, (same,) = tags.merged(names, [plain], groups)
    assert merged_names == same_names
    np.testing.assert_array_equal(merged.toarray(), same)
