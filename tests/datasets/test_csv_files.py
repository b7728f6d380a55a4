import pandas as pd
import pytest

from wscpml.datasets import csv_files
from wscpml.errors import UserError


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(csv_files, "BLOCK", 64)


def write(path, lines, end="\n"):
    path.write_bytes(end.join(lines).encode("utf-8-sig"))
    return path


def in_parts(path, columns, text=(), rows=4):
    return list(csv_files.parts(path, columns, text, rows))


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("id", ["{}", '"{}"', '"the\n{}, ""x"""', "long " * 5000 + "{}"])
def test_the_parts_of_a_file_are_the_whole_of_it(tmp_path, end, id):
    rows = [f"{i / 7},{id.format(i)},," for i in range(50)]
    path = write(tmp_path / "x.csv", ["x,id,,empty", *rows, ""], end)
    assert csv_files.names(path) == ["x", "id", "column 3", "empty"]
    found = in_parts(path, ["x", "id", "column 3"], ["id"])
    assert [len(part) for part in found] == [4] * 12 + [2]
    whole = csv_files.read(path, ["id"])[["x", "id", "column 3"]]
    assert whole.x.tolist() == [i / 7 for i in range(50)]
    pd.testing.assert_frame_equal(pd.concat(found, ignore_index=True), whole)


def test_words_among_the_numbers_are_kept_from_where_they_are(tmp_path):
    rows = [f"{i},{i % 2 == 0}" for i in range(300)]
    path = write(tmp_path / "x.csv", ["a,even", *rows[:-1], "many,false"])
    *before, last = in_parts(path, ["a", "even"])
    assert [part.a.tolist() for part in before] == [list(range(i, i + 4)) for i in range(0, 296, 4)]
    assert last.a.tolist() == ["296", "297", "298", "many"]
    assert last.even.tolist() == [True, False, True, False]


@pytest.mark.parametrize("read", [csv_files.read, lambda path: in_parts(path, ["b"])])
def test_a_row_of_another_length_is_told_wherever_it_is(tmp_path, read):
    path = write(tmp_path / "x.csv", ["a,b", *["1,2"] * 5000, "", "3"])
    with pytest.raises(UserError) as mistake:
        read(path)
    assert str(mistake.value) == f"{path}: row 5001: has 1 cells, the header has 2 names"


@pytest.mark.parametrize("read", [csv_files.read, lambda path: in_parts(path, ["b"])])
def test_what_is_not_utf_8_is_told_with_its_byte(tmp_path, read):
    start = b"\xef\xbb\xbfa,b\n" + b"1,2\n" * 5000 + b"3,"
    (tmp_path / "x.csv").write_bytes(start + b"\xe9\n")
    with pytest.raises(UserError, match=rf"UTF-8 text \(line 5002, byte {len(start)}\); save"):
        read(tmp_path / "x.csv")


def test_blanks_around_names_and_numbers_are_cut(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("song, x , tags\ns0, 1.5, rock\n")
    whole, (part,) = csv_files.read(path), csv_files.parts(path, ["x", "tags"], (), 9)
    assert list(whole) == ["song", "x", "tags"]
    assert whole.x.tolist() == part.x.tolist() == [1.5]
    path.write_text("x, x\n1,2\n")
    with pytest.raises(UserError, match="column 'x' is there twice, as numbers 1 and 2"):
        csv_files.read(path)


def test_a_header_alone_has_no_parts(tmp_path):
    assert in_parts(write(tmp_path / "x.csv", ["a,b"]), ["a", "b"]) == []


def test_decimal_commas_are_read_where_commas_do_not_separate(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a;b;c\n1,5;2,5;0,25\n2;1.5;3\n")
    table = csv_files.read(path)
    assert table.a.tolist() == [1.5, 2]
    assert table.b.tolist() == ["2,5", "1.5"]
    assert table.c.tolist() == [0.25, 3]
    (part,) = csv_files.parts(path, ["a"], [], 10)
    assert part.a.tolist() == [1.5, 2]


def test_words_for_nothing_are_empty_among_decimal_commas(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a;b;c\n1,5;NA;NA\n NA;x;DE\n-;2,5;FR\n")
    table = csv_files.read(path)
    assert table.a.tolist()[0] == 1.5
    assert table.a.isna().tolist() == [False, True, True]
    assert table.b.tolist() == ["NA", "x", "2,5"]
    assert table.c.tolist() == ["NA", "DE", "FR"]
