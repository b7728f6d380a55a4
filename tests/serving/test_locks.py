"""Files that are not what was made, here and in DVC's cache."""

import os
import shutil
from pathlib import Path

import pytest
import yaml

import stages
from tests.conftest import Project
from wscpml import settings
from wscpml.cli import main
from wscpml.errors import UserError
from wscpml.serving import locks

MAKE = "mkdir -p data/made && echo a > data/made/a && echo b > data/made/b"
PIPELINE = {
    "stages": {
        "first": {"cmd": MAKE, "outs": ["data/made"]},
        "second": {"cmd": "cat data/made/a > b.txt", "deps": ["data/made"], "outs": ["b.txt"]},
    }
}
GOOD = "2 outputs: all that is here is what was made\n"


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project of two stages that DVC has run."""
    monkeypatch.chdir(tmp_path)
    made = Project(tmp_path, os.environ | {"DVC_SITE_CACHE_DIR": str(tmp_path / ".site")})
    Path("dvc.yaml").write_text(yaml.safe_dump(PIPELINE))
    made.run("dvc", "init", "--no-scm", "--quiet")
    made.run("dvc", "repro", "--quiet")
    return made


def flip(path: Path) -> None:
    path.chmod(0o644)
    whole = path.read_bytes()
    path.write_bytes(bytes([whole[0] ^ 1]) + whole[1:])


def cached(known: str) -> Path:
    return Path(".dvc/cache/files/md5", known[:2], known[2:])


def test_a_stage_refuses_inputs_that_are_not_what_was_made(project, params):
    made = locks.outputs()
    assert {path: locks.hash_of(Path(path)) for path in made} == made
    assert locks.hash_of(Path("nothing")) is None
    first, last = PIPELINE["stages"].values()
    assert locks.inputs(last, "wsc-pml") == {"data/made": made["data/made"]}
    assert locks.inputs(first, "wsc-pml") == {}
    locks.refuse_changed(last, "wsc-pml")
    flip(Path("data/made/b"))
    with pytest.raises(UserError, match="data/made: is not what dvc.lock says was made; `wscpml"):
        locks.refuse_changed(last, "wsc-pml")
    locks.refuse_changed(first, "wsc-pml")

    def second(_):
        raise AssertionError

    Path("params.yaml").write_text(yaml.safe_dump(params))
    with pytest.raises(SystemExit, match="data/made: is not what dvc.lock says"):
        stages.run(second, settings.load)
    project.run("dvc", "commit", "--force", "--quiet")
    locks.refuse_changed(last, "wsc-pml")


def told(capsys, *options: str) -> str:
    try:
        main(["verify", *options])
    except SystemExit as told:
        return str(told)
    return capsys.readouterr().out


def test_what_is_damaged_in_the_cache_is_found_and_comes_back(project, capsys):
    assert told(capsys) == GOOD
    made = locks.outputs()
    before = {path: path.read_bytes() for path in Path("data/made").iterdir()}
    for broken in (made["b.txt"], made["data/made"]):
        flip(cached(broken))
        shutil.rmtree("data/made")
        Path("b.txt").unlink()
        project.run("dvc", "checkout", check=False)
        assert "in DVC's cache): is not what dvc.lock says" in told(capsys)
        assert told(capsys, "--discard").startswith("removed: ")
        project.run("dvc", "repro", "--quiet")
        assert told(capsys) == GOOD
        assert {path: path.read_bytes() for path in Path("data/made").iterdir()} == before
        assert locks.outputs() == made


def test_what_is_damaged_here_is_found_and_comes_back(project, capsys):
    for path in (Path("b.txt"), Path("data/made/a")):
        flip(path)
        assert told(capsys).startswith(f"{path}: is not what dvc.lock says was made\n")
        told(capsys, "--discard")
        project.run("dvc", "repro", "--quiet")
        assert told(capsys) == GOOD
