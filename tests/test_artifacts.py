import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from wscpml import artifacts
from wscpml.errors import UserError

TABLE = pd.DataFrame({"label": ["rock", "NA", "null"], "F": [0.1, 1 / 3, 1.0]})
ARRAYS = {"a": np.arange(6.0).reshape(2, 3), "scalar": np.array(2.0), "none": np.empty((0, 3))}
CONTENTS = {
    "x.npy": ARRAYS["a"],
    "x.npz": ARRAYS,
    "x.safetensors": ARRAYS,
    "x.json": {"labels": ["é", "b"], "n": 1, "undefined": None},
    "x.csv": TABLE,
    "x.parquet": TABLE,
}


def same(a, b):
    if isinstance(a, pd.DataFrame):
        pd.testing.assert_frame_equal(a, b)
    elif isinstance(a, dict) and "a" in a:
        assert a.keys() == b.keys()
        for name in a:
            np.testing.assert_array_equal(a[name], b[name])
    else:
        np.testing.assert_equal(a, b)


@pytest.mark.parametrize("name", CONTENTS)
def test_what_is_written_is_read_back(tmp_path, name):
    artifacts.write(tmp_path / name, CONTENTS[name])
    same(artifacts.read(tmp_path / name), CONTENTS[name])


def test_a_path_as_content_is_copied_whatever_it_holds(tmp_path):
    (tmp_path / "a.mat").write_bytes(b"any bytes")
    artifacts.write_directory(tmp_path / "copy", {"b.mat": tmp_path / "a.mat"})
    assert (tmp_path / "copy/b.mat").read_bytes() == b"any bytes"
    with pytest.raises(UserError, match="b.mat: cannot be written"):
        artifacts.write_directory(tmp_path / "copy", {"b.mat": tmp_path / "gone.mat"})
    assert (tmp_path / "copy/b.mat").read_bytes() == b"any bytes"


@pytest.mark.parametrize("name", [*CONTENTS, "x.png"])
def test_the_same_content_gives_the_same_bytes_whatever_the_file_is_called(tmp_path, name):
    content = CONTENTS.get(name) or Figure() if name == "x.png" else CONTENTS[name]
    artifacts.write(tmp_path / name, content)
    artifacts.write(tmp_path / f"other_{name}", content)
    assert (tmp_path / name).read_bytes() == (tmp_path / f"other_{name}").read_bytes()


@pytest.mark.parametrize("name", CONTENTS)
@pytest.mark.parametrize("share", [0.0, 0.6, 0.99])
def test_a_file_cut_off_is_refused_by_name(tmp_path, name, share):
    path = tmp_path / name
    artifacts.write(path, CONTENTS[name])
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(UserError, match=rf"{name}: is damaged or cut off \(.*; `dvc checkout`"):
        artifacts.read(path)


def test_a_missing_file_is_told_so(tmp_path):
    with pytest.raises(UserError, match="x.npy: is missing; `dvc checkout` gets it back"):
        artifacts.read(tmp_path / "x.npy")


def test_pickled_objects_are_not_loaded(tmp_path):
    np.save(tmp_path / "x.npy", np.array([{"a": 1}]), allow_pickle=True)
    with pytest.raises(UserError, match="allow_pickle=False"):
        artifacts.read(tmp_path / "x.npy")


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    artifacts.write(tmp_path / "x.json", {"n": 1})
    with pytest.raises(ValueError, match="not JSON compliant"):
        artifacts.write(tmp_path / "x.json", {"n": float("nan")})
    assert artifacts.read(tmp_path / "x.json") == {"n": 1}
    assert [file.name for file in tmp_path.iterdir()] == ["x.json"]


def test_a_failed_directory_leaves_the_old_one_and_nothing_else(tmp_path):
    target = tmp_path / "model"
    artifacts.write_directory(target, {"a.json": 1, "b.json": 2})
    with pytest.raises(ValueError, match="not JSON compliant"):
        artifacts.write_directory(target, {"a.json": 3, "b.json": float("nan")})
    assert artifacts.read_directory(target, ["a.json", "b.json"]) == {"a.json": 1, "b.json": 2}
    artifacts.write_directory(target, {"a.json": 3})
    assert [file.name for file in target.iterdir()] == ["a.json"]
    assert [file.name for file in tmp_path.iterdir()] == ["model"]


def test_a_matrix_in_blocks_is_written_as_the_whole_one_and_read_from_disk(tmp_path):
    X = np.arange(12, dtype=np.float32).reshape(6, 2)
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    artifacts.write_directory(whole, artifacts.matrix_file("x", X))
    blocks = artifacts.Blocks(X.shape, iter([X[:4], X[4:]]))
    artifacts.write_directory(cut, artifacts.matrix_file("x", blocks))
    assert (whole / "x.npy").read_bytes() == (cut / "x.npy").read_bytes()
    mapped = artifacts.read_matrix(cut, "x")
    assert isinstance(mapped, np.memmap)
    np.testing.assert_array_equal(mapped, X)


def test_large_scratch_room_is_on_disk(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert not isinstance(artifacts.scratch((3, 2)), np.memmap)
    monkeypatch.setattr(artifacts, "MOST_IN_MEMORY", 8)
    room = artifacts.scratch((3, 2))
    assert isinstance(room, np.memmap)
    room[:] = 1
    assert room.sum() == 6
    assert not list(tmp_path.iterdir())


def test_scratch_room_that_the_disk_has_not_is_a_line_before_it_is_used(tmp_path, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(artifacts, "MOST_IN_MEMORY", 8)
    monkeypatch.setattr(artifacts.os, "posix_fallocate", full, raising=False)
    with pytest.raises(UserError, match=r"cannot be written \(No space left on device\)"):
        artifacts.scratch((3, 2))


@pytest.mark.parametrize("size", [1, 4, 10])
def test_room_is_made_also_where_the_system_has_no_call_for_it(tmp_path, monkeypatch, size):
    monkeypatch.delattr(artifacts.os, "posix_fallocate", raising=False)
    monkeypatch.setattr(artifacts, "ZEROS", 4)
    with (tmp_path / "x").open("wb") as file:
        artifacts.allocate(file, size)
        assert (tmp_path / "x").read_bytes() == bytes(size)


@pytest.mark.parametrize("name", ["x.csv", "x.parquet"])
def test_a_table_in_parts_is_the_same_table(tmp_path, name):
    parts = artifacts.Parts(TABLE.iloc[i : i + 1] for i in range(len(TABLE)))
    artifacts.write(tmp_path / name, parts)
    same(artifacts.read(tmp_path / name), TABLE)


@pytest.mark.parametrize("name", ["x.csv", "x.parquet"])
def test_a_table_whose_parts_break_off_is_not_written(tmp_path, name):
    def parts():
        yield TABLE
        raise UserError("no more")

    artifacts.write(tmp_path / name, TABLE)
    with pytest.raises(UserError, match="no more"):
        artifacts.write(tmp_path / name, artifacts.Parts(parts()))
    same(artifacts.read(tmp_path / name), TABLE)
    assert [file.name for file in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("items", [[], [1], [{"a": ["x\ny", {}], "b": {"c": None}}, [], "ä"]])
def test_a_list_that_comes_item_by_item_has_the_bytes_of_the_whole(tmp_path, items):
    artifacts.write(tmp_path / "whole.json", items)
    artifacts.write(tmp_path / "parts.json", artifacts.Listed(iter(items)))
    assert (tmp_path / "parts.json").read_bytes() == (tmp_path / "whole.json").read_bytes()
