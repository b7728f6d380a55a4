from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.io import savemat

from wscpml.arrays import to_dense
from wscpml.datasets import dataset, noise, own
from wscpml.datasets.dataset import Dataset, binary, check
from wscpml.datasets.description import describe
from wscpml.errors import UserError

IDS = ["s1", "s2", "s3"]
X = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]])
LABELS = {"jazz": [0, 1, 0], "rock": [1, 1, 0]}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = pd.DataFrame(X, columns=["tempo", "loud"])
    table.insert(0, "song", IDS)
    table.to_csv("x.csv", index=False)
    table.to_parquet("x.parquet")
    table.assign(tags=["rock", "rock; jazz", ""]).to_csv("tagged.csv", index=False)


def load(features="x.csv", **given):
    paths = ("candidates", "truth")
    given = {k: Path(v) if k in paths else v for k, v in given.items()}
    return own.load(own.Sources(Path(features), **{"id": "song", **given}))


def the_songs(data: Dataset):
    np.testing.assert_array_equal(data.features, X)
    assert data.feature_names == ["tempo", "loud"]
    assert data.instance_ids == IDS
    assert data.label_names == list(LABELS)
    np.testing.assert_array_equal(data.candidates.T, list(LABELS.values()))
    return True


def test_a_table_with_a_column_of_tags():
    assert the_songs(load("tagged.csv", tags="tags"))


@pytest.mark.parametrize("chosen", ["jazz,rock", "jazz, rock", "*[ao][cz]*"])
@pytest.mark.parametrize("kind", [int, bool, float])
def test_candidates_as_columns_of_zero_and_one_beside_the_features(chosen, kind):
    table = pd.read_csv("x.csv").assign(**LABELS).astype(dict.fromkeys(LABELS, kind))
    table.to_csv("both.csv", index=False)
    table.to_parquet("both.parquet")
    assert the_songs(load("both.csv", tags=chosen))
    assert the_songs(load("both.parquet", tags=chosen))
    table.drop(columns=["tempo", "loud"]).assign(label="x").to_csv("y.csv", index=False)
    assert the_songs(load(candidates="y.csv", tags=chosen))


@pytest.mark.parametrize("cells", [[1, 0, 1], [1.0, -1.0, 1.0], [True, False, True]])
def test_a_single_column_of_zero_and_one_is_one_label(cells):
    table = pd.read_csv("x.csv").assign(rock=cells)
    table.to_csv("one.csv", index=False)
    table.to_parquet("one.parquet")
    for path in ("one.csv", "one.parquet"):
        data = load(path, tags="rock")
        assert data.label_names == ["rock"]
        assert data.candidates.tolist() == [[1], [0], [1]]
    table.assign(rock=[1, 0, None]).to_csv("one.csv", index=False)
    with pytest.raises(UserError, match="^one.csv: row 3, column 'rock': is empty; write 1 where"):
        load("one.csv", tags="rock")


def test_a_column_of_lists_may_have_a_comma_in_its_name():
    pd.read_csv("tagged.csv").rename(columns={"tags": "a,b"}).to_csv("x.csv", index=False)
    assert the_songs(load(tags="a,b"))


def test_candidates_as_columns_of_zero_and_one_in_another_order_of_rows():
    table = pd.DataFrame({"song": IDS, **LABELS})
    table[::-1].to_csv("y.csv", index=False)
    assert the_songs(load(candidates="y.csv"))
    assert the_songs(load("x.parquet", candidates="y.csv"))


def test_candidates_as_a_column_of_lists_in_a_file_of_its_own():
    Path("y.csv").write_text("song,tags\ns2,jazz|rock|rock\ns1, rock \ns3,\n")
    assert the_songs(load(candidates="y.csv", tags="tags", separator="|"))


def test_candidates_as_long_rows_and_a_weight_of_zero_is_no_candidate():
    Path("y.csv").write_text("song,label,weight\ns2,rock,3\ns1,rock,1\ns3,jazz,0\ns2,jazz,0.5\n")
    assert the_songs(load(candidates="y.csv"))
    Path("y.csv").write_text("song,label\ns2,rock\ns1,rock\ns2,jazz\n")
    assert the_songs(load(candidates="y.csv"))


def test_weights_of_long_rows_are_votes_and_add_up():
    Path("y.csv").write_text("song,label,weight\ns2,rock,3\ns1,rock,1\ns3,jazz,0\ns2,jazz,0.5\n")
    data = load(candidates="y.csv")
    assert data.votes.tolist() == [[0, 1], [0.5, 3], [0, 0]]
    Path("y.csv").write_text("song,label,weight\ns2,Rock,3\ns1,rock,1\ns2,rock,2\ns2,jazz,1\n")
    data = load(candidates="y.csv", merge_variants=True)
    assert data.label_names == ["jazz", "rock"]
    assert data.votes.tolist() == [[0, 1], [1, 5], [0, 0]]
    Path("t.csv").write_text("song,label\ns1,rock\ns2,rock\ns2,folk\n")
    data = load(candidates="y.csv", truth="t.csv")
    assert data.label_names == ["Rock", "jazz", "rock", "folk"]
    assert data.votes.tolist() == [[0, 0, 1, 0], [3, 1, 2, 0], [0, 0, 0, 0]]
    data = load(candidates="y.csv", min_count=2)
    assert data.votes.tolist() == [[1], [2], [0]]


@pytest.mark.parametrize("who", ["tagger", "annotator"])
def test_rows_of_several_taggers_are_votes_and_the_last_word_of_each_counts(who):
    rows = ["s2,rock,Ann", "s2,rock,Bob", "s2,rock,Bob", "s2,jazz,Bob", "s1,rock,Ann"]
    Path("y.csv").write_text("\n".join([f"song,label,{who}", *rows, ""]))
    data = load(candidates="y.csv")
    assert the_songs(data)
    assert data.votes.tolist() == [[0, 1], [1, 2], [0, 0]]
    rows = ["s2,rock,Ann,1", "s2,rock,Bob,5", "s2,jazz,Bob,2", "s3,jazz,Ann,1", "s3,jazz,Ann,0"]
    Path("y.csv").write_text("\n".join([f"song,label,{who},weight", *rows, "s1,rock,Ann,1", ""]))
    data = load(candidates="y.csv")
    assert the_songs(data)
    assert data.votes.tolist() == [[0, 1], [1, 2], [0, 0]]


def test_rows_of_one_weight_are_no_votes_and_repeated_ones_are_told():
    Path("y.csv").write_text("song,label,weight\ns2,rock,1\ns1,rock,1\ns2,jazz,1\n")
    assert load(candidates="y.csv").votes is None
    Path("y.csv").write_text("song,label\ns2,rock\ns1,rock\ns2,jazz\ns2,rock\n")
    data = load(candidates="y.csv")
    assert the_songs(data)
    assert data.votes is None
    assert data.remarks == [
        "y.csv: 1 rows repeat an id and label, which counts once; if they are votes, name who gave "
        "them in a column 'tagger'"
    ]


def test_odd_weights_and_taggers_are_told_with_their_row():
    Path("y.csv").write_text("song,label,weight\ns2,rock,1\ns1,rock,inf\n")
    with pytest.raises(UserError, match="y.csv: row 2, column 'weight': is not a finite number"):
        load(candidates="y.csv")
    Path("y.csv").write_text("song,label,tagger\ns2,rock,Ann\ns1,rock,\n")
    with pytest.raises(UserError, match="y.csv: row 2, column 'tagger': is empty"):
        load(candidates="y.csv")


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_columns_to_show_are_text_and_no_features(kind):
    table = pd.read_csv("tagged.csv").assign(title=["One", None, "=3"], year=[1999, 2001, 2003])
    table.to_csv("shown.csv", index=False) if kind == "csv" else table.to_parquet("shown.parquet")
    data = load(f"shown.{kind}", tags="tags", show=["year", "title"])
    assert the_songs(data)
    assert data.shown.to_dict("list") == {
        "year": ["1999", "2001", "2003"],
        "title": ["One", "", "=3"],
    }


def test_columns_to_show_may_be_beside_the_candidates_in_any_order():
    Path("y.csv").write_text("song,tags,title\ns2,rock;jazz,Two\ns1,rock,One\ns3,,Three\n")
    data = load(candidates="y.csv", tags="tags", show=["title"])
    assert the_songs(data)
    assert data.shown.title.tolist() == ["One", "Two", "Three"]
    Path("y.csv").write_text("song,label,title\ns2,rock,Two\ns1,rock,One\ns2,jazz,Two\n")
    data = load(candidates="y.csv", show=["title"])
    assert the_songs(data)
    assert data.shown.title.tolist() == ["One", "Two", ""]
    pd.DataFrame({"song": IDS, **LABELS, "title": list("abc")}).to_csv("y.csv", index=False)
    data = load(candidates="y.csv", show=["title"])
    assert the_songs(data)
    assert data.shown.title.tolist() == list("abc")


def test_a_column_to_show_that_is_not_there_is_told():
    with pytest.raises(
        UserError, match="tagged.csv: show=: has no column 'titel'; its columns are"
    ):
        load("tagged.csv", tags="tags", show=["titel"])


def test_rows_without_ids_go_by_their_order():
    pd.DataFrame(LABELS).to_csv("y.csv", index=False)
    pd.DataFrame(X, columns=["tempo", "loud"]).to_csv("plain.csv", index=False)
    data = load("plain.csv", candidates="y.csv", id=None)
    assert data.instance_ids == [0, 1, 2]
    np.testing.assert_array_equal(data.candidates.T, list(LABELS.values()))


def test_truth_may_come_in_another_form_and_name_fewer_labels():
    Path("t.csv").write_text("song,label\ns1,rock\ns2,rock\n")
    data = load("tagged.csv", tags="tags", truth="t.csv")
    assert data.truth.tolist() == [[0, 1], [0, 1], [-1, -1]]
    Path("t.csv").write_text("song,label,weight\ns1,rock,1\ns2,rock,1\ns3,rock,0\n")
    data = load("tagged.csv", tags="tags", truth="t.csv")
    assert data.truth.tolist() == [[0, 1], [0, 1], [0, 0]]
    assert check(data, "x") == ["x: 1 instances have no label and count as pure negatives"]


def test_matrices_from_other_formats():
    np.save("x.npy", X)
    np.save("y.npy", np.transpose(list(LABELS.values())))
    data = load("x.npy", candidates="y.npy", id=None)
    assert data.label_names == ["label1", "label2"]
    assert data.feature_names == ["x1", "x2"]
    labels = np.array(list(LABELS.values()))
    savemat("x.mat", {"data": X, "partial_labels": labels, "target": labels * 0})
    data = load("x.mat", id=None)
    np.testing.assert_array_equal(data.candidates, labels.T)
    assert not data.truth.any()
    sparse.save_npz("x.npz", sparse.csr_array(X))
    assert sparse.issparse(load("x.npz", candidates="y.npy", id=None).features)


def test_columns_of_svmlight_that_count_from_0_are_told():
    Path("x.svm").write_text("1 0:5 1:6\n2 1:3\n")
    assert load("x.svm", id=None).remarks == [
        "x.svm: some row has column 0, so that columns count from 0; in files to predict some row "
        "must have it, too"
    ]
    Path("x.svm").write_text("1 1:5 2:6\n2 1:3\n")
    assert load("x.svm", id=None).remarks == []


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        (["7", "8"], [7, 8]),
        (["001", "010"], ["001", "010"]),
        (["1.10", "x"], ["1.10", "x"]),
        (["2024-01-01", "2024-01-02"], ["2024-01-01", "2024-01-02"]),
    ],
)
def test_ids_are_kept_as_they_are_written(written, kept):
    Path("x.csv").write_text(f"song,tempo,tags\n{written[0]},1,a\n{written[1]},2,b\n")
    assert load(tags="tags").instance_ids == kept


def test_label_names_are_kept_as_they_are_written():
    Path("x.csv").write_text("song,tempo,tags\na,1,01\nb,2,\nc,3,1e3;NA\n")
    assert load(tags="tags").label_names == ["01", "1e3", "NA"]
    Path("x.csv").write_text("song,tempo\na,1\nb,2\n")
    Path("y.csv").write_text("song,label\na, 1.0 \nb,1.0\n")
    assert load(candidates="y.csv").label_names == ["1.0"]


def test_ids_fit_whatever_type_the_files_give_them():
    Path("y.csv").write_text("song,tags\n2,b\n1,a\n")
    for ids in (["1", "2"], [1, 2]):
        pd.DataFrame({"song": ids, "tempo": [1.0, 2.0]}).to_parquet("x.parquet")
        data = load("x.parquet", candidates="y.csv", tags="tags")
        assert data.instance_ids == [1, 2]
        np.testing.assert_array_equal(data.candidates, np.eye(2))
    Path("y.csv").write_text("song,tags\n2024-05-02,b\n2024-05-01,a\n")
    days = pd.to_datetime(["2024-05-01", "2024-05-02"])
    pd.DataFrame({"song": days, "tempo": [1.0, 2.0]}).to_parquet("x.parquet")
    data = load("x.parquet", candidates="y.csv", tags="tags")
    assert data.instance_ids == ["2024-05-01", "2024-05-02"]


def test_tags_may_be_lists_as_parquet_has_them():
    table = pd.DataFrame({"song": IDS, "t": X[:, 0], "tags": [["rock"], ["jazz", "rock"], []]})
    table.to_parquet("x.parquet")
    data = load("x.parquet", tags="tags")
    assert data.label_names == ["jazz", "rock"]
    assert data.candidates.tolist() == [[0, 1], [1, 1], [0, 0]]
    table.assign(tags=[1, 2, 3]).to_parquet("x.parquet")
    with pytest.raises(UserError, match="row 1, column 'tags': 1 is not a list of labels"):
        load("x.parquet", tags="tags")


def test_features_without_ids_take_those_of_the_labels():
    np.save("x.npy", X)
    Path("y.csv").write_text("song,tags\ns3,\ns1,rock\ns2,jazz\n")
    data = load("x.npy", candidates="y.csv", tags="tags")
    assert data.instance_ids == ["s3", "s1", "s2"]
    assert data.remarks == [
        "y.csv: its ids are taken for those of x.npy, which has none, row by row; make sure that "
        "both have the same order"
    ]


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("option", ["candidates", "truth"])
def test_long_rows_may_number_the_rows_of_features_without_ids(option, first):
    np.save("x.npy", X)
    np.save("y.npy", np.transpose(list(LABELS.values())))
    rows = [f"{2 + first},polka", f"{1 + first},rock", f"{first},rock", f"{1 + first},jazz"]
    Path("y.csv").write_text("\n".join(["song,label", *rows, ""]))
    data = load("x.npy", **{"candidates": "y.npy", option: "y.csv"})
    assert data.instance_ids == [first, 1 + first, 2 + first]
    found = pd.DataFrame(data.labels if option == "candidates" else data.truth)
    found.columns = data.label_names
    assert found[["jazz", "polka", "rock"]].to_numpy().tolist() == [[0, 0, 1], [1, 0, 1], [0, 1, 0]]


@pytest.mark.parametrize("option", ["candidates", "truth"])
@pytest.mark.parametrize("rows", [["s2,jazz", "s1,rock", "s3,polka"], ["1,rock", "2,jazz"]])
def test_long_rows_that_name_other_instances_are_refused_for_features_without_ids(rows, option):
    np.save("x.npy", X)
    np.save("y.npy", np.transpose(list(LABELS.values())))
    Path("y.csv").write_text("\n".join(["song,label", *rows, ""]))
    with pytest.raises(UserError) as raised:
        load("x.npy", **{"candidates": "y.npy", option: "y.csv"})
    assert str(raised.value) == (
        f"y.csv: its rows name instances, such as {rows[0].split(',')[0]!r}, and x.npy does not; "
        "give features as a table with the column 'song', or number all 3 instances by their rows, "
        "from 0 or from 1 on"
    )


def test_truth_that_lacks_instances_is_refused_or_told():
    Path("t.csv").write_text("song,rock,jazz\ns1,1,0\n")
    with pytest.raises(UserError, match="t.csv: instance 's2' has features but no row of labels"):
        load("tagged.csv", tags="tags", truth="t.csv")
    Path("t.csv").write_text("song,label\ns1,rock\n")
    data = load("tagged.csv", tags="tags", truth="t.csv")
    assert data.truth.tolist() == [[0, 1], [-1, -1], [-1, -1]]
    assert data.known_truth.tolist() == [[0, 1]]
    assert (
        "x: the true labels of 2 of 3 instances are not listed and count as unknown; a row of "
        "weight 0 says that an instance has none"
    ) in check(data, "x")
    Path("t.csv").write_text("song,label,weight\ns1,rock,1\ns2,rock,0\n")
    warnings = check(load("tagged.csv", tags="tags", truth="t.csv"), "x")
    assert "x: 1 instances have candidates but no true label" in warnings
    Path("t.csv").write_text("song,label\n")
    with pytest.raises(UserError, match=r"^t\.csv: has no rows$"):
        load("tagged.csv", tags="tags", truth="t.csv")


def test_unknown_rows_of_the_truth_are_unknown_for_every_label():
    Path("t.csv").write_text("song,label\ns1,polka\n")
    data = load("tagged.csv", tags="tags", truth="t.csv")
    assert data.label_names == ["jazz", "rock", "polka"]
    assert data.truth.tolist() == [[0, 0, 1], [-1] * 3, [-1] * 3]
    assert data.candidates.tolist() == [[0, 1, 0], [1, 1, 0], [0, 0, 0]]


def test_ids_that_are_decimal_numbers_are_told_and_fit_whole_ones():
    pd.DataFrame({"song": [1.0, 2.0, 3.5], "t": [1.0, 2.0, 3.0]}).to_parquet("x.parquet")
    Path("y.csv").write_text("song,tags\n3.5,c\n2,b\n1.0,a\n")
    data = load("x.parquet", candidates="y.csv", tags="tags")
    assert data.instance_ids == ["1", "2", "3.5"]
    np.testing.assert_array_equal(data.candidates, np.eye(3))
    assert data.remarks == [
        f"{name}: column 'song': ids are decimal numbers, such as {one}, and 1.0 counts as 1; "
        "write whole numbers or text"
        for name, one in (("x.parquet", "1.0"), ("y.csv", "3.5"))
    ]
    assert set(data.remarks) < set(check(data, "x"))


@pytest.mark.parametrize("start", [0, 1])
@pytest.mark.parametrize("name", ["", "Unnamed: 0"])
def test_an_index_that_pandas_wrote_is_no_feature(name, start):
    rows = [f"{i + start},s{i + 1},{tempo},{loud}" for i, (tempo, loud) in enumerate(X)]
    Path("x.csv").write_text("\n".join([f"{name},song,tempo,loud", *rows]))
    Path("y.csv").write_text(",song,jazz,rock\n0,s1,0,1\n1,s2,1,1\n2,s3,0,0\n")
    data = load(candidates="y.csv")
    assert the_songs(data)
    assert [remark.partition(", so it")[0] for remark in data.remarks] == [
        f"{file}: its first column has no name and just counts the rows"
        for file in ("x.csv", "y.csv")
    ]


def test_a_first_column_that_is_named_or_does_not_count_the_rows_is_a_feature():
    Path("y.csv").write_text("a\n1\n0\n")
    for name, values in (("n", "01"), ("", "02"), ("", "10")):
        Path("x.csv").write_text(f"{name},t\n{values[0]},5\n{values[1]},6\n")
        data = load(candidates="y.csv", id=None)
        assert data.feature_names == [name or "column 1", "t"]
        assert data.remarks == []
    Path("x.csv").write_text(",t\n0,5\n1,6\n")
    Path("y.csv").write_text("column 1,a\n1,1\n0,0\n")
    assert load(candidates="y.csv", id="column 1").instance_ids == [0, 1]


def test_lists_that_seem_to_have_another_separator_are_told():
    Path("x.csv").write_text('song,t,tags\na,1,"rock,jazz"\nb,2,"rock,pop/soul"\nc,3,\n')
    assert load(tags="tags").remarks == [
        "x.csv: column 'tags': ',' is taken for what stands between labels, 2 cells have it; if it "
        "does not, give what does as separator="
    ]
    assert load(tags="tags").label_names == ["jazz", "pop/soul", "rock"]
    assert load(tags="tags", separator="|").remarks == [
        "x.csv: column 'tags': no cell has '|', 2 have ','; if that stands between labels, give "
        "it as separator="
    ]
    assert load(tags="tags", separator=",").remarks == []
    Path("x.csv").write_text("song,t,tags\na,1,rock jazz\nb,2,rock pop\nc,3,jazz\n")
    assert load(tags="tags").remarks == [
        "x.csv: column 'tags': each cell is one label, such as 'rock jazz'; if blanks stand "
        "between labels, give separator= ' '"
    ]
    assert load(tags="tags", separator=" ").label_names == ["jazz", "pop", "rock"]
    Path("x.csv").write_text('song,t,tags\na,1,"rock;jazz"\nb,2,"R,B"\nc,3,"x,y"\n')
    assert load(tags="tags").remarks == [
        "x.csv: column 'tags': 1 cells have ';', 2 have ','; if that stands between labels, give "
        "it as separator="
    ]


def test_a_column_that_may_be_the_ids_is_told_where_none_are_named():
    rows = "".join(f"u{i},{i},{'rock' if i % 2 else 'jazz'}\n" for i in range(30))
    Path("x.csv").write_text(f"song,t,tags\n{rows}")
    assert load(tags="tags", id=None).remarks == [
        "x.csv: column 'song' is one word, another in nearly every row, as ids are: it is left "
        "out; if it names the rows, give it as id="
    ]
    assert load(tags="tags").remarks == []


def test_each_file_is_read_once(monkeypatch):
    read = []
    original = own.table_files.read_with_parts
    monkeypatch.setattr(
        own.table_files,
        "read_with_parts",
        lambda path, text: read.append(path) or original(path, text),
    )
    load("tagged.csv", tags="tags")
    assert read == [Path("tagged.csv")]


def test_labels_of_an_arff_file_of_their_own_keep_their_names():
    head = "@relation y\n@attribute rock {0,1}\n@attribute jazz {0,1}\n@data\n"
    Path("y.arff").write_text(head + "1,0\n1,1\n0,0\n")
    np.save("x.npy", X)
    assert load("x.npy", candidates="y.arff", id=None).label_names == ["rock", "jazz"]


@pytest.mark.parametrize(
    ("files", "given", "message"),
    [
        ({}, {"features": "gone.csv"}, "gone.csv: no such file"),
        (
            {"x.json": "?"},
            {"features": "x.json"},
            "x.json: extension '.json' is not known; known are",
        ),
        ({"x.csv": ""}, {"tags": "tags"}, "x.csv: is empty"),
        (
            {},
            {"features": "tagged.csv"},
            "tags= names their column here, or candidates= another file; the columns are song",
        ),
        (
            {},
            {"features": "tagged.csv", "tags": "tags", "id": "artist"},
            "id=: has no column 'artist'; its columns are",
        ),
        ({"y.csv": "song,a\ns1,1\n"}, {"candidates": "y.csv", "id": None}, "'s1' is not a number"),
        (
            {"y.csv": "a\n1\n0\n"},
            {"candidates": "y.csv"},
            "y.csv: id=: has no column 'song'",
        ),
        (
            {"y.csv": "a\n1\n0\n", "z.csv": "t\n1\n2\n3\n"},
            {"features": "z.csv", "candidates": "y.csv", "id": None},
            "y.csv: has labels of 2 instances, z.csv features of 3",
        ),
        (
            {"y.csv": "song,a\ns1,1\n"},
            {"candidates": "y.csv"},
            "y.csv: instance 's2' has features but no row of labels (2 such instances)",
        ),
        (
            {"y.csv": "song,label,weight\ns1,rock,\n"},
            {"candidates": "y.csv"},
            "y.csv: row 1, column 'weight': is empty",
        ),
        ({}, {"features": "tagged.csv", "tags": "tags", "separator": ""}, "must not be empty"),
        ({"y.csv": "song,a\ns9,1\n"}, {"candidates": "y.csv"}, "instance 's9' has labels but no"),
        ({"y.csv": "song,a\ns1,1\ns1,0\n"}, {"candidates": "y.csv"}, "'s1' has two rows of labels"),
        (
            {"y.csv": "song,a\ns1,0.5\n"},
            {"candidates": "y.csv"},
            "row 1, column 'a': 0.5 is not 0",
        ),
        (
            {"y.csv": "song,a\ns1,\n"},
            {"candidates": "y.csv"},
            "row 1, column 'a': is empty; write 1 where",
        ),
        (
            {"y.csv": "song,label\ns1,\n"},
            {"candidates": "y.csv"},
            "row 1, column 'label': is empty",
        ),
        (
            {"x.csv": "song,t,rock,jazz\ns1,5,0,1\n"},
            {"tags": "rock,jaz"},
            "x.csv: tags=: has no column 'jaz'; its columns are song, t, rock, jazz",
        ),
        (
            {"x.csv": "song,t,rock\ns1,5,0\n"},
            {"tags": "tag_*"},
            "x.csv: where are its tags? it has no column 'tag_*'; tags= names their column here, "
            "or candidates= another file; the columns are song, t, rock",
        ),
        (
            {"x.csv": "song,t,tag_a,tag_b\ns1,5,0,2\n"},
            {"tags": "tag_*"},
            "x.csv: row 1, column 'tag_b': 2 is not 0 or 1 (or -1 or 1)",
        ),
        (
            {"x.csv": "song,t,tag_a,tag_b\ns1,5,0,\n"},
            {"tags": "tag_*"},
            "x.csv: row 1, column 'tag_b': is empty; write 1 where the label is given, ",
        ),
        (
            {"x.csv": "song,t,tags\ns1,5,rock;jazz\n"},
            {"tags": "tag*"},
            "'rock;jazz' is not a number; tags= names one column of lists, or columns of 0 and 1",
        ),
        ({"x.csv": "song,t,tags\n,1,a\n"}, {"tags": "tags"}, "row 1, column 'song': is empty"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(files, given, message):
    for name, text in files.items():
        Path(name).write_text(text)
    with pytest.raises(UserError) as raised:
        load(**given)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("named", "id", "tags", "candidates", "separator", "columns"),
    [
        (own.in_python, "id=", "tags=", "candidates=", "separator=", "columns="),
        (
            own.in_params,
            "dataset.id",
            "dataset.tags",
            "dataset.candidates",
            "dataset.separator",
            "dataset.columns",
        ),
        (
            own.on_command_line,
            "--id",
            "--tags",
            "CANDIDATES",
            "--separator",
            "--text, --category or --ignore",
        ),
    ],
)
def test_options_have_the_names_of_the_door(named, id, tags, candidates, separator, columns):
    def refusal(**given):
        with pytest.raises(UserError) as raised:
            load(named=named, **given)
        return str(raised.value)

    Path("y.csv").write_text("rock\n1\n0\n")
    np.save("x.npy", X)
    assert f"{tags} names their column here, or {candidates} another file; the" in refusal()
    assert f"{id}: has no column 'artist'" in refusal(
        features="tagged.csv", tags="tags", id="artist"
    )
    assert refusal(separator="") == f"{separator}: must not be empty"
    assert f"a column that both have as {id}" in refusal(
        features="x.npy", candidates="y.csv", id=None
    )
    Path("y.csv").write_text("name,rock\na,1\nb,0\nc,1\n")
    assert f"leave the column out, or name it as {id}, {tags} or {named('show')}" in refusal(
        candidates="y.csv", id=None
    )
    Path("x.csv").write_text("song,tempo\ns1,fast\ns2,3\ns3,4\n")
    assert refusal(candidates="y.csv").endswith(f"say what the column is by {columns}")


def data(**changes) -> Dataset:
    fields = {
        "features": X,
        "truth": np.array([[1, 0], [1, 1], [0, 1]], np.uint8),
        "candidates": np.ones((3, 2), np.uint8),
        "feature_names": ["tempo", "loud"],
        "label_names": ["jazz", "rock"],
        "instance_ids": IDS,
    }
    return Dataset(**{**fields, **changes})


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_feature_that_is_no_finite_number_is_refused_with_its_place(make, value):
    features = X.copy()
    features[1, 1] = value
    with pytest.raises(UserError) as raised:
        check(data(features=make(features)), "x.csv")
    assert f"x.csv: row 2 (instance 's2'), column 'loud': {value} is not a finite" in str(
        raised.value
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"features": X[:2]}, "truth of shape (3, 2) do not fit 2 instances"),
        ({"features": X[:, :0]}, "has 3 instances and 0 features"),
        ({"instance_ids": ["a", "b", "a"]}, "instance 'a' is there twice, as numbers 1 and 3"),
        ({"label_names": ["a", "a"]}, "label 'a' is there twice"),
        ({"feature_names": ["a", "a"]}, "feature 'a' is there twice"),
        (
            {"label_names": [], "truth": None, "candidates": np.zeros((3, 0), np.uint8)},
            "no instance has any label",
        ),
        ({"label_names": ["instance", "a"]}, "a label cannot be called 'instance'"),
        (
            {"candidates": np.array([[1, 0], [1, 0], [0, 0]], np.uint8)},
            "row 2 (instance 's2'): 'rock' is true but no candidate (2 such)",
        ),
    ],
)
def test_a_data_set_that_cannot_be_used_is_refused(changes, message):
    with pytest.raises(UserError) as raised:
        check(data(**changes), "x.csv")
    assert message in str(raised.value)


def test_what_a_person_may_not_have_meant_is_a_warning():
    labels = np.array([[1, 0], [1, 0], [0, 0]], np.uint8)
    assert check(data(candidates=labels, truth=None), "x.csv") == [
        "x.csv: 1 labels are never used and will be predicted absent: rock",
        "x.csv: 1 instances have no label and count as pure negatives",
    ]
    assert check(data(candidates=np.eye(3, 2, dtype=np.uint8), truth=None), "x.csv") == [
        "x.csv: no label occurs more than once, so nothing can be learned about any",
        "x.csv: 1 instances have no label and count as pure negatives",
    ]


def test_labels_mixed_of_minus_one_and_zero_are_refused():
    with pytest.raises(UserError, match="row 2, label column 1: -1 is not 0 or 1"):
        binary(np.array([[0], [-1], [1]]), "x")


def sparse_and_dense(monkeypatch, given):
    """What is read if labels are very many, and if not: all of them, and merged frequent ones."""
    options = [given, given | {"merge_variants": True, "min_count": 3}]
    dense = [load("features.csv", **each) for each in options]
    monkeypatch.setattr(dataset, "LARGE", 100)
    found = [load("features.csv", **each) for each in options]
    assert all(sparse.issparse(each.candidates) for each in found)
    return zip(found, dense, strict=True)


def test_a_data_set_of_very_many_labels_is_sparse_from_its_file_on(monkeypatch):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    table["song"] = [f"s{i}" for i in range(60)]
    lists = [";".join(f"tag {j}" for j in rng.integers(0, 25, 2)) for _ in range(60)]
    table.to_csv("features.csv", index=False)
    table[["song"]].assign(tags=lists)[::-1].to_csv("labels.csv", index=False)
    given = {"candidates": "labels.csv", "id": "song", "tags": "tags"}
    for found, same in sparse_and_dense(monkeypatch, given):
        np.testing.assert_array_equal(found.candidates.toarray(), same.candidates)
        assert found.label_names == same.label_names
        assert check(found, "x") == check(same, "x")
        if found.unjudged:
            np.testing.assert_array_equal(
                found.unjudged.candidates.toarray(), same.unjudged.candidates
            )


@pytest.mark.parametrize("known", [60, 50])
def test_truth_beside_very_many_labels_is_sparse_too(monkeypatch, known):
    rng = np.random.default_rng(0)
    songs = [f"s{i}" for i in range(60)]
    pd.DataFrame({"song": songs, "a": range(60)}).to_csv("features.csv", index=False)
    rows = [(songs[i], f"tag {j:02}") for i in range(60) for j in rng.permutation(25)[:2]]
    columns = ["song", "label"]
    pd.DataFrame(rows, columns=columns).to_csv("labels.csv", index=False)
    true = [row for row in rows[::2] if int(row[0][1:]) < known]
    pd.DataFrame(true, columns=columns).to_csv("truth.csv", index=False)
    given = {"candidates": "labels.csv", "truth": "truth.csv", "id": "song"}
    same = load("features.csv", **given)
    monkeypatch.setattr(dataset, "LARGE", 100)
    found = load("features.csv", **given)
    assert sparse.issparse(found.candidates)
    assert sparse.issparse(found.truth) == (known == 60)  # rows of -1 are not nearly empty
    np.testing.assert_array_equal(to_dense(found.truth), same.truth)
    np.testing.assert_array_equal(found.candidates.toarray(), same.candidates)
    assert check(found, "x") == check(same, "x")
    assert describe(found) == describe(same)
    assert noise.summary(found.truth, found.candidates) == noise.summary(
        same.truth, same.candidates
    )
    pd.DataFrame([*true, ("s3", "tag 99")], columns=columns).to_csv("truth.csv", index=False)
    with pytest.raises(UserError, match="row 4 .instance 's3'.: 'tag 99' is true but no candidate"):
        check(load("features.csv", **given), "x")


def test_votes_of_very_many_labels_are_sparse_too(monkeypatch):
    rng = np.random.default_rng(0)
    songs = [f"s{i}" for i in range(60)]
    pd.DataFrame({"song": songs, "a": range(60)}).to_csv("features.csv", index=False)
    spelt = ("tag {}", "Tag {}")
    rows = [
        (songs[i], spelt[k].format(j), 1 + rng.integers(3) / 4)
        for i in range(60)
        for k, j in enumerate(rng.integers(0, 25, 2))
    ]
    columns = ["song", "label", "weight"]
    pd.DataFrame([*rows, *rows[:20]], columns=columns).to_csv("labels.csv", index=False)
    for found, same in sparse_and_dense(monkeypatch, {"candidates": "labels.csv", "id": "song"}):
        assert sparse.issparse(found.votes)
        np.testing.assert_array_equal(found.votes.toarray(), same.votes)
        np.testing.assert_array_equal(found.candidates.toarray(), same.candidates)
        assert describe(found) == describe(same)


def test_very_many_long_rows_are_sparse_too_and_may_lack_instances(monkeypatch):
    rng = np.random.default_rng(0)
    songs = [f"s{i}" for i in range(60)]
    pd.DataFrame({"song": songs, "a": range(60)}).to_csv("features.csv", index=False)
    rows = [(songs[i], f"tag {j}") for i in range(50, 0, -1) for j in rng.integers(0, 25, 2)]
    pd.DataFrame([*rows, rows[0]], columns=["song", "label"]).to_csv("labels.csv", index=False)
    plain = load("features.csv", candidates="labels.csv", id="song")
    monkeypatch.setattr(dataset, "LARGE", 100)
    found = load("features.csv", candidates="labels.csv", id="song")
    assert sparse.issparse(found.candidates)
    np.testing.assert_array_equal(found.candidates.toarray(), plain.candidates)
    assert found.candidates.sum() == len(set(rows))
    assert check(found, "x") == check(plain, "x")
