"""What is being written, by several at once and by those that are killed meanwhile."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from pathlib import Path

import pytest

from wscpml import artifacts, temporaries
from wscpml.errors import UserError


def both(write) -> None:
    """Call something with 0 and 1 at the same time."""
    start = threading.Barrier(2)

    def one(k: int) -> None:
        start.wait()
        write(k)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(one, range(2)))


def test_of_two_who_write_one_file_at_once_one_is_there_whole(tmp_path):
    texts = ["a" * 300_000, "b" * 200_000]
    for round in range(60):
        path = tmp_path / f"{round}.html"
        both(lambda k: artifacts.write(path, texts[k]))  # noqa: B023
        assert path.read_text() in texts
    assert len(list(tmp_path.iterdir())) == 60


@pytest.mark.parametrize("can_exchange", [True, False])
def test_of_two_who_write_one_directory_at_once_one_is_there_whole(
    tmp_path, monkeypatch, can_exchange
):
    if not can_exchange:
        monkeypatch.setattr(temporaries, "_exchange", lambda *_: False)
    for round in range(20):
        path = tmp_path / str(round)
        for before in ([], ["there"]):
            for _ in before:
                artifacts.write_directory(path, {"x.json": 3, "y.json": 3})

            def write(k, path=path):
                with nullcontext() if can_exchange else suppress(UserError):
                    artifacts.write_directory(path, {"x.json": k, "y.json": k})

            both(write)
            found = artifacts.read_directory(path, ["x.json", "y.json"])
            assert found["x.json"] == found["y.json"]
    assert {each.name for each in tmp_path.iterdir()} == {str(k) for k in range(round + 1)}


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere it takes two moves")
def test_a_directory_that_is_replaced_is_there_at_any_moment(tmp_path):
    path = tmp_path / "model"
    artifacts.write_directory(path, {"x.json": 0})
    done = threading.Event()

    def write() -> None:
        for k in range(50):
            artifacts.write_directory(path, {"x.json": k})
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    while not done.is_set():
        assert path.exists()
    writer.join()


def killed_while_writing(directory: Path) -> None:
    """Leave what a writer leaves that is killed."""
    code = (
        "import os, sys; from pathlib import Path; from wscpml import temporaries as t\n"
        "place = Path(sys.argv[1])\n"
        "with t.file(place) as f, t.directory(place) as d:\n"
        "    f.write_text('half'); (d / 'x').write_text('half'); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(directory)], capture_output=True)
    assert done.returncode == -9, done


def test_what_a_killed_writer_left_is_swept_and_nothing_else(tmp_path):
    own = {"x.json.tmp": "a person's", ".x.tmp": "hidden", ".wscpml-notes.tmp": "named alike"}
    for name, text in own.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "model.tmp").mkdir()
    killed_while_writing(tmp_path)
    assert len(list(tmp_path.iterdir())) == len(own) + 3
    with temporaries.file(tmp_path) as other:
        artifacts.write(tmp_path / "x.json", 1)
        artifacts.write_directory(tmp_path / "model", {"x.json": 1})
        assert other.exists()
    assert {each.name for each in tmp_path.iterdir()} == {*own, "model.tmp", "model", "x.json"}
    assert {name: (tmp_path / name).read_text() for name in own} == own


def test_a_directory_whose_writer_was_killed_between_two_moves_comes_back(tmp_path):
    moved = tmp_path / ".wscpml-0123456789abcdef.old-model"
    moved.mkdir()
    (moved / "x.json").write_text("1\n")
    artifacts.write(tmp_path / "other.json", 1)
    assert artifacts.read(tmp_path / "model/x.json") == 1
    assert not moved.exists()
    moved.mkdir()
    artifacts.write(tmp_path / "other.json", 1)
    assert not moved.exists()
    assert artifacts.read(tmp_path / "model/x.json") == 1


def test_a_file_has_the_rights_that_new_files_have(tmp_path):
    (tmp_path / "plain").touch()
    artifacts.write(tmp_path / "x.json", 1)
    assert (tmp_path / "x.json").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_all_that_a_process_is_writing_can_be_discarded(tmp_path):
    with temporaries.file(tmp_path), temporaries.directory(tmp_path):
        temporaries.discard()
        assert not list(tmp_path.iterdir())
