"""Two results by name, and the files of a run: in a small DVC project with a cache made by hand."""

import json
import shutil
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import uuid4

import pandas as pd
import pytest
import yaml

from tests.serving.test_tracking import a_result
from wscpml import artifacts, cli
from wscpml.serving import locks, tracking, versions
from wscpml.serving.dvc_cache import digest

OLD = [("007", "rock", 0.9), ("007", "jazz", 0.2), ("8", "rock", 0.6)]
NEW = [("007", "rock", 0.4), ("007", "jazz", 0.3), ("8", "rock", 0.6), ("9", "jazz", 0.8)]


@dataclass
class Results:
    """A project, the results that are committed in it, and its cache."""

    path: Path
    cache: Path

    def keep(self, path: str) -> dict[str, str]:
        """Put a file or a directory into the cache; returns its entry in a lock."""
        place = self.path / path
        if place.is_dir():
            members = [
                {"md5": self.keep(f"{path}/{each.name}")["md5"], "relpath": each.name}
                for each in sorted(place.iterdir())
            ]
            listed = self.path / "listed"
            listed.write_text(json.dumps(members))
            known = f"{digest(listed)}.dir"
            place = listed
        else:
            known = digest(place)
        target = self.cache / known[:2] / known[2:]
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(place, target)
        (self.path / "listed").unlink(missing_ok=True)
        return {"path": path, "hash": "md5", "md5": known}

    def make(self, rows, alpha=1, **more: str) -> None:
        """Write a result and its lock, as the stages would."""
        table = pd.DataFrame(rows, columns=["instance", "label", "label_confidence"])
        artifacts.write(self.path / versions.TABLE, table)
        prepared = self.path / "data/prepared"
        prepared.mkdir(exist_ok=True)
        (prepared / "names.json").write_text(json.dumps(sorted(table.instance.unique())))
        (self.path / "data/own").mkdir(exist_ok=True)
        own = self.path / "data/own/songs.csv"
        own.write_text("\n".join(table.instance))
        note = {"outs": [{"md5": self.keep("data/own/songs.csv")["md5"], "path": "songs.csv"}]}
        (self.path / "data/own/songs.csv.dvc").write_text(yaml.safe_dump(note))
        settings = {"method": "pml-ni", "some": {"alpha": alpha}}
        settings["dataset"] = {"features": "data/own/songs.csv"}
        apply = {"params": {versions.SETTINGS: settings}, "outs": [self.keep(versions.TABLE)]}
        stages = {
            "prepare": {
                "params": {"metrics/code.json": {"stages.prepare": ["1"]}},
                "deps": [{"path": "data/own", "md5": digest(own)}],
                "outs": [self.keep("data/prepared")],
            },
            "apply_method": apply,
            "track": {"outs": [{"path": "metrics/run.json", "md5": "0" * 32}]},
        }
        stages["prepare"]["params"]["metrics/code.json"].update(more)
        artifacts.write(self.path / "dvc.lock.yaml", {"schema": "2.0", "stages": stages})
        (self.path / "dvc.lock.yaml").replace(self.path / "dvc.lock")

    def commit(self, tag: str) -> None:
        for command in ("add dvc.lock", f"commit --quiet --message {tag}", f"tag {tag}"):
            subprocess.run(["git", *command.split()], cwd=self.path, check=True)


@pytest.fixture
def results(tmp_path, monkeypatch) -> Results:
    path = tmp_path / "project"
    (path / ".dvc").mkdir(parents=True)
    (path / "data").mkdir()
    (path / ".dvc/config").write_text("[core]\n    analytics = false\n")
    monkeypatch.chdir(path)
    monkeypatch.setenv("DVC_SITE_CACHE_DIR", str(tmp_path / "site"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.delenv("DVC_ROOT", raising=False)
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "Test")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "test@example.com")
    subprocess.run(["git", "init", "--quiet"], check=True)
    made = Results(path, path / ".dvc/cache/files/md5")
    made.make(OLD)
    made.commit("v1")
    made.make(NEW, alpha=2)
    return made


@pytest.fixture(scope="module")
def database(tmp_path_factory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('store')}/mlflow.db"


@pytest.fixture
def store(results, database, monkeypatch) -> None:
    """A store that these tests share: to create one takes seconds."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", database)


def failure(*command: str) -> str:
    with pytest.raises(SystemExit) as ended:
        cli.main(list(command))
    assert "\n" not in str(ended.value)
    return str(ended.value)


def told(capsys, *command: str) -> dict:
    cli.main([*command, "--json"])
    return json.loads(capsys.readouterr().out)


def test_a_revision_and_the_workspace_are_compared_with_what_is_behind_them(results, capsys):
    found = told(capsys, "diff", "v1", "workspace")
    assert (found["flipped"], found["added"], found["gone"]) == (1, 1, 0)
    assert found["settings"] == {"some.alpha": [1, 2]}
    assert found["data"] == ["data/prepared", "data/own"]
    assert found["code"] == []
    results.commit("v2")
    again = told(capsys, "diff", "v1", "v2")
    assert again["changes"] == found["changes"]
    results.make(NEW, alpha=2, **{"stages.judge_labels": "other"})
    assert told(capsys, "diff", "v2", "workspace")["code"] == ["stages.judge_labels"]


def test_files_are_compared_and_ids_that_look_like_numbers_stay_as_they_are(results, capsys):
    table = pd.read_parquet(versions.TABLE)
    table.assign(keep=1, decided="").to_csv("new.csv", index=False)
    found = told(capsys, "diff", "new.csv", versions.TABLE)
    assert found["changes"] == []
    assert (found["old_tags"], found["new_tags"]) == (4, 4)
    cli.main(["diff", "v1", "new.csv", "-o", "changes.csv", "--html", "changes.html"])
    assert capsys.readouterr().out.endswith("written: changes.csv, changes.html\n")
    assert pd.read_csv("changes.csv", dtype=str).instance.tolist() == ["007", "9"]
    assert "<b>1</b> flipped" in Path("changes.html").read_text()


def test_what_is_not_in_the_cache_comes_from_the_remote_or_is_told(results, tmp_path, capsys):
    shutil.move(results.cache, tmp_path / "remote/files/md5")
    config = results.path / ".dvc/config"
    before = config.read_text()
    empty, there = (
        f"[core]\n    remote = there\n['remote \"there\"']\n    url = {tmp_path}/{name}\n"
        for name in ("empty", "remote")
    )
    for text in (before, empty):
        config.write_text(text)
        line = failure("diff", "v1", "workspace")
        assert line.startswith("v1: data/pseudo_labels.parquet (md5 ")
        assert "is not in DVC's cache nor its remote; `dvc push` it where it was made" in line
        assert capsys.readouterr().err == ""
    config.write_text(there)
    assert told(capsys, "diff", "v1", "workspace")["flipped"] == 1


@pytest.mark.parametrize(
    ("side", "line"),
    [
        ("v7", "v7: is no git revision here, no table (.csv or .parquet), no run:ID and not"),
        ("no.csv", "no.csv: no such file"),
        ("run:1", "run:1: there are no runs yet in sqlite:///"),
        ("run:", "run:: must be run:ID, with the id of a run in MLflow"),
    ],
)
def test_a_side_that_is_not_there_is_told(results, side, line):
    assert failure("diff", side, "workspace").startswith(line)
    assert not Path("mlflow.db").exists()


def test_a_revision_or_workspace_without_a_result_is_told(results):
    Path("dvc.lock").write_text("schema: '2.0'\nstages: {}\n")
    results.commit("nothing")
    assert failure("diff", "nothing", "v1") == (
        "nothing: has no result: its dvc.lock does not name data/pseudo_labels.parquet"
    )
    Path("dvc.lock").write_text("<<<<<<< HEAD\nschema: '2.0'\n")
    results.commit("conflict")
    assert failure("diff", "conflict", "v1").startswith("conflict: its dvc.lock is no YAML")
    Path(versions.TABLE).unlink()
    assert failure("diff", "v1", "workspace").startswith("workspace: ")


def logged(results: Results, **changes) -> str:
    """Log what is in the workspace; returns the run's id."""
    files = ["dvc.lock", versions.TABLE, "data/own/songs.csv.dvc"]
    tags = {"git.commit": "abc", "git.tree": "changed: params.yaml"}
    changes = {"files": [Path(each) for each in files], "tags": tags, **changes}
    changes["identity"] = uuid4().hex
    made = replace(a_result(results.path / "model", **changes), model=None)
    return tracking.log_run(made, "songs")


def test_a_run_is_compared_and_brought_back_to_the_byte(results, store, capsys, tmp_path):
    run_id = logged(results)
    paths = [versions.TABLE, "data/prepared/names.json", "data/own/songs.csv"]
    before = {path: Path(path).read_bytes() for path in paths}
    results.make(OLD)
    assert told(capsys, "diff", "v1", f"run:{run_id}")["flipped"] == 1

    found = told(capsys, "restore", f"run:{run_id}", str(tmp_path / "then"))
    assert (found["commit"], found["tree"]) == ("abc", "changed: params.yaml")
    assert {path: (tmp_path / "then" / path).read_bytes() for path in paths} == before
    assert not (tmp_path / "then/metrics/run.json").exists()
    again = failure("restore", f"run:{run_id}", str(tmp_path / "then"))
    assert again.endswith("then: is there, and not empty; name a new directory")


def test_a_table_that_was_too_large_for_the_run_comes_from_the_cache(results, store, capsys):
    kept = [Path(name) for name in (*locks.LOCKS, "params.yaml") if Path(name).exists()]
    run_id = logged(results, files=kept)
    assert told(capsys, "diff", "v1", f"run:{run_id}")["flipped"] == 1


def test_what_of_a_run_is_nowhere_is_named_and_all_else_comes_back(results, store, tmp_path):
    run_id = logged(results)
    own = digest(Path("data/own/songs.csv"))
    (results.cache / own[:2] / own[2:]).unlink()
    text = failure("restore", f"run:{run_id}", str(tmp_path / "then"))
    assert text == (
        f"run:{run_id}: in neither DVC's cache nor its remote, nor in the run: data/own/songs.csv; "
        f"all else is in {tmp_path}/then"
    )
    assert (tmp_path / "then" / versions.TABLE).read_bytes() == Path(versions.TABLE).read_bytes()
    assert (tmp_path / "then/data/prepared/names.json").exists()


def test_a_damaged_file_of_the_cache_is_not_taken_for_the_one_that_was(results, store, tmp_path):
    run_id = logged(results)
    own = digest(Path("data/own/songs.csv"))
    (results.cache / own[:2] / own[2:]).write_text("something else")
    assert ": is damaged: its content" in failure(
        "restore", f"run:{run_id}", str(tmp_path / "then")
    )
    assert not (tmp_path / "then").exists()


def test_what_git_says_in_another_encoding_is_read_all_the_same(results):
    Path("old.txt").write_bytes(b"caf\xe9\n")
    assert versions.git("add", "old.txt") == ""
    assert versions.git("show", ":old.txt") == "caf\\xe9"


def test_nothing_is_written_to_a_place_outside_that_a_lock_names(results, store, tmp_path):
    text = Path("dvc.lock").read_text()
    Path("dvc.lock").write_text(text.replace("path: data/prepared", "path: ../prepared", 1))
    versions.restore(f"run:{logged(results)}", tmp_path / "then")
    assert (tmp_path / "then" / versions.TABLE).exists()
    assert not (tmp_path / "then/data/prepared").exists()
    assert not (tmp_path / "prepared").exists()


def test_a_run_that_is_none_of_the_pipeline_is_told(results, store, tmp_path):
    run_id = logged(results, files=[])
    assert failure("diff", f"run:{run_id}", "v1").endswith(
        "has no data/pseudo_labels.parquet: it is no run of the pipeline"
    )
    assert failure("restore", f"run:{run_id}", str(tmp_path / "then")).endswith(
        "has no dvc.lock: it is no run of the pipeline"
    )
    assert "MLflow has no such run" in failure("restore", "run:abc", str(tmp_path / "then"))
    assert failure("restore", "v1", str(tmp_path / "then")) == (
        "v1: must be run:ID, with the id of a run in MLflow"
    )


def test_a_server_that_is_gone_is_told(results, monkeypatch, tmp_path):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    text = failure("restore", "run:abc", str(tmp_path / "then"))
    assert text.startswith("MLFLOW_TRACKING_URI: MLflow at http://127.0.0.1")
    assert text.endswith("mend it, or set another, and try again")
