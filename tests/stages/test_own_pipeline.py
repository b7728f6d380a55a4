"""Raw data through the real pipeline, and their versions, as the README tells it."""

import json
import re
import shutil
from io import BytesIO
from pathlib import Path

import mlflow
import numpy as np
import pandas as pd
import pytest
import requests
import yaml
from pandas.api.types import is_numeric_dtype
from scipy.io import savemat

from docs import story
from stages import track
from tests.conftest import STAGES, Project
from tests.serving.server import serving
from wscpml.cli import main
from wscpml.datasets.files import digest
from wscpml.datasets.registry import REGISTRY
from wscpml.datasets.songs import WORDS
from wscpml.quality import judging
from wscpml.serving import versions

LABELS = list(WORDS)


@pytest.fixture(scope="module")
def project(clone: Project) -> Project:
    params = yaml.safe_load((clone.path / "params.yaml").read_text())
    params["dataset"] = story.DATASET | {"columns": {"country": "category"}}
    params["classifier"]["max_epochs"] = 3
    (clone.path / "params.yaml").write_text(yaml.safe_dump(params))
    write(clone, story.FIRST)
    clone.run("dvc", "add", "data/own/songs.csv")
    return clone


def write(project: Project, n: int, corrected: int = 0) -> None:
    story.songs(n, corrected).to_csv(project.path / story.TABLE, index=False)


@pytest.fixture(scope="module")
def kept() -> dict[str, dict[str, bytes]]:
    """What the files of each run were, by its id."""
    return {}


def keep(project: Project, kept: dict[str, dict[str, bytes]]) -> str:
    run_id = json.loads((project.path / "metrics/run.json").read_text())["run_id"]
    paths = [project.path / f"data/{name}" for name in ("own/songs.csv", "candidates.npz")]
    paths += [project.path / f"data/{name}.parquet" for name in ("pseudo_labels", "decided")]
    for folder in ("data/prepared", "models/wsc-pml/classifier"):
        paths += [each for each in (project.path / folder).rglob("*") if each.is_file()]
    kept[run_id] = {p.relative_to(project.path).as_posix(): p.read_bytes() for p in paths}
    return run_id


def run_of(project: Project, run_id: str):
    mlflow.set_tracking_uri(f"sqlite:///{project.path}/mlflow.db")
    return mlflow.get_run(run_id)


def commit(project: Project, message: str) -> None:
    project.run("git", "add", "--all")
    project.run("git", "commit", "--quiet", "--message", message)


def result(project: Project) -> pd.DataFrame:
    return pd.read_csv(project.path / "data/pseudo_labels.csv", keep_default_na=False)


def test_tags_come_out_as_a_csv_with_a_confidence_for_each(project, kept):
    assert project.repro() == STAGES[1:]
    found = result(project)
    first = story.songs(story.FIRST)
    expected = [
        (song, LABELS[label])
        for song, tags in zip(first.song, first.tags, strict=True)
        for tag in tags.split(",")
        if (label := story.label(tag)) is not None
    ]
    assert sorted(zip(found.instance, found.label, strict=True)) == sorted(expected)
    assert found.F.between(0, 1).all()
    run = run_of(project, keep(project, kept))
    assert run.data.tags["git.tree"].startswith("changed: ")
    assert "labels.flipped" not in run.data.metrics  # the last commit has another data set
    told = {name: run.data.metrics[f"labels.{name}"] for name in ("tags", "suspicious")}
    assert told == {"tags": len(found), "suspicious": (found.label_confidence < 0.5).sum()}
    rates = {n for n in run.data.metrics if n.startswith("label_noise_rate.")}
    assert rates == {f"label_noise_rate.{label.replace('&', '_')}" for label in LABELS}
    assert not run.data.params.keys() & run.data.metrics.keys()
    commit(project, "400 songs")
    project.run("git", "tag", story.OLD)


def test_the_model_takes_the_same_raw_columns_in_the_command_and_in_mlflow(project):
    new = story.songs(30).drop(columns="tags")
    new.loc[0, ["country", "tempo", "released", "description"]] = ["Atlantis", None, None, None]
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
    np.testing.assert_array_equal(served[LABELS], predicted[LABELS])
    for name in ("new.csv", "predicted.csv", "served.csv"):
        (project.path / name).unlink()


def test_appended_data_show_and_rerun_and_the_old_version_comes_back(project, kept):
    first = (project.path / "data/own/songs.csv").read_bytes(), result(project)
    assert "up to date" in project.run("dvc", "status", "dvc.yaml").stdout
    write(project, story.ALL, story.CORRECTED)
    status = project.run("dvc", "status").stdout
    assert "data/own/songs.csv" in status
    assert "prepare:" in status
    project.run("dvc", "add", "data/own/songs.csv")
    commit(project, "more songs")
    assert project.repro() == STAGES[1:]
    assert result(project).instance.nunique() > first[1].instance.nunique()
    run = run_of(project, keep(project, kept))
    assert run.data.tags["git.tree"] == "clean"
    assert run.info.run_name.startswith("new data | wsc-pml data/own/songs.csv @")
    commit(project, "593 songs")
    project.run("git", "tag", story.NEW)

    project.run("git", "checkout", "--quiet", story.OLD)
    project.run("dvc", "checkout")
    assert (project.path / "data/own/songs.csv").read_bytes() == first[0]
    pd.testing.assert_frame_equal(result(project), first[1])
    assert project.repro() == []


def test_which_labels_changed_is_told_by_the_command_in_its_page_and_in_mlflow(
    project, kept, tmp_path
):
    command = ["wscpml", "diff", story.OLD, story.NEW]
    files = [str(tmp_path / f"changes.{kind}") for kind in ("html", "csv")]
    done = project.run(*command, "--html", files[0], "-o", files[1])
    changes = pd.read_csv(files[1], keep_default_na=False)
    old, new = (
        pd.read_parquet(BytesIO(files["data/pseudo_labels.parquet"]))
        for files in list(kept.values())[:2]
    )
    flipped = changes.change.isin(["kept", "dropped"]).sum()
    assert (changes.change == "gone").sum() == story.CORRECTED
    assert flipped > 0

    run_id = list(kept)[1]
    run = run_of(project, run_id)
    assert run.data.metrics["labels.flipped"] == flipped
    assert run.data.metrics["labels.gone"] == story.CORRECTED
    assert run.data.tags["labels.compared_with"] == next(iter(kept))
    shown = mlflow.artifacts.load_dict(f"runs:/{run_id}/labels/pseudo_labels.json")
    table = pd.DataFrame(shown["data"], columns=shown["columns"])
    assert table.change.isin(["kept", "dropped"]).sum() == flipped
    assert len(table) == min(len(new), track.MOST_ROWS)
    there = {
        each.path for each in mlflow.artifacts.list_artifacts(run_id=run_id, artifact_path="labels")
    }
    assert {"labels/changes.csv", "labels/changes.html"} <= there
    assert f"<b>{flipped}</b> flipped" in Path(files[0]).read_text()

    block = story.TOLD.search(story.PAGE.read_text()).group()
    now = done.stdout.partition("\n\nwritten:")[0] + "\n"
    assert now.startswith(f"{story.OLD}: {old.instance.nunique()} instances, {len(old)} tags")
    numbers, names = re.compile(r"\d+"), re.compile(r"song \d+")
    assert numbers.sub("#", now).split() == numbers.sub("#", block).split(), now
    # Another processor may round differently, and flip a tag or two.
    again = f"run python -m docs.story: {now}"
    told, found = (np.array(numbers.findall(names.sub("", x)), int) for x in (block, now))
    np.testing.assert_allclose(found, told, atol=3, err_msg=again)
    most = set(names.findall(block))
    assert len(most & set(names.findall(now))) >= len(most) - 3, again


def decide(project: Project, text: str) -> None:
    path = project.path / "data/decisions/decisions.csv"
    path.write_text("instance,label,decision,note\n" + text)
    project.run("dvc", "add", "data/decisions/decisions.csv")


def test_the_table_goes_as_it_is_through_every_command_and_the_server(
    project, tmp_path, monkeypatch, capsys
):
    """The model that is served is that of `dvc repro`, on the same table."""
    monkeypatch.chdir(project.path)
    monkeypatch.setattr(judging, "TREES", 50)
    table = pd.read_csv("data/own/songs.csv", keep_default_na=False, na_values=[""])
    given = ["data/own/songs.csv", "--tags", "tags", "--id", "song", "--merge-variants"]

    main(["describe", *given])
    said = capsys.readouterr().out
    for role in ("number", "category", "date", "text"):
        assert re.search(rf"^  \w+ +{role}(, [\d.]+% missing)?: ", said, re.MULTILINE), role
    main(["clean", *given, "-o", str(tmp_path / "clean.csv"), "--model", str(tmp_path / "model")])
    clean = pd.read_csv(tmp_path / "clean.csv", keep_default_na=False)
    assert set(clean.instance) == set(table.song[table.tags.notna()])
    assert clean.label_confidence.between(0, 1).all()
    main(["audit", *given, "--html", str(tmp_path / "page.html")])
    assert "song 1" in (tmp_path / "page.html").read_text()

    rows = table.drop(columns="tags").head(20)
    words = [name for name in rows.columns[-3:] if not is_numeric_dtype(rows[name])]
    assert len(words) == 3  # category, date, description
    rows.loc[0, [*words, "tempo"]] = ["Atlantis", None, None, None]
    rows.to_csv(tmp_path / "new.csv", index=False)
    out = str(tmp_path / "predicted.csv")
    main(["predict", "models/wsc-pml/classifier", str(tmp_path / "new.csv"), "-o", out])
    predicted = pd.read_csv(out).drop(columns="labels")
    run_id = json.loads(Path("metrics/run.json").read_text())["run_id"]
    (model,) = run_of(project, run_id).outputs.model_outputs
    store = f"sqlite:///{project.path / 'mlflow.db'}"
    with serving(tmp_path, store, f"models:/{model.model_id}") as (address, _):
        answer = requests.post(
            f"{address}/invocations",
            data=json.dumps({"dataframe_records": json.loads(rows.to_json(orient="records"))}),
            headers={"Content-Type": "application/json"},
            timeout=30,
        )
    assert answer.status_code == 200, answer.text
    served = pd.DataFrame(answer.json()["predictions"])
    labels = predicted.columns.intersection(served.columns)
    assert len(labels) >= 3
    pd.testing.assert_frame_equal(
        *(each[labels].astype(np.float32) for each in (served, predicted))
    )


def test_new_decisions_run_what_uses_them_and_those_of_before_come_back(project, kept):
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
    run_id = keep(project, kept)
    run = run_of(project, run_id)
    assert "params.yaml" in run.data.tags["git.tree"]
    assert "new decisions" in run.info.run_name
    assert run.data.metrics["labels.decided_share"] == 1 / len(found)
    agreed = before.label_confidence[0] < 0.5
    assert run.data.metrics["decisions.count"] == 1
    assert run.data.metrics["decisions.agreement"] == agreed
    lock = yaml.safe_load((project.path / "dvc.lock").read_text())["stages"]["collect_decisions"]
    assert run.data.tags["dvc.data/decided.parquet"] == lock["outs"][1]["md5"]
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


def test_the_files_of_any_run_come_back_to_the_byte(project, kept, tmp_path, monkeypatch):
    monkeypatch.chdir(project.path)
    monkeypatch.setenv("DVC_SITE_CACHE_DIR", project.env["DVC_SITE_CACHE_DIR"])
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{project.path}/mlflow.db")
    assert len(kept) == 3
    trees = []
    for run_id, files in kept.items():
        place = tmp_path / run_id
        trees.append(versions.restore(f"run:{run_id}", place).tree.partition(":")[0])
        assert {path: (place / path).read_bytes() for path in files} == files
    assert trees == ["changed", "clean", "changed"]
    assert (place / "data/decisions/decisions.csv").read_text().startswith("instance,label")


def test_a_mistake_in_the_data_is_one_clear_line(project):
    path = project.path / "data/own/songs.csv"
    path.write_text(path.read_text() + path.read_text().splitlines()[1] + "\n")
    done = project.run("dvc", "repro", check=False)
    assert done.returncode != 0
    line = "data/own/songs.csv: instance 'song 1' is there twice, as numbers 1 and 401; rename one"
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
    assert project.repro("prepare", **offline) == []  # 4 is what emotions has by itself
    assert project.repro("--force", "--single-item", "fetch", **offline) == ["fetch"]
