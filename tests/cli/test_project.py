import os
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.conftest import ROOT
from wscpml.cli import project
from wscpml.errors import UserError


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """An empty git repository, in which the test is."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.chdir(tmp_path)
    subprocess.run(["git", "init", "--quiet"], check=True)
    return tmp_path


def present(path: Path) -> dict[Path, bytes]:
    files = [file for file in path.rglob("*") if file.is_file() and ".git" not in file.parts]
    return {file.relative_to(path): file.read_bytes() for file in files}


def test_the_stages_are_ours_from_the_installed_package_and_wait_for_its_version(repository):
    project.lay(Path())
    for name in ("dvc.yaml", "models/dvc.yaml"):
        ours, laid = (yaml.safe_load((at / name).read_text()) for at in (ROOT, repository))
        for stage, it in laid["stages"].items():
            assert it.pop("cmd") == f"python -m wscpml.stages.{stage}"
            assert ours["stages"][stage].pop("cmd") == f"python -m stages.{stage}"
        if name == "dvc.yaml":
            assert laid["stages"]["identify"].pop("deps") == [project.PINNED]
            del ours["stages"]["identify"]["deps"]
        assert laid == ours
    assert (repository / "params.yaml").read_bytes() == (ROOT / "params.yaml").read_bytes()


def test_in_a_directory_of_a_repository_it_is_a_project_of_its_own(repository):
    (repository / "params.yaml").write_text("mine: 1\n")
    (repository / ".gitignore").write_text("*.log")
    files = project.lay(Path("labels"))
    assert (repository / "params.yaml").read_text() == "mine: 1\n"
    assert (repository / ".gitignore").read_text() == "*.log"
    assert (repository / "labels/.dvc/config").read_text() == project.CONFIG
    assert (repository / "labels/.dvc/plots.html").exists()
    workflow = repository / ".github/workflows/wscpml-labels.yml"
    assert workflow in files
    job = yaml.safe_load(workflow.read_text())["jobs"]["labels"]
    assert job["defaults"]["run"]["working-directory"] == "labels"
    assert project.HERE not in workflow.read_text()


def test_what_git_and_dvc_ignore_gets_lines_more(repository):
    (repository / ".dvc").mkdir()
    (repository / ".gitignore").write_text("*.log\n.venv/")
    project.lay(Path())
    *old, new = (repository / ".gitignore").read_text().split("\n", 2)
    assert old == ["*.log", ".venv/"]
    assert set(new.split()) == set(project.NOT_IN_GIT) - {".venv/"}
    assert (repository / ".dvcignore").read_text().split() == list(project.NOT_IN_DVC)
    assert not list((repository / ".dvc").iterdir())  # it is a DVC project already


@pytest.mark.parametrize("taken", ["dvc.yaml", "data/raw/mine.csv", ".github/workflows/wscpml.yml"])
def test_nothing_is_overwritten(repository, taken):
    (repository / taken).parent.mkdir(parents=True, exist_ok=True)
    (repository / taken).write_text("mine")
    before = present(repository)
    with pytest.raises(UserError, match="there already, and nothing is overwritten; "):
        project.lay(Path())
    assert present(repository) == before


def test_twice_is_refused(repository):
    project.lay(Path())
    before = present(repository)
    with pytest.raises(UserError, match=r"^dvc.yaml, params.yaml, models/dvc.yaml and \d+ more: "):
        project.lay(Path())
    assert present(repository) == before


def test_without_a_repository_it_says_so(tmp_path):
    with pytest.raises(UserError, match=r"new: is in no git repository; `git init` makes one"):
        project.lay(tmp_path / "new")
    assert not list(tmp_path.iterdir())


def test_a_file_is_no_place_for_it(repository):
    (repository / "file").touch()
    with pytest.raises(UserError, match="file: is no directory"):
        project.lay(Path("file/below"))
