import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet
from scipy import sparse

from wscpml.datasets import batches
from wscpml.errors import UserError

TABLE = pd.DataFrame(
    {"b": [0.1, 1 / 3, 2], "id": ["01", "NA", "x"], "c": [7, 8, 9], "a": [1, 2, 3]}
)


@pytest.fixture(autouse=True)
def two_rows_at_once(monkeypatch):
    monkeypatch.setattr(batches, "ROWS_AT_ONCE", 2)


def parts(path, features=("a", "b"), id=None):
    return list(batches.read(path, list(features), id))


def test_several_files_are_predicted_as_they_are_learned_from(tmp_path):
    for k in range(3):
        TABLE[k : k + 1][list(TABLE)[:: (-1) ** k]].to_csv(tmp_path / f"day{k}.csv", index=False)
    for path in (tmp_path, tmp_path / "day*.csv"):
        (first, one), (third, other) = parts(path, id="id")
        assert (first, third) == (1, 3)
        whole = pd.concat([one, other])
        pd.testing.assert_frame_equal(whole[["a", "b"]], TABLE[["a", "b"]], check_dtype=False)
        assert whole["id"].tolist() == ["01", "NA", "x"]


def test_numbers_of_classes_have_their_names(tmp_path):
    feature = {"names": ["u", "v"], "_type": "ClassLabel"}
    stored = {"huggingface": json.dumps({"info": {"features": {"a": feature}}})}
    table = pa.table({"a": [1, 0, -1], "b": [1.0, 2.0, 3.0]}).replace_schema_metadata(stored)
    parquet.write_table(table, tmp_path / "x.parquet")
    found = pd.concat([part for _, part in parts(tmp_path / "x.parquet")])
    assert found.a.tolist()[:2] == ["v", "u"]
    assert found.a.isna().tolist() == [False, False, True]


def refusal(path, **options):
    with pytest.raises(UserError) as mistake:
        parts(path, **options)
    text = str(mistake.value)
    assert text.startswith(f"{path}: ")
    assert "\n" not in text
    return text.removeprefix(f"{path}: ")


@pytest.mark.parametrize("name", ["x.csv", "x.parquet"])
def test_tables_come_in_parts_with_just_the_columns_that_are_needed(tmp_path, name):
    path = tmp_path / name
    TABLE.to_csv(path, index=False) if name == "x.csv" else TABLE.set_index("id").to_parquet(path)
    found = parts(path, id="id")
    assert [first for first, _ in found] == [1, 3]
    whole = pd.concat([part for _, part in found], ignore_index=True)
    pd.testing.assert_frame_equal(
        whole[["b", "id", "a"]], TABLE[["b", "id", "a"]], check_dtype=False
    )
    assert whole.shape == (3, 3)
    assert refusal(path, id="key").startswith("--id: has no column 'key'; its columns are ")


def test_csv_may_have_other_separators_and_a_byte_order_mark(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("\ufeffa;b\n1;2\n\n3;4\n", encoding="utf-8")
    ((_, part),) = parts(path)
    assert part.to_dict("list") == {"a": [1, 3], "b": [2, 4]}


def test_matrices_have_the_features_in_order(tmp_path):
    X = np.arange(6.0).reshape(3, 2)
    np.save(tmp_path / "x.npy", X)
    sparse.save_npz(tmp_path / "x.npz", sparse.csr_array(X))
    for name in ("x.npy", "x.npz"):
        found = pd.concat([part for _, part in parts(tmp_path / name)])
        assert found.columns.tolist() == ["a", "b"]
        np.testing.assert_array_equal(found, X)
    assert refusal(tmp_path / "x.npy", features="abc") == "has 2 features, the model takes 3"
    (tmp_path / "x.svmlight").write_text("1 1:5\n1,2 1:6\n")
    ((_, part),) = parts(tmp_path / "x.svmlight")
    assert part.to_dict("list") == {"a": [5, 6], "b": [0, 0]}


def test_what_cannot_be_read_is_one_line(tmp_path):
    path = tmp_path / "x.csv"
    assert refusal(path) == "no such file"
    path.write_text("a,b\n")
    assert refusal(path) == "has no rows"
    path.write_text("")
    assert refusal(path) == "is empty"
    path.write_text("a,a\n1,2\n")
    assert "column 'a' is there twice" in refusal(path)
    path.write_text("a,b\n1,2\n1,2,3\n")
    assert refusal(path) == "row 2: has 3 cells, the header has 2 names"
    path.write_text("a,b\n1,2,3\n1,2,3\n")
    assert refusal(path) == "row 1: has 3 cells, the header has 2 names"
    path.write_bytes("a,b\n1,é\n".encode("latin-1"))
    assert "is not UTF-8 text" in refusal(path)
    path.write_text("a,b,id\n" + "1,2,x\n" * 4 + "1,2,\n")
    assert refusal(path, id="id") == "row 5, column 'id': is empty"
    (tmp_path / "x.parquet").write_bytes(b"PAR1 no")
    assert "cannot be read" in refusal(tmp_path / "x.parquet")
    assert "extension '.txt' is not known" in refusal(tmp_path / "x.txt")


def test_svmlight_without_a_column_0_is_told_where_it_may_have_had_one(tmp_path):
    told, path = list[str](), tmp_path / "x.svm"
    for rows, count in ((["1:6", "2:8"], 1), (["1:6", "3:8"], 0), (["0:6", "1:8"], 0)):
        told.clear()
        path.write_text(f"1 {' '.join(rows)}\n")
        list(batches.read(path, ["x1", "x2", "x3"], None, tell=told.append))
        expected = f"{path}: no row has column 0, so that columns are taken to count from 1"
        assert told == [expected] * count
