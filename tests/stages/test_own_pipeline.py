"""Raw data through the real pipeline, and their versions, as the README tells it."""

import json
import shutil

import mlflow
import numpy as np
import pandas as pd
import pytest
import yaml
from scipy.io import savemat

from tests.conftest import STAGES, Project
from wscpml.datasets.files import digest
from wscpml.datasets.registry import REGISTRY


def songs(n: int) -> pd.DataFrame:
    """Songs whose tags follow their features, with some tags too many; columns of every kind."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3)).round(3)
    tagged = (X > 0.3) | (rng.random(X.shape) < 0.2)
    names = np.array(["rock", "R&B", "NA"])
    table = pd.DataFrame(np.where(rng.random(X.shape) < 0.05, np.nan, X), columns=NUMBERS)
    table.insert(0, "song", [f"song {i}" for i in range(n)])
    words = np.array(["loud guitars", "a slow groove", "something else"])
    return table.assign(
        country=rng.choice(["Mali", "France"], n),
        released=[f"20{i % 24:02}-05-{1 + i % 28:02}" for i in range(n)],
        about=[f"{' and '.join(words[row > 0.3])}, take {i}" for i, row in enumerate(X)],
        tags=[";".join(names[row]) for row in tagged],
    )


NUMBERS = ["tempo", "loudness", "pitch"]


@pytest.fixture(scope="module")
def project(clone: Project) -> Project:
    clone.shorten_study()
    params = yaml.safe_load((clone.path / "params.yaml").read_text())
    params["dataset"] = {"features": "data/own/songs.csv", "tags": "tags", "id": "song"}
    params["dataset"]["columns"] = {"country": "category"}
    params["classifier"]["max_epochs"] = 3
    (clone.path / "params.yaml").write_text(yaml.safe_dump(params))
    write(clone, 80)
    clone.run("dvc", "add", "data/own/songs.csv")
    return clone


def write(project: Project, n: int) -> None:
    songs(n).to_csv(project.path / "data/own/songs.csv", index=False)


def commit(project: Project, message: str) -> None:
    project.run("git", "add", "--all")
    project.run("git", "commit", "--quiet", "--message", message)


def result(project: Project) -> pd.DataFrame:
    return pd.read_csv(project.path / "data/pseudo_labels.csv", keep_default_na=False)


def test_tags_come_out_as_a_csv_with_a_confidence_for_each(project):
    assert project.repro() == STAGES[1:]
    found = result(project)
    expected = [
        (song, tag)
        for song, tags in zip(songs(80).song, songs(80).tags, strict=True)
        for tag in tags.split(";")
        if tag
    ]
    assert sorted(zip(found.instance, found.label, strict=True)) == sorted(expected)
    assert found.F.between(0, 1).all()
    commit(project, "80 songs")


def test_the_model_takes_the_same_raw_columns_in_the_command_and_in_mlflow(project):
    new = songs(30).drop(columns="tags")
    new.loc[0, ["country", "tempo", "released", "about"]] = ["Atlantis", None, None, None]
    new.to_csv(project.path / "new.csv", index=False)
    model = "models/wsc-pml/classifier"
    project.run("wscpml", "predict", model, "new.csv", "-o", "predicted.csv")
    predicted = pd.read_csv(project.path / "predicted.csv")
    run_id = json.loads((project.path / "metrics/run.json").read_text())["run_id"]
    code = (
        "import sys, json, mlflow, pandas as pd\n"
        "mlflow.set_tracking_uri(sys.argv[1])\n"
        "(output,) = mlflow.get_run(sys.argv[2]).outputs.model_outputs\n"
        "model = mlflow.pyfunc.load_model(f'models:/{output.model_id}')\n"
        "rows = json.loads(pd.read_csv('new.csv').to_json(orient='records'))\n"
        "model.predict(pd.DataFrame(rows)).to_csv('served.csv', index=False)\n"
        "model.predict(model.input_example)"
    )
    store = f"sqlite:///{project.path / 'mlflow.db'}"
    project.run("python", "-c", code, store, run_id)
    served = pd.read_csv(project.path / "served.csv")
    labels = ["rock", "R&B", "NA"]
    np.testing.assert_array_equal(served[labels], predicted[labels])
    for name in ("new.csv", "predicted.csv", "served.csv"):
        (project.path / name).unlink()


def test_appended_data_show_and_rerun_and_the_old_version_comes_back(project):
    first = (project.path / "data/own/songs.csv").read_bytes(), result(project)
    assert "up to date" in project.run("dvc", "status", "dvc.yaml").stdout
    write(project, 100)
    status = project.run("dvc", "status").stdout
    assert "data/own/songs.csv" in status
    assert "prepare:" in status
    assert project.repro() == STAGES[1:]
    assert result(project).instance.nunique() > first[1].instance.nunique()
    commit(project, "100 songs")

    project.run("git", "checkout", "--quiet", "HEAD~1")
    project.run("dvc", "checkout")
    assert (project.path / "data/own/songs.csv").read_bytes() == first[0]
    pd.testing.assert_frame_equal(result(project), first[1])
    assert project.repro() == []


def decide(project: Project, text: str) -> None:
    path = project.path / "data/decisions/decisions.csv"
    path.write_text("instance,label,decision,note\n" + text)
    project.run("dvc", "add", "data/decisions/decisions.csv")


def test_new_decisions_run_what_uses_them_and_those_of_before_come_back(project):
    before = result(project)
    first = before.iloc[0]
    decide(project, f"{first.instance},{first.label},false,\n")
    project.set("review", "decisions", "data/decisions/decisions.csv")
    assert project.repro() == [
        "collect_decisions",
        "judge_labels",
        "train_classifier",
        "apply_method",
        "evaluate",
        "track",
    ]
    found = result(project)
    assert found.decided.tolist() == ["false"] + [""] * (len(before) - 1)
    assert (found.label_confidence == 0).tolist() == (found.decided == "false").tolist()
    mlflow.set_tracking_uri(f"sqlite:///{project.path}/mlflow.db")
    run_id = json.loads((project.path / "metrics/run.json").read_text())["run_id"]
    run = mlflow.get_run(run_id)
    agreed = before.label_confidence[0] < 0.5
    assert run.data.metrics["decisions.count"] == 1
    assert run.data.metrics["decisions.agreement"] == agreed
    lock = yaml.safe_load((project.path / "dvc.lock").read_text())["stages"]["collect_decisions"]
    assert run.data.tags["dvc.decisions"] == lock["outs"][1]["md5"]
    kept = mlflow.artifacts.list_artifacts(run_id=run_id, artifact_path="data")
    assert "data/decided.parquet" in [each.path for each in kept]
    commit(project, "one decision")

    decide(project, f"{first.instance},{first.label},false,a note\n")
    assert project.repro() == ["collect_decisions"]
    decide(project, f"{first.instance},{first.label},true,\n")
    assert project.repro("collect_decisions") == ["collect_decisions"]
    status = project.run("dvc", "status", "models/dvc.yaml").stdout
    assert "judge_labels" in status
    assert "cluster" not in status
    commit(project, "another decision")
    project.run("git", "checkout", "--quiet", "HEAD~1")
    project.run("dvc", "checkout")
    pd.testing.assert_frame_equal(result(project), found)
    assert project.repro() == []


def test_a_mistake_in_the_data_is_one_clear_line(project):
    path = project.path / "data/own/songs.csv"
    path.write_text(path.read_text() + "song 0,1,2,3,Mali,2001-01-01,loud,rock\n")
    done = project.run("dvc", "repro", check=False)
    assert done.returncode != 0
    line = "data/own/songs.csv: instance 'song 0' is there twice, as numbers 1 and 81; rename one"
    assert line in done.stderr.splitlines()
    assert "Traceback" not in done.stderr


def choose(project: Project, name: str) -> None:
    """Drop what is not committed, and name a data set."""
    project.run("git", "reset", "--quiet", "--hard")
    params = yaml.safe_load((project.path / "params.yaml").read_text())
    params["dataset"] = {"name": name}
    (project.path / "params.yaml").write_text(yaml.safe_dump(params))


def write_mat(path, n: int, q: int) -> None:
    truth = np.arange(n * q).reshape(n, q) % 3 == 0
    X = np.random.default_rng(0).normal(size=(n, 4))
    savemat(path, {"data": X, "target": truth.astype(np.uint8), "partial_labels": truth | 1})


def test_a_file_that_only_the_user_has_is_versioned_like_own_data(project):
    choose(project, "Music_emotion")
    supplied, fetched = (project.path / f"data/{d}/Music_emotion.mat" for d in ("own", "raw"))
    done = project.run("dvc", "repro", "prepare", check=False)
    assert "Music_emotion.mat: is not public; put it into data/own/" in done.stderr.splitlines()
    write_mat(supplied, 30, 11)
    project.run("dvc", "add", "data/own/Music_emotion.mat")
    assert project.repro("prepare") == ["fetch", "prepare"]
    first = digest(fetched)
    assert first == digest(supplied)
    commit(project, "30 rows")

    write_mat(supplied, 40, 11)
    status = project.run("dvc", "status").stdout
    assert "fetch:" in status
    assert "data/own" in status
    assert project.repro("prepare") == ["fetch", "prepare"]
    assert len(np.load(project.path / "data/split.npy")) == 40
    commit(project, "40 rows")

    project.run("git", "checkout", "--quiet", "HEAD~1")
    project.run("dvc", "checkout", "data/own/Music_emotion.mat.dvc", "fetch", "prepare")
    assert first == digest(supplied) == digest(fetched)
    assert len(np.load(project.path / "data/split.npy")) == 30
    assert project.repro("prepare") == []


def test_a_named_sets_files_are_kept_by_dvc_and_shared_through_its_remote(project, tmp_path):
    choose(project, "emotions")
    mirror, cache = tmp_path / "mirror", project.path / ".dvc/cache"
    mirror.mkdir()
    write_mat(mirror / "emotions.mat", 30, 6)
    made, registry = digest(mirror / "emotions.mat"), "wscpml/datasets/registry.yaml"
    text = (project.path / registry).read_text()
    known = REGISTRY["emotions"].files[0].sha256
    (project.path / registry).write_text(text.replace(known, made))
    assert project.repro("prepare", WSCPML_DATA=str(mirror)) == ["fetch", "prepare"]

    fetched = project.path / "data/raw/emotions.mat"
    fetched.write_bytes(b"another file")
    assert "data/raw" in project.run("dvc", "status").stdout
    assert project.repro("prepare", WSCPML_DATA=str(mirror)) == ["fetch"]
    assert digest(fetched) == made

    project.run("dvc", "remote", "add", "--local", "--default", "backup", str(tmp_path / "remote"))
    project.run("dvc", "push", "fetch", "prepare")
    for lost in (mirror, cache, project.path / "data/raw", project.path / "data/prepared"):
        shutil.rmtree(lost)
    project.run("dvc", "pull", "fetch", "prepare")
    before = np.load(project.path / "data/split.npy")
    offline = {"WSCPML_DATA": "", "WSCPML_CACHE": str(tmp_path / "nothing")}
    project.set("split", "fold", 1)
    assert project.repro("prepare", **offline) == ["prepare"]
    assert not (before & np.load(project.path / "data/split.npy")).any()
    project.set("dataset", "name", "emotions-4")
    assert project.repro("prepare", **offline) == ["fetch", "prepare"]
