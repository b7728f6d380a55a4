import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.io import savemat
from sklearn.datasets import dump_svmlight_file

from wscpml.datasets import csv_files, readers, table_files
from wscpml.datasets.tables import numbers
from wscpml.errors import UserError

X = np.array([[0.5, 0.0, 2.0], [0.0, 0.0, -1.0], [1.0, 3.0, 0.0], [0.0, 1.0, 0.0]])
Y = np.array([[1, 0], [1, 1], [0, 1], [0, 0]], dtype=np.uint8)


def refused(read, path, message):
    with pytest.raises(UserError, match=message) as raised:
        read(path)
    assert str(path) in str(raised.value)
    assert "\n" not in str(raised.value)


# MATLAB


@pytest.mark.parametrize("turn_data", [False, True])
@pytest.mark.parametrize("turn_labels", [False, True])
@pytest.mark.parametrize("name", ["partial_labels", "candidate_labels"])
def test_mat_files_are_read_either_way_round(tmp_path, turn_data, turn_labels, name):
    path = tmp_path / "x.mat"
    labels = Y.T if turn_labels else Y
    savemat(path, {"data": X.T if turn_data else X, "target": labels, name: labels})
    parts = readers.read(path)
    np.testing.assert_array_equal(parts.features, X)
    np.testing.assert_array_equal(parts.labels, Y)
    np.testing.assert_array_equal(parts.truth, Y)


def test_mat_labels_of_minus_one_and_one_become_zero_and_one(tmp_path):
    path = tmp_path / "x.mat"
    savemat(path, {"data": X, "target": 2 * Y.astype(int) - 1})
    np.testing.assert_array_equal(readers.read(path).truth, Y)


def test_sparse_mat_data_stay_sparse(tmp_path):
    path = tmp_path / "x.mat"
    savemat(path, {"data": sparse.csc_array(X), "target": sparse.csc_array(Y.astype(float))})
    parts = readers.read(path)
    assert sparse.issparse(parts.features)
    np.testing.assert_array_equal(parts.features.toarray(), X)
    np.testing.assert_array_equal(parts.truth, Y)


def test_a_mat_file_that_does_not_fit_is_refused(tmp_path):
    path = tmp_path / "x.mat"
    savemat(path, {"other": X})
    refused(readers.read, path, "holds other; expected are data, target")
    savemat(path, {"data": X, "target": np.ones((7, 2))})
    refused(readers.read, path, r"labels have the shape \(7, 2\)")
    savemat(path, {"data": X, "target": Y * 3})
    refused(readers.read, path, "row 1, label column 1: 3 is not 0 or 1")
    path.write_bytes(b"MATLAB 7.3 MAT-file" + b" " * 105 + b"\x00\x02IM" + b"\x00" * 512)
    refused(readers.read, path, "is MATLAB v7.3; save it with `-v7`")
    path.write_bytes(b"nothing of the kind")
    refused(readers.read, path, "cannot be read as mat")
    savemat(path, {"data": "text", "target": Y})
    refused(readers.read, path, "not a matrix of numbers")
    savemat(path, {"data": np.random.default_rng(0).random((50, 50))}, do_compression=True)
    whole = path.read_bytes()
    path.write_bytes(whole[:4000] + b"0123456789" + whole[4010:])
    refused(readers.read, path, "cannot be read as mat")


# ARFF

HEADER = """% a comment
@RELATION songs
@attribute tempo numeric
@ATTRIBUTE 'loud ness' REAL
@attribute pitch integer
@attribute rock {0,1}
@attribute "R&B" {0,1}

@data
"""
DENSE = "0.5,0,2,1,0\n0,0,-1,1,1\n% in between\n1,3,0,0,1\n0,1,0,0,0\n"
SPARSE = "{0 0.5, 2 2, 3 1}\n{2 -1,3 1,4 1}\n{0 1,1 3,4 1}\n{1 1}\n"


@pytest.mark.parametrize("body", [DENSE, SPARSE])
def test_dense_and_sparse_arff_give_the_same(tmp_path, body):
    path = tmp_path / "x.arff"
    path.write_text(HEADER + body)
    parts = readers.read(path, label_count=2)
    assert sparse.issparse(parts.features) == (body is SPARSE)
    found = parts.features.toarray() if body is SPARSE else parts.features
    np.testing.assert_array_equal(found, X)
    np.testing.assert_array_equal(parts.labels, Y)
    assert parts.feature_names == ["tempo", "loud ness", "pitch"]
    assert parts.label_names == ["rock", "R&B"]


def test_an_empty_row_of_sparse_arff_is_all_zeros(tmp_path):
    path = tmp_path / "x.arff"
    path.write_text(HEADER + "{ }\n{0 1}\n")
    assert readers.read(path, 2).features.toarray().tolist() == [[0, 0, 0], [1, 0, 0]]
    path.write_text(HEADER + "% first a comment\n\n{0 1}\n")
    assert readers.read(path, 2).features.toarray().tolist() == [[1, 0, 0]]


def test_mulans_xml_says_which_attributes_are_labels(tmp_path):
    path = tmp_path / "x.arff"
    path.write_text(HEADER + DENSE)
    xml = '<labels xmlns="http://mulan.sourceforge.net/labels"><label name="rock"/></labels>'
    path.with_suffix(".xml").write_text(xml)
    parts = readers.read(path)
    assert parts.label_names == ["rock"]
    assert parts.feature_names == ["tempo", "loud ness", "pitch", "R&B"]
    path.with_suffix(".xml").write_text(xml.replace("rock", "polka"))
    with pytest.raises(UserError, match="x.xml: label 'polka' is no attribute of x.arff"):
        readers.read(path)


@pytest.mark.parametrize(("option", "labels"), [("-C 2", ["tempo", "b"]), ("-C -1", ["rock"])])
def test_mekas_option_says_which_attributes_are_labels(tmp_path, option, labels):
    path = tmp_path / "x.arff"
    path.write_text(
        f"@relation 'songs: {option}'\n@attribute tempo {{0,1}}\n@attribute b {{0,1}}\n"
        "@attribute rock {0,1}\n@data\n1,0,1\n0,1,0\n"
    )
    assert readers.read(path).label_names == labels


def test_an_arff_file_that_does_not_fit_is_refused(tmp_path):
    path = tmp_path / "x.arff"
    cases = {
        HEADER + "1,2\n": "rows have 2 values for 5 attributes",
        HEADER + "a,0,2,1,0\n": "row 1, column 'tempo': 'a' is not a number",
        HEADER + "{0 a}\n": "cannot be read as arff",
        HEADER + "{9 1}\n": "cannot be read as arff",
        HEADER + "{0 1 1 5}\n": "cannot be read as arff",
        HEADER + "{0 1}\n{0 1, 1": "row 2: '{0 1, 1' is not in braces",
        HEADER + "{0 1}\n1,2,3,0,1\n": "row 2: '1,2,3,0,1' is not in braces",
        HEADER.replace("pitch", "tempo") + DENSE: "attribute 'tempo' is there twice",
        HEADER: "has no rows",
        "tempo,rock\n1,2\n": "is no ARFF file",
        HEADER.replace("numeric", "string") + DENSE: "attribute 'tempo' is of type string",
        HEADER.replace("{0,1}", "{1,0}") + SPARSE: "attribute 'rock' does not list 0 first",
        HEADER + DENSE.replace(",1,0\n", ",2,0\n"): "row 1, label column 1: 2 is not 0 or 1",
    }
    for text, message in cases.items():
        path.write_text(text)
        refused(lambda path: readers.read(path, 2), path, message)
    path.write_bytes(HEADER.encode() + "é".encode("latin-1"))
    refused(readers.read, path, "is not UTF-8 text")
    path.write_text(HEADER + DENSE)
    refused(lambda path: readers.read(path, 5), path, "has 5 attributes, so they cannot end with 5")


# NumPy and svmlight


def test_arrays_are_read_from_npy_npz_and_scipy(tmp_path):
    np.save(tmp_path / "x.npy", X)
    np.testing.assert_array_equal(readers.read(tmp_path / "x.npy").features, X)
    np.savez(tmp_path / "x.npz", features=X, candidates=Y, truth=Y * 0)
    parts = readers.read(tmp_path / "x.npz")
    np.testing.assert_array_equal(parts.features, X)
    np.testing.assert_array_equal(parts.labels, Y)
    assert not parts.truth.any()
    for kind in (sparse.csr_array, sparse.csr_matrix, sparse.csc_array):
        sparse.save_npz(tmp_path / "s.npz", kind(X))
        kept = readers.read(tmp_path / "s.npz").features
        assert isinstance(kept, sparse.csr_array)
        np.testing.assert_array_equal(kept.toarray(), X)
    sparse.save_npz(tmp_path / "s.npz", sparse.bsr_array(X))
    refused(readers.read, tmp_path / "s.npz", "cannot be read as npz")


def test_arrays_that_do_not_fit_are_refused(tmp_path):
    np.save(tmp_path / "x.npy", np.ones(3))
    refused(readers.read, tmp_path / "x.npy", r"is an array of shape \(3,\)")
    np.save(tmp_path / "x.npy", np.array([["a"]]))
    refused(readers.read, tmp_path / "x.npy", "not a matrix of numbers")
    np.savez(tmp_path / "x.npz", X=X)
    refused(readers.read, tmp_path / "x.npz", "holds the arrays X; it may hold features")
    np.savez(tmp_path / "x.npz", features=X, candidates=Y[:, 0])
    refused(readers.read, tmp_path / "x.npz", r"is an array of shape \(4,\)")
    whole = (tmp_path / "x.npz").read_bytes()
    (tmp_path / "x.npz").write_bytes(whole[: int(0.6 * len(whole))])
    refused(readers.read, tmp_path / "x.npz", "cannot be read as npz")
    np.save(tmp_path / "x.npy", X * 1j)
    refused(readers.read, tmp_path / "x.npy", "complex128, not a matrix of numbers")
    np.save(tmp_path / "x.npy", np.array([{}]), allow_pickle=True)
    refused(readers.read, tmp_path / "x.npy", "allow_pickle=False")


@pytest.mark.parametrize("ending", ["svmlight", "libsvm", "svm"])
def test_svmlight_is_read_sparse_with_its_labels(tmp_path, ending):
    path = tmp_path / f"x.{ending}"
    dump_svmlight_file(X, Y, str(path), multilabel=True, zero_based=False)
    parts = readers.read(path)
    assert sparse.issparse(parts.features)
    np.testing.assert_array_equal(parts.features.toarray(), X)
    np.testing.assert_array_equal(parts.labels, Y)
    assert parts.label_names == ["0", "1"]
    path.write_text("1234567 1:1\n1234568 1:2\n")
    assert readers.read(path).label_names == ["1234567", "1234568"]
    path.write_text("1,-0.5 0:1 3:2 # a comment\n\n2:5\n1\n")
    parts = readers.read(path)
    assert parts.label_names == ["-0.5", "1"]
    assert parts.labels.tolist() == [[1, 1], [0, 0], [0, 1]]
    assert parts.features.toarray().tolist() == [[1, 0, 0, 2], [0, 0, 5, 0], [0, 0, 0, 0]]
    for text in ("what is this\n", "x 1:1\n", "1 1:x\n", "1 1:\n", "1 1:2:3\n", "1 1.5:2\n", "\n"):
        path.write_text(text)
        refused(readers.read, path, f"cannot be read as {ending}")
    for text in ("1 1:1\n1 3:1 2:1\n", "1 1:1\n1 2:1 2:1\n", "1 1:1\n1 -2:1 2:1\n"):
        path.write_text(text)
        refused(readers.read, path, "row 2: column -?2 is out of order")


# Tables


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_csv_is_read_whatever_its_separator_and_text_stays_text(tmp_path, separator):
    path = tmp_path / "x.csv"
    rows = ["name,tags", "NA,null", '"x",None']
    path.write_text("\n".join(rows).replace(",", separator) + "\n", encoding="utf-8-sig")
    table = table_files.read(path)
    assert table.columns.tolist() == ["name", "tags"]
    assert table.to_numpy().tolist() == [["NA", "null"], ["x", "None"]]


def test_quoted_column_names_may_hold_the_separator(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text('"a,b","c,b"\n1,2\n')
    assert table_files.read(path).columns.tolist() == ["a,b", "c,b"]
    path.write_text('song,"tempo; bpm; mean; sd",tags\na,1,x\n')
    assert table_files.read(path).columns.tolist() == ["song", "tempo; bpm; mean; sd", "tags"]


def read_csv(path, content, text=()):
    path.write_text(content)
    return table_files.read(path, text)


def test_text_is_kept_to_the_letter_and_only_an_empty_cell_is_missing(tmp_path):
    table = read_csv(
        tmp_path / "x.csv",
        'id,tags,x\n007,"a,b\nc ""d""",1\n2024-01-01,,2\n,"",3\n12:30,nan,4\n 0x1F,true,5\n',
        ["id", "tags", "absent"],
    )
    assert table.id[table.id.notna()].tolist() == ["007", "2024-01-01", "12:30", " 0x1F"]
    assert table.tags[table.tags.notna()].tolist() == ['a,b\nc "d"', "nan", "true"]
    assert table.x.tolist() == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("beside", [[], ["word"]])
def test_numbers_are_read_however_they_are_written(tmp_path, beside):
    rows = ["a,b", "0.1, 2 ", "1e-3,+5", "007,.5", '"9007199254740993",-inf', ",1e400", "nan,5."]
    rows = [",".join([row, *beside]) for row in rows]
    table = read_csv(tmp_path / "x.csv", "\n".join(rows))
    found = numbers(table[["a", "b"]], "x")
    a, b = [0.1, 1e-3, 7, 9007199254740992, np.nan, np.nan], [2, 5, 0.5, -np.inf, np.inf, 5]
    np.testing.assert_array_equal(found, np.transpose([a, b]))


@pytest.mark.parametrize("word", ["0x10", "1,5 ,", "2024-01-01", "12:00", "NA", "-", " "])
def test_what_is_no_number_is_refused_as_it_is_written(tmp_path, word):
    table = read_csv(tmp_path / "x.csv", f"a;b\n1;2\n3;{word}\n")
    with pytest.raises(UserError) as raised:
        numbers(table, "x")
    assert f"row 2, column 'b': {word!r} is not a number" in str(raised.value)


def test_true_and_false_are_one_and_zero(tmp_path):
    table = read_csv(tmp_path / "x.csv", "a,b\nTrue,false\nFALSE,true\n")
    np.testing.assert_array_equal(numbers(table, "x"), [[1, 0], [0, 1]])


@pytest.mark.parametrize("end", ["", "\n"])
def test_a_header_alone_is_a_table_without_rows(tmp_path, end):
    table = read_csv(tmp_path / "x.csv", f"a,b{end}")
    assert numbers(table, "x").shape == (0, 2)
    assert table.columns.tolist() == ["a", "b"]


def test_blank_lines_are_no_rows_and_lines_may_end_in_any_way(tmp_path):
    for end in ("\n", "\r\n", "\r"):
        (tmp_path / "x.csv").write_bytes(f"{end}a,b{end}{end}1,2{end}3,4{end}{end}".encode())
        assert table_files.read(tmp_path / "x.csv").to_numpy().tolist() == [[1, 2], [3, 4]]


def test_a_column_without_a_name_is_called_by_its_place(tmp_path):
    table = read_csv(tmp_path / "x.csv", ",a\n0,5\n1,6\n")
    assert table.columns.tolist() == ["column 1", "a"]


@pytest.mark.parametrize("cores", [1, 2, 7, 30])
@pytest.mark.parametrize("quote", ["", '"'])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_large_tables_are_the_same_on_any_number_of_cores(tmp_path, monkeypatch, cores, quote, end):
    monkeypatch.setattr(csv_files, "PART", 1)
    monkeypatch.setattr("pyarrow.cpu_count", lambda: cores)
    rows = [f"{quote}{i}{quote},{i / 7}" for i in range(20)]
    path = tmp_path / "x.csv"
    path.write_bytes(end.join(["id,x", *rows]).encode("utf-8-sig"))
    table = table_files.read(path, ["id"])
    assert table.id.tolist() == [str(i) for i in range(20)]
    assert table.x.tolist() == [i / 7 for i in range(20)]
    path.write_bytes(end.join(["id,x", *rows, "20"]).encode())
    refused(table_files.read, path, "row 21: has 1 cells")


def test_rows_may_be_longer_than_the_parsers_blocks(tmp_path):
    tags = "a;" * (1 << 20)
    table = read_csv(tmp_path / "x.csv", f"tags,x\nb,1\n{tags},0.5\n", ["tags"])
    assert table.tags.tolist() == ["b", tags]
    assert table.x.tolist() == [1, 0.5]


def test_csv_and_parquet_give_the_same(tmp_path):
    table = pd.DataFrame({"id": ["a", "b"], "x": [0.1, 1 / 3], "n": [1, 2]})
    table.to_csv(tmp_path / "x.csv", index=False)
    table.to_parquet(tmp_path / "x.parquet")
    for name in ("x.csv", "x.parquet"):
        found = table_files.read(tmp_path / name)
        pd.testing.assert_frame_equal(found, table, check_dtype=False)


def test_a_table_that_does_not_fit_is_refused(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("")
    refused(table_files.read, path, "is empty")
    path.write_text("a,a\n1,2\n")
    refused(table_files.read, path, "column 'a' is there twice")
    path.write_text("\n \n")
    refused(table_files.read, path, "is empty")
    path.write_text("a,b\n1,2\n\n1,2,3\n")
    refused(table_files.read, path, "row 2: has 3 cells, the header has 2 names")
    path.write_text("rock,jazz\n1,0,1\n1,1,1\n")
    refused(table_files.read, path, "row 1: has 3 cells, the header has 2 names")
    path.write_text('a,b\n"1\n2",2\n3\n')
    refused(table_files.read, path, "row 2: has 1 cells, the header has 2 names")
    path.write_text('a,b\n"1,' + "2\n" * 100_000)
    refused(table_files.read, path, "row 1: has 1 cells, the header has 2 names")
    for encoding in ("latin-1", "utf-16"):
        path.write_text("name,x\né,1\n", encoding=encoding)
        refused(table_files.read, path, "is not UTF-8 text")
    path = tmp_path / "x.parquet"
    path.write_bytes(b"PAR1 and no more")
    refused(table_files.read, path, "cannot be read as parquet")


def test_text_among_numbers_is_refused_with_its_row_and_column(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,b\n1,2\n3,many\n")
    with pytest.raises(UserError, match="row 2, column 'b': 'many' is not a number"):
        numbers(table_files.read(path), str(path))


def test_columns_of_dates_are_no_numbers():
    table = pd.DataFrame({"a": [1.0], "day": pd.to_datetime(["2024-01-01"])})
    with pytest.raises(UserError, match="column 'day' holds datetime64.*, not numbers"):
        numbers(table, "x")


def test_numbers_as_text_and_switches_are_numbers():
    table = pd.DataFrame({"a": ["1", "2.5"], "b": [True, False], "c": [1, None]})
    np.testing.assert_array_equal(numbers(table, "x"), [[1, 1, 1], [2.5, 0, np.nan]])
