"""Files that are not what was made, here and in DVC's cache."""

import os
import shutil
from hashlib import md5
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


@pytest.mark.parametrize("change", [Path.unlink, lambda path: path.rename(path.with_name("c"))])
def test_a_file_too_few_or_too_many_is_found_as_stages_find_it(project, capsys, change):
    before = {path: path.read_bytes() for path in Path("data/made").iterdir()}
    for path in (Path("data/made/a"), Path("data/made/b")):
        change(path)
        with pytest.raises(UserError, match="data/made: is not what"):
            locks.refuse_changed(PIPELINE["stages"]["second"], "wsc-pml")
        said = told(capsys)
        assert f"{path}: is missing, and dvc.lock says that it was made\n" in said
        other = "data/made/c: is not what dvc.lock says was made\n"
        assert (other in said) == Path("data/made/c").exists()
        told(capsys, "--discard")
        project.run("dvc", "repro", "--quiet")
        assert told(capsys) == GOOD
        assert {path: path.read_bytes() for path in Path("data/made").iterdir()} == before


def test_a_file_where_a_directory_was_made_is_found(project, capsys):
    shutil.rmtree("data/made")
    Path("data/made").write_text("a\n")
    assert told(capsys).startswith("data/made: is not what dvc.lock says was made\n")


MD5 = "0" * 32


def test_wherever_a_lock_is_cut_off_it_is_found_or_dvc_takes_it_and_so_do_we(project):
    lock = Path("dvc.lock")
    whole = lock.read_bytes()
    found = []
    for end in [*range(0, len(whole), 5), len(whole) // 2, len(whole) - 1]:
        lock.write_bytes(whole[:end])
        if locks.cut_off():
            found.append(end)
        else:
            locks.outputs()
    assert set(found) >= {0, 5, len(whole) // 2}
    assert len(whole) - 1 not in found  # all but its last end of line


@pytest.mark.parametrize("text", ["<<<<<<< a\nschema: '2.0'\n>>>>>>> b", "[1]\n", "stages: 5\n"])
def test_what_is_no_cut_off_lock_is_left_alone(project, text):
    Path("dvc.lock").write_text(text)
    assert locks.discard_cut_off() == []
    assert Path("dvc.lock").read_text() == text


@pytest.mark.parametrize("kept", ["", "schema: '2.0'\n", "half", "stages", "a stage"])
def test_a_lock_that_a_kill_has_cut_off_is_removed_and_made_anew(project, capsys, kept):
    lock = Path("dvc.lock")
    whole = lock.read_text()
    ends = {
        "half": len(whole) // 2,
        "stages": whole.index("  first"),
        "a stage": whole.index("second:") + 8,
    }
    lock.write_text(whole[: ends[kept]] if kept in ends else kept)
    assert locks.cut_off() == [lock]
    assert locks.outputs() == {}
    with pytest.raises(SystemExit, match=r"^dvc.lock: is cut off; `wscpml verify --discard`"):
        main(["verify"])
    assert lock.exists()
    main(["verify", "--discard"])
    assert capsys.readouterr().out.startswith("removed: dvc.lock\n")
    told = project.run("dvc", "repro").stdout
    assert "Running stage 'second'" not in told  # the first reads nothing: DVC has no cache of it
    assert lock.read_text() == whole
    assert locks.cut_off() == []


HOSTILE = {
    "a list": "[1]",
    "stages that are a number": "stages: 5",
    "a stage that is a number": "stages: {a: 1}",
    "an output that is a number": "stages: {a: {outs: [1]}}",
    "an output without a hash": "stages: {a: {outs: [{path: x}]}}",
    "a hash that is none": "stages: {a: {outs: [{path: x, md5: ../../x}]}}",
    "git's own": f"stages: {{a: {{outs: [{{path: .git, md5: '{MD5}'}}]}}}}",
    "git's own in capitals": f"stages: {{a: {{outs: [{{path: .GIT/hooks, md5: '{MD5}'}}]}}}}",
    "git's own with a dot": f"stages: {{a: {{outs: [{{path: .git./hooks, md5: '{MD5}'}}]}}}}",
    "a place outside of Windows": f"stages: {{a: {{outs: [{{path: 'x\\..\\..', md5: '{MD5}'}}]}}}}",
    "DVC's own": f"stages: {{a: {{outs: [{{path: .dvc/config, md5: '{MD5}'}}]}}}}",
    "the project itself": f"stages: {{a: {{outs: [{{path: ., md5: '{MD5}'}}]}}}}",
    "a name that no disk takes": f"stages: {{a: {{outs: [{{path: {'x' * 300}, md5: '{MD5}'}}]}}}}",
    "a name with a zero": f"stages: {{a: {{outs: [{{path: \"x\\0\", md5: '{MD5}'}}]}}}}",
    "settings that are a list": "stages: {a: {params: {metrics/settings.json: [1]}}}",
    "a conflict": "<<<<<<< HEAD\nstages: {}\n=======\n",
    "laughs": "a: &a [x, x]\n"
    + "".join(f"{b}: &{b} [*{a}, *{a}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)),
}


@pytest.mark.parametrize("config", [b"[core\nremote", b"[core]\nanalytics = so\n", b"\xff\xfe"])
def test_a_broken_configuration_of_dvc_is_one_line(project, config):
    Path(".dvc/config").write_bytes(config)
    with pytest.raises(UserError, match=f"^{Path.cwd()}: DVC cannot be used .config file error"):
        locks.damaged()


@pytest.fixture
def beside(tmp_path, monkeypatch):
    """A file beside a project without a pipeline."""
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    Project(Path(), os.environ | {"DVC_SITE_CACHE_DIR": str(tmp_path / ".site")}).run(
        "dvc", "init", "--no-scm", "--quiet"
    )
    (tmp_path / "beside").write_text("a person's own")
    return tmp_path / "beside"


@pytest.mark.parametrize("lock", HOSTILE)
def test_a_hostile_lock_is_one_line_and_removes_nothing(beside, lock):
    Path("dvc.lock").write_text(HOSTILE[lock] + "\n")
    for command in (["verify"], ["verify", "--discard"]):
        with pytest.raises(SystemExit) as ended:
            main(command)
        assert str(ended.value).startswith("dvc.lock: is ")
        assert "\n" not in str(ended.value)
    assert beside.exists()
    assert Path("dvc.lock").exists()


@pytest.mark.parametrize(
    "out",
    [
        {"path": "../beside", "md5": MD5},
        {"path": "{root}", "md5": MD5},
        {"path": "s3://bucket/beside", "etag": "0"},
    ],
)
def test_outputs_that_are_elsewhere_are_a_person_s_own(beside, capsys, out):
    Path("here").write_text("made")
    made = {"path": "here", "md5": locks.hash_of(Path("here"))}
    outs = [out | {"path": out["path"].replace("{root}", str(beside))}, made]
    Path("dvc.lock").write_text(yaml.safe_dump({"stages": {"own": {"cmd": "x", "outs": outs}}}))
    assert locks.outputs() == {"here": made["md5"]}
    for options in ([], ["--discard"]):
        assert told(capsys, *options) == GOOD.replace("2", "1")
    assert beside.read_text() == "a person's own"


@pytest.mark.parametrize(
    "listed", ["[", "5", "[1]", f'[{{"relpath": "../x", "md5": "{MD5}"}}]', '[{"relpath": "x"}]']
)
def test_a_list_of_files_that_is_none_is_one_line(project, listed):
    made = locks.outputs()["data/made"]
    place = cached(made)
    known = md5(listed.encode(), usedforsecurity=False).hexdigest() + ".dir"
    hostile = cached(known)
    hostile.parent.mkdir(parents=True, exist_ok=True)
    place.rename(hostile)
    hostile.chmod(0o644)
    hostile.write_text(listed)
    Path("dvc.lock").write_text(Path("dvc.lock").read_text().replace(made, known))
    with pytest.raises(UserError, match=r"is no list of files \("):
        locks.damaged()
