"""Files that would hurt: each is one line, soon, and takes little memory."""

import gzip
import io
import json
import struct
import subprocess
import sys
import time
import zipfile
import zlib
from contextlib import suppress
from pathlib import Path

import numpy as np
import openpyxl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet
from scipy import sparse
from scipy.io import loadmat, savemat

from tests.fuzz import peak
from wscpml import limits, npy_files
from wscpml.arrays import compressed
from wscpml.datasets import mat_files, own, readers, table_files
from wscpml.datasets.dataset import check
from wscpml.errors import UserError

SECONDS, BYTES = 5, 400 << 20


@pytest.fixture(autouse=True)
def _small(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WSCPML_MAX_MEMORY", "100 MB")


def refused(name: str, content: bytes | None = None, told: str = "") -> None:
    """A file is refused with one line that tells this, which takes little."""
    if content is not None:
        Path(name).write_bytes(content)
    peak()
    before, start = peak(), time.process_time()
    with pytest.raises(UserError) as raised:
        own.load(own.Sources(Path(name), id=None, tags="tags"))
    assert time.process_time() - start < SECONDS
    assert peak() - before < BYTES
    (line,) = raised.value.args
    assert line.startswith(f"{name}: ")
    assert len(line) <= 600
    assert told in line


def npy(header: str) -> bytes:
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + b"\0" * 64


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999, 99999999999)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-1, 4)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (9, 4)}",
        "{'descr': '|V0', 'fortran_order': False, 'shape': (9999999999999, 4)}",
        "{'descr': '|O', 'fortran_order': False, 'shape': (2, 4)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (2L, 4",
        "{'descr': [('a', '<f8')] * 9, 'fortran_order': False, 'shape': (2, 4)}",
        "(" * 200,
    ],
)
def test_arrays_that_a_npy_file_cannot_hold_are_not_made(header):
    refused("x.npy", npy(header), told="x.npy: cannot be read as npy")


def test_archives_that_unpack_to_more_than_there_is_room_for_are_refused():
    zeros = bytes(200 << 20)
    with zipfile.ZipFile("x.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
        packed.writestr("features.npy", zeros)
    refused("x.npz", told="it unpacks to 209,715,200 bytes")
    packed = zlib.compress(struct.pack("<II", 14, len(zeros)) + zeros, 1)
    start = b" " * 124 + b"\x00\x01IM" + struct.pack("<II", 15, len(packed))
    refused("x.mat", start + packed, told="it unpacks to 209,715,200 bytes")
    numbers = gzip.compress(b"tags," + b"1," * (7 << 20) + b"1\n", 1)
    refused("x.csv.gz", numbers, told="columns, which takes")


def test_an_archive_that_lies_or_is_locked_is_refused():
    np.savez("x.npz", features=np.ones((3, 2)))
    whole = Path("x.npz").read_bytes()
    place = whole.index(b"PK\x01\x02")
    for at, value in ((8, b"\x01\x00"), (10, b"\x63\x00"), (24, b"\xff\xff\xff\x7f")):
        refused("x.npz", whole[: place + at] + value + whole[place + at + len(value) :])


@pytest.mark.parametrize(
    "parts",
    [
        {"indices": [0, 9, 1]},
        {"indices": [0, -1, 1]},
        {"indices": [0.0, 1.0, 1.0]},
        {"indptr": [0, 3, 1, 3]},
        {"indptr": [0, 1, 2, 9]},
        {"indptr": [0, 1, 3]},
        {"indptr": []},
        {"shape": [3, 1]},
        {"shape": [3, -2]},
        {"shape": [3]},
        {"shape": [3, 1 << 60]},
        {"shape": [1 << 60, 2]},
        {"shape": 3},
        {"data": [[1.0, 2.0, 3.0]]},
        {"data": ["a", "b", "c"]},
        {"format": "coo"},
        {"format": [1, 2]},
    ],
    ids=str,
)
def test_sparse_parts_that_do_not_fit_never_come_to_scipy(parts):
    good = {"data": [1.0, 2, 3], "indices": [0, 1, 1], "indptr": [0, 1, 2, 3], "shape": [3, 2]}
    arrays = {k: np.array(v) for k, v in (good | {"format": b"csr"} | parts).items()}
    np.savez("x.npz", **arrays)
    refused("x.npz")
    assert compressed(*(np.array(v) for v in list(good.values())[:3]), [3, 2]).shape == (3, 2)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("1 99999999999:1\n", "has a column 100000000000, and is far too small"),
        ("1 9223372036854775807:1\n", "has a column 9223372036854775808"),
        ("1 99999999999999999999:1\n", "cannot be read as svmlight"),
        ("1 -5:1\n", "row 1: column -5 is out of order"),
        ("nan 1:1\n", "row 1: a label is not a finite number"),
        ("1 1:1\n1,inf 1:1\n", "row 2: a label is not a finite number"),
        ("1 1:1\n1 1:1 2:nan\n", "row 2, column 2: nan is not a finite number"),
        ("1 1:-inf\n", "row 1, column 1: -inf is not a finite number"),
        ("1 1:1\0\n", "cannot be read as svmlight"),
        ("".join(f"{i} 1:1\n" for i in range(20_000)), "20,000 instances have 20,000 different"),
        ("1" + " 1:1" * 3_000_000, "it has 3,000,000 cells"),
    ],
    ids=lambda text: text[:20],
)
def test_svmlight_that_asks_for_the_absurd_is_refused(text, line):
    refused("x.svmlight", text.encode(), told=line)


def test_a_million_attributes_and_endless_lines_are_refused():
    names = ",".join(f"c{i}" for i in range(1_000_000))
    refused("x.csv", f"{names}\n".encode(), told="it has 999,999 columns")
    refused("x.csv", b'"' + b"a\n" * (9 << 20), told="is a quote left open?")
    refused("x.csv", b"a" * (20 << 20), told="is a quote left open?")
    header = "".join(f"@attribute c{i} numeric\n" for i in range(100_000))
    refused("x.arff", f"{header}@data\n1,2\n".encode(), told="it has 100,000 attributes")


def test_a_stray_quote_is_one_line():
    rows = "".join(f"{i},2\n" for i in range(300_000))
    refused("x.csv", f'a,"b\n{rows}'.encode())
    refused("x.csv", f'a,b\n"1,2\n{rows}'.encode(), told="row 1: has 1 cells")


@pytest.mark.parametrize(
    "line",
    [
        "@attribute " + " " * 2_000_000,
        "@attribute a" + " " * 2_000_000 + "b",
        "@attribute " + "'" * 2_000_000,
        "@relation " + "-C " * 1_000_000,
        "@relation -C " + " " * 2_000_000,
        "@attribute a {" + "0," * 1_000_000,
    ],
    ids=lambda line: line[:16],
)
def test_arff_takes_time_by_its_length_alone(line):
    refused("x.arff", f"{line}\n@attribute b string\n@data\n1\n".encode())
    refused("x.arff", b"@attribute a numeric\n@data\n" + b"{0 1}\n" * 200_000 + b"{0 1, 5 1}\n")


@pytest.mark.parametrize("digits", [400, 5000])
def test_a_whole_number_that_no_float_holds_is_refused_as_infinity_is(digits):
    large = b"-" + b"9" * digits
    text = b"@relation 'x: -C 1'\n@attribute a {0,1}\n@attribute b numeric\n@data\n1,2\n"
    Path("x.arff").write_bytes(text + b"0," + large + b"\n")
    with pytest.raises(UserError, match="row 2 .*column 'b': -inf is not"):
        check(own.load(own.Sources(Path("x.arff"))), "x.arff")
    refused("x.arff", text + large + b",0\n", told="row 2, label column 1: -inf is not 0 or 1")


@pytest.mark.parametrize(
    "xml",
    [
        '<!DOCTYPE x [<!ENTITY a "b">]><labels><label name="&a;"/></labels>',
        '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><labels>&a;</labels>',
        '<?xml version="1.0" encoding="no-such"?><labels/>',
        "<labels>" * 100_000,
        '<labels><label name="a"/><label name="a"/></labels>',
    ],
    ids=lambda xml: xml[:30],
)
def test_mulans_xml_has_no_entities_and_is_refused_in_one_line(xml):
    Path("x.arff").write_text("@attribute a {0,1}\n@attribute b numeric\n@data\n1,2\n")
    Path("x.xml").write_text(xml)
    with pytest.raises(UserError, match=r"^x.xml: ") as raised:
        readers.read(Path("x.arff"))
    assert len(raised.value.args) == 1


def test_json_that_is_nested_or_has_a_key_a_row_is_refused():
    for start, end in (("[", "]"), ('{"a":', "}"), ("[", "")):
        line = f'{{"tags": {start * 100_000}1{end * 100_000}}}\n'
        refused("x.jsonl", line.encode(), told="100001 deep")
    rows = "".join(f'{{"k{i}": 1}}\n' for i in range(20_000))
    refused("x.jsonl", rows.encode(), told="20,001 rows have 20,000 different keys")
    refused("x.jsonl", b'{"a": "' + b'\\"' * 1_000_000)
    refused("x.jsonl", b'{"a": "\xff"}\n')
    for line in (b'null{"a": 1}', b'{"a": 1}null', b'[{"a": 1}]', b'"a"{"a": 1}', b"1"):
        refused("x.jsonl", line + b'\n{"a": 2}\n', told="is not one object")
    text = json.dumps({"a": "[[" * 100, "tags": "b"}).encode()
    Path("x.jsonl").write_bytes(text + b"\n")
    assert table_files.read(Path("x.jsonl")).a.tolist() == ["[[" * 100]


def test_parquet_that_means_more_than_it_holds_is_refused():
    text = pa.array(["x" * 1_000_000])
    often = pa.DictionaryArray.from_arrays(np.zeros(10_000, np.int32), text)
    lists = pa.ListArray.from_arrays(np.arange(10_001, dtype=np.int32), often)
    for tags in (often, lists):
        parquet.write_table(pa.table({"tags": tags}), "x.parquet")
        assert Path("x.parquet").stat().st_size < 200_000
        refused("x.parquet", told="it repeats long texts, which takes 10 GB")
    parquet.write_table(pa.table({"tags": np.zeros(20_000_000)}), "x.parquet")
    refused("x.parquet", told="it has 20,000,000 rows and 1 columns")
    parquet.write_table(
        pa.table({"tags": pa.array([["a", "b"], ["b"], None] * 50_000)}), "x.parquet"
    )
    found = table_files.read(Path("x.parquet"))  # by the longer way, and the same
    assert found.tags[:2].map(list).tolist() == [["a", "b"], ["b"]]


def test_a_cell_at_the_end_of_the_world_is_refused():
    for row, column in ((1_048_576, 16_384), (1, 16_384), (1_048_576, 1)):
        book = openpyxl.Workbook()
        book.active.cell(1, 1, "tags")
        book.active.cell(row, column, 1)
        book.save("x.xlsx")
        refused("x.xlsx")
    content = io.BytesIO()
    with zipfile.ZipFile("x.xlsx") as old, zipfile.ZipFile(content, "w") as new:
        for name in old.namelist():
            text = old.read(name).replace(b'r="1048576"', b'r="99999999999"')
            new.writestr(name, text)
    refused("x.xlsx", content.getvalue(), told="a cell far below all others")


MATRICES = {
    "doubles": np.array([[0.5, -2.0, 1e300], [0, 1, 2]]),
    "small": np.array([[0, 1], [1, 255]], np.uint8),
    "singles": np.array([[0.5], [2]], np.float32),
    "whole": np.array([[1, -7], [1 << 40, 0]]),
    "bits": np.array([[True, False]]),
    "sparse": sparse.csc_array([[0.0, 2, 0], [1, 0, 0]]),
    "empty": np.zeros((0, 3)),
    "nothing": sparse.csc_array((3, 4)),
    "long_name_of_a_matrix": np.array([[1.0]]),
}


@pytest.mark.parametrize("packed", [True, False])
def test_mat_files_are_what_scipy_reads(packed):
    savemat(
        "x.mat",
        MATRICES | {"text": "abc", "cell": np.array([{}, 1], object), "c": [[1j]]},
        do_compression=packed,
    )
    found, known = mat_files.read(Path("x.mat")), loadmat("x.mat", spmatrix=False)
    assert {name for name, matrix in found.items() if matrix is None} == {"text", "cell", "c"}
    for name in MATRICES:
        if sparse.issparse(known[name]):
            assert (abs(found[name] - known[name])).sum() == 0
            assert found[name].shape == known[name].shape
        else:
            np.testing.assert_array_equal(found[name], known[name])
            assert found[name].dtype == known[name].dtype


def test_a_sparse_matrix_with_far_too_many_rows_is_refused():
    savemat("x.mat", {"data": MATRICES["sparse"]}, do_compression=False)
    whole = Path("x.mat").read_bytes()
    sides = struct.pack("<II", 2, 3)
    refused("x.mat", whole.replace(sides, struct.pack("<II", 1 << 29, 3)), told="far too small")


def test_what_parquet_says_of_a_column_does_not_end_the_process():
    """A footer whose statistics do not fit: Arrow aborts where it is asked for them."""
    parquet.write_table(pa.table({"tags": ["a", None], "x": [1, 2]}), "x.parquet")
    whole = Path("x.parquet").read_bytes()
    start = len(whole) - 8 - struct.unpack("<I", whole[-8:-4])[0]
    code = """
import sys
from contextlib import suppress
from pathlib import Path
from wscpml.datasets import table_files
from wscpml.errors import UserError
whole, start = Path("x.parquet").read_bytes(), int(sys.argv[1])
for place in range(start, start + 120):
    for bit in (1, 4, 16):
        changed = whole[place] ^ bit
        Path("y.parquet").write_bytes(whole[:place] + bytes([changed]) + whole[place + 1 :])
        with suppress(UserError):
            table_files.read(Path("y.parquet"))
print("alive")
"""
    done = subprocess.run([sys.executable, "-c", code, str(start)], capture_output=True, text=True)
    assert done.stdout == "alive\n", done.stderr


@given(data=st.binary(max_size=300), place=st.integers(100, 600))
def test_whatever_a_mat_file_holds_it_is_read_or_refused(tmp_path_factory, data, place):
    path = tmp_path_factory.mktemp("mat", numbered=True) / "x.mat"
    savemat(path, {"data": MATRICES["sparse"], "target": MATRICES["small"]}, do_compression=False)
    whole = path.read_bytes()
    path.write_bytes(whole[:place] + data + whole[place + len(data) :])
    with suppress(UserError):
        readers.read(path)


def test_arrays_of_every_order_are_read_as_numpy_does():
    for array in (np.asfortranarray(np.arange(6.0).reshape(2, 3)), np.zeros((0, 3)), np.array(5)):
        np.save("x.npy", array)
        np.testing.assert_array_equal(npy_files.read(Path("x.npy")), array)


def test_the_budget_is_what_is_said_or_half_of_what_is_free(monkeypatch):
    for said, size in (
        ("2GB", 2 * 10**9),
        ("1.5 mb", 1_500_000),
        ("4096", 4096),
    ):
        monkeypatch.setenv("WSCPML_MAX_MEMORY", said)
        assert limits.budget() == size
    for said in ("much", "-1", "0"):
        monkeypatch.setenv("WSCPML_MAX_MEMORY", said)
        with pytest.raises(
            UserError, match="WSCPML_MAX_MEMORY: must be an amount of memory such as 4 GB"
        ):
            limits.budget()
    monkeypatch.delenv("WSCPML_MAX_MEMORY")
    assert 0 < limits.budget() < 1 << 50


def test_lists_without_numbers_and_holes_are_left_out():
    rows = [{"x": i, "empty": [] if i else None, "tags": "a"} for i in range(4)]
    Path("x.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    data = own.load(own.Sources(Path("x.jsonl"), tags="tags"))
    assert data.features.shape == (4, 1)


@pytest.mark.parametrize("min_count", [1, 2])
@pytest.mark.parametrize("cell", ['["ro\\ud800ck"]', "['ro\\udcffck']"])
def test_half_of_a_character_in_a_list_of_tags_is_told_before_anything_is_written(cell, min_count):
    quoted = cell.replace('"', '""')
    Path("x.csv").write_text(f'tempo,tags\n1,"{quoted}"\n2,"[""pop""]"\n3,"[""pop""]"\n')
    data = own.load(own.Sources(Path("x.csv"), tags="tags", min_count=min_count))
    with pytest.raises(UserError, match=r"^x\.csv: label 'ro\\ud...ck' has half of a character"):
        check(data, "x.csv")
