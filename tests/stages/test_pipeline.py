"""The real pipeline, driven as people drive it, in a clone of its own."""

import hashlib
import json
import shutil
import socket
import subprocess
import sys
import threading
from io import StringIO
from pathlib import Path

import mlflow
import numpy as np
import pandas as pd
import pytest
import yaml

from tests.conftest import STAGES, Project


@pytest.fixture(scope="module")
def project(clone: Project) -> Project:
    """A clone in which the pipeline has run once; the result is committed."""
    assert clone.repro() == STAGES[1:]
    commit(clone, "first result")
    return clone


UP_TO_DATE = "Data and pipelines are up to date.\n"


def commit(project: Project, message: str) -> None:
    project.run("git", "add", "--all")
    project.run("git", "commit", "--quiet", "--allow-empty", "--message", message)


def store(project: Project) -> str:
    return f"sqlite:///{project.path}/mlflow.db"


def stages(status: str) -> list[str]:
    """The stages that `dvc status` names."""
    names = [line.rstrip(":") for line in status.splitlines() if not line.startswith("\t")]
    return sorted(name.removeprefix("models/dvc.yaml:") for name in names)


def runs(project: Project) -> pd.DataFrame:
    mlflow.set_tracking_uri(store(project))
    return mlflow.search_runs(search_all_experiments=True)


def digests(project: Project) -> dict[str, str]:
    """sha256 of every file that DVC tracks."""
    files = [f for d in ("data", "models", "metrics") for f in (project.path / d).rglob("*")]
    return {
        f.relative_to(project.path).as_posix(): hashlib.sha256(f.read_bytes()).hexdigest()
        for f in files
        if f.is_file() and f.name != ".gitignore"
    }


def test_the_first_run_gives_a_good_classifier_and_one_mlflow_run(project):
    evaluation = json.loads((project.path / "metrics/evaluation.json").read_text())
    assert evaluation["average_precision"] >= 0.72
    found = runs(project)
    run_id = json.loads((project.path / "metrics/run.json").read_text())["run_id"]
    assert found.run_id.tolist() == [run_id]
    assert found.status.tolist() == ["FINISHED"]


def test_only_what_changed_runs_again(project):
    assert project.repro() == []
    assert project.run("dvc", "status").stdout == UP_TO_DATE
    project.set("clustering", "alpha", 1)
    assert stages(project.run("dvc", "status").stdout) == ["identify"]
    assert project.repro("identify") == []
    assert stages(project.run("dvc", "status").stdout) == ["cluster", "track"]
    assert project.repro() == ["cluster", "train_classifier", "apply_method", "evaluate", "track"]
    assert len(runs(project)) == 2
    changed = json.loads((project.path / "metrics/run.json").read_text())
    for command in ("metrics diff", "params diff", "plots diff --json"):
        said = project.run("dvc", *command.split()).stdout
        assert "clustering" in said or "average_precision" in said
    project.run("git", "checkout", "params.yaml")
    assert project.repro() == []
    assert len(runs(project)) == 2
    assert json.loads((project.path / "metrics/run.json").read_text()) != changed
    assert project.run("git", "status", "--porcelain").stdout == ""


def test_a_setting_that_changes_nothing_runs_nothing_and_logs_no_twin(project):
    known = len(runs(project))
    project.set("noise", "rate", 0.7)  # of other noise than padding
    project.set("noise", "candidates", 9)  # as by default
    project.set("dataset", "separator", "|")  # of files of one's own
    assert project.repro() == []
    assert project.run("dvc", "status").stdout == UP_TO_DATE
    assert len(runs(project)) == known
    project.run("git", "checkout", "params.yaml")
    assert project.repro() == []
    assert project.run("git", "status", "--porcelain").stdout == ""


def test_another_method_runs_in_place_of_ours_and_the_way_back_is_cached(project):
    ours, known = digests(project), set(runs(project).run_id)
    project.set(None, "method", "pml-ni")
    done = project.run("dvc", "repro")
    assert done.stdout.count("not needed: the method is pml-ni") == 5
    assert done.stdout.count("Running stage") == 1 + 5 + 3
    assert project.run("dvc", "status").stdout == UP_TO_DATE
    project.run("dvc", "checkout")
    plots = json.loads(project.run("dvc", "plots", "show", "--json").stdout)
    assert not plots.get("errors")
    measured = json.loads((project.path / "metrics/evaluation.json").read_text())
    assert measured["average_precision"] > 0.68
    assert list(measured["noise_auc"]) == ["F"]

    project.set("clustering", "alpha", 1)  # is not its concern
    assert project.repro() == []
    found = runs(project).set_index("run_id")
    (run_id,) = set(found.index) - known
    run = mlflow.get_run(run_id)
    data = run.data.tags["dvc.data/prepared"]
    assert run.info.run_name == f"pml-ni yeast-9 @{data[:7]}"
    assert run.info.experiment_id == found.experiment_id.iloc[-1]
    assert {"method": "pml-ni", "pml-ni.lam": "10.0", "noise.candidates": "9"}.items() <= (
        run.data.params.items()
    )
    assert not [name for name in run.data.params if name.startswith(("clustering", "classifier"))]
    assert run.data.metrics["average_precision"] == measured["average_precision"]
    course = pd.read_csv(project.path / "metrics/iterations.csv")
    points = mlflow.MlflowClient().get_metric_history(run_id, "iterations.objective")
    assert [point.value for point in points] == course.objective.tolist()
    points = mlflow.MlflowClient().get_metric_history(run_id, "iterations.objective_per_candidate")
    tags = run.data.metrics["labels.tags"]
    assert [point.value for point in points] == (course.objective / tags).tolist()
    assert "dvc.data/pseudo_labels.parquet" in run.data.tags
    assert not [name for name in run.data.tags if name.startswith("dvc.models")]
    assert run.data.tags["git.tree"] == "changed: params.yaml"
    assert run.data.tags["labels.compared_with"] in known
    assert run.data.metrics["labels.added"] == 0 < run.data.metrics["labels.flipped"]
    assert not run.outputs.model_outputs

    project.set("evaluation", "threshold", 0.4)
    assert project.repro() == ["evaluate", "track"]  # nothing is fitted again
    assert len(runs(project)) == len(known) + 2

    project.run("git", "checkout", "params.yaml")
    assert project.repro() == []
    assert digests(project) == ours
    assert len(runs(project)) == len(known) + 2


def test_a_method_that_is_none_stops_the_run_and_leaves_the_results(project):
    before = digests(project)
    project.set(None, "method", "pml")
    done = project.run("dvc", "repro", check=False)
    assert done.returncode != 0
    assert "params.yaml: method: must be one of wsc-pml, " in done.stderr
    assert "Traceback" not in done.stderr
    project.run("git", "checkout", "params.yaml")
    assert project.repro() == []
    assert digests(project) == before


def test_a_change_of_the_held_out_fold_leaves_the_noise_alone(project):
    project.set("split", "fold", 1)
    project.repro("identify")
    assert stages(project.run("dvc", "status").stdout) == ["prepare", "track"]
    project.repro("--single-item", "prepare")
    assert "inject_noise" not in project.run("dvc", "status").stdout
    project.run("git", "checkout", "params.yaml")
    assert project.repro() == []


def test_deleted_results_come_back_to_the_byte(project):
    before = digests(project)
    for directory in ("data", "models"):
        shutil.rmtree(project.path / directory)
    project.run("git", "checkout", "--", "data", "models")
    project.run("dvc", "checkout")
    assert digests(project) == before


def test_the_same_inputs_give_the_same_bytes_on_any_number_of_cores(project):
    before = digests(project)
    one_thread = dict.fromkeys(["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"], "1")
    project.repro("--force", "--downstream", "prepare", **one_thread)
    assert digests(project) == before  # also the run's id: it is the same result
    project.run("git", "checkout", "dvc.lock")


def test_versions_come_back_by_git_and_dvc_or_from_the_mlflow_run(project, tmp_path):
    first = digests(project)
    project.set("clustering", "alpha", 1)
    assert project.repro() == []  # the run cache still knows it
    commit(project, "alpha = 1")
    project.run("git", "tag", "alpha-1")
    second = digests(project)
    run_id = json.loads((project.path / "metrics/run.json").read_text())["run_id"]
    project.run("git", "reset", "--quiet", "--hard", "HEAD~1")
    project.run("dvc", "checkout")
    assert digests(project) == first

    table = "data/pseudo_labels.parquet"
    old = tmp_path / "old.parquet"
    project.run("dvc", "get", ".", table, "--rev", "alpha-1", "--out", str(old))
    assert hashlib.sha256(old.read_bytes()).hexdigest() == second[table] != first[table]

    project.run("wscpml", "restore", f"run:{run_id}", str(tmp_path / "then"))
    restored = digests(Project(tmp_path / "then", project.env))
    expected = {name for name in second if not name.endswith("run.json")}
    others = {name for name in expected if name.endswith(("README.md", "params.yaml", ".lock"))}
    assert {name: restored[name] for name in expected - others} == {
        name: second[name] for name in expected - others
    }
    assert digests(project) == first


def test_a_remote_brings_back_what_was_pushed(project, tmp_path):
    before = digests(project)
    project.run("dvc", "remote", "add", "--local", "--default", "backup", str(tmp_path / "remote"))
    project.run("dvc", "push", "--all-tags")
    shutil.move(project.path / ".dvc/cache", tmp_path / "cache")
    for lost in ("data", "models"):
        shutil.rmtree(project.path / lost)
    project.run("git", "checkout", "--", "data", "models")
    project.run("dvc", "pull")
    assert digests(project) == before
    assert project.repro() == []
    project.run("git", "checkout", "--quiet", "--detach", "alpha-1")
    project.run("dvc", "pull")
    assert digests(project) != before
    project.run("git", "checkout", "--quiet", "-")
    shutil.rmtree(project.path / ".dvc/cache")
    shutil.move(tmp_path / "cache", project.path / ".dvc/cache")
    project.run("dvc", "checkout")
    assert digests(project) == before

    project.set(None, "method", "pml-ni")
    assert project.repro() == []  # the run cache has it
    commit(project, "another method")
    project.run("dvc", "push")
    theirs = Project(tmp_path / "theirs", project.env)
    project.run("git", "clone", "--quiet", str(project.path), str(theirs.path))
    shutil.copy(project.path / ".dvc/config.local", theirs.path / ".dvc/config.local")
    theirs.run("dvc", "pull")
    assert theirs.run("dvc", "status").stdout == UP_TO_DATE
    assert {name: value for name, value in digests(theirs).items() if "run.json" not in name} == {
        name: value for name, value in digests(project).items() if "run.json" not in name
    }
    project.run("git", "reset", "--quiet", "--hard", "HEAD~1")
    project.run("dvc", "checkout")
    project.run("dvc", "remote", "remove", "--local", "backup")
    assert digests(project) == before


def test_plots_show_the_course_and_the_quality_of_the_run(project):
    shown = json.loads(project.run("dvc", "plots", "show", "--json").stdout)
    plots = shown.get("data", shown)
    assert not shown.get("errors")
    assert set(plots) == {
        "objective",
        "training",
        "average_precision_per_label",
        "weak_supervision_of_candidates",
        "label_confidence_of_candidates",
        "pseudo_labels_of_candidates",
        "memberships_of_candidates",
        "metrics/overview.png",
    }


def test_queued_experiments_of_two_workers_land_in_the_one_store(project):
    before = len(runs(project))
    for threshold in ("0.4", "0.00001"):  # of which nothing is fitted again
        project.run("dvc", "exp", "run", "--queue", "-S", f"evaluation.threshold={threshold}")
    project.run("dvc", "exp", "run", "--run-all", "--jobs", "2")
    found = runs(project)
    assert len(found) == before + 2
    assert {"0.4", "1e-05"} <= set(found["params.evaluation.threshold"])
    shown = pd.read_csv(StringIO(project.run("dvc", "exp", "show", "--csv").stdout))
    assert {0.4, 1e-5} <= set(shown["params.yaml:evaluation.threshold"])
    assert set(found["tags.dvc.experiment"].dropna()) <= set(shown.Experiment)


def test_a_mistake_in_the_settings_stops_the_run_and_leaves_the_results(project):
    before = digests(project)
    project.set("clustering", "alpha", -1)
    done = project.run("dvc", "repro", check=False)
    assert done.returncode != 0
    assert "params.yaml: clustering.alpha: must be > 0, got -1" in done.stderr.splitlines()
    assert "Traceback" not in done.stderr
    project.run("git", "checkout", "params.yaml")
    project.run("dvc", "checkout")
    assert digests(project) == before


def test_without_its_server_only_the_last_stage_fails(project):
    project.set("tracking", "experiment", "elsewhere")
    lost = {"MLFLOW_TRACKING_URI": "http://127.0.0.1:9", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0"}
    done = project.run("dvc", "repro", check=False, **lost)
    assert done.returncode != 0
    assert "MLFLOW_TRACKING_URI: MLflow at http://127.0.0.1" in done.stderr
    assert "Traceback" not in done.stderr
    assert project.repro() == ["track"]
    project.run("git", "checkout", "params.yaml")
    assert project.repro() == []


@pytest.fixture
def server(tmp_path):
    """An MLflow server on loopback with a store of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = ["mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    command += ["--backend-store-uri", f"sqlite:///{tmp_path}/server.db"]
    command += ["--artifacts-destination", str(tmp_path / "artifacts")]
    process = subprocess.Popen(
        [str(Path(sys.executable).parent / command[0]), *command[1:]],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
            "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
            "MLFLOW_DISABLE_TELEMETRY": "true",
        },
    )
    try:
        said = []
        for line in process.stdout:  # until it is up, or has ended
            said.append(line)
            if "Uvicorn running on" in line:
                break
        else:
            pytest.fail("".join(said))
        # A line for each request: were they not read, the pipe would be full and the server wait.
        reader = threading.Thread(target=process.stdout.read)
        reader.start()
        yield f"http://127.0.0.1:{port}"
        process.terminate()
        reader.join()
    finally:
        process.terminate()
        process.communicate()


def test_a_run_is_read_back_through_a_server(project, server, tmp_path):
    assert project.repro("--force", "--single-item", "track", MLFLOW_TRACKING_URI=server) == [
        "track"
    ]
    mlflow.set_tracking_uri(server)
    client = mlflow.MlflowClient()
    run_id = json.loads((project.path / "metrics/run.json").read_text())["run_id"]
    run = client.get_run(run_id)

    assert run.data.params["clustering.alpha"] == "10.0"
    assert run.data.params["noise.candidates"] == "9"
    evaluation = json.loads((project.path / "metrics/evaluation.json").read_text())
    assert run.data.metrics["average_precision"] == evaluation["average_precision"]
    assert run.data.metrics["noise_auc.pi"] == evaluation["noise_auc"]["pi"]
    for name, column in (
        ("iterations", "objective"),
        ("iterations", "change"),
        ("training", "validation_loss"),
    ):
        course = pd.read_csv(project.path / f"metrics/{name}.csv")
        points = client.get_metric_history(run_id, f"{name}.{column}")
        logged = {point.step: point.value for point in points}
        assert logged == dict(zip(course.iloc[:, 0], course[column], strict=True))

    hashes = {
        out["path"]: out["md5"]
        for directory in (".", "models")
        for stage in yaml.safe_load((project.path / directory / "dvc.lock").read_text())[
            "stages"
        ].values()
        for out in stage["outs"]
    }
    head = project.run("git", "rev-parse", "HEAD").stdout.strip()
    assert run.data.tags["git.commit"] == head
    assert run.data.tags["git.tree"] == "clean"
    made = {name: value for name, value in hashes.items() if name != "metrics/run.json"}
    assert {f"dvc.{name}": value for name, value in made.items()}.items() <= run.data.tags.items()
    table = (project.path / "data/pseudo_labels.parquet").read_bytes()
    assert hashes["data/pseudo_labels.parquet"] == hashlib.md5(table).hexdigest()
    (data,) = run.inputs.dataset_inputs
    assert data.dataset.name == "yeast"
    assert f"{data.dataset.digest}.dir" == hashes["data/prepared"]

    copy = mlflow.artifacts.download_artifacts(
        run_id=run_id, artifact_path="data/pseudo_labels.parquet", dst_path=str(tmp_path)
    )
    assert Path(copy).read_bytes() == table
    logged = {f.path for d in ("", "metrics") for f in client.list_artifacts(run_id, d)}
    assert {"params.yaml", "dvc.lock", "metrics/overview.png", "metrics/audit.html"} <= logged

    (output,) = run.outputs.model_outputs
    model = mlflow.pyfunc.load_model(f"models:/{output.model_id}")
    names = json.loads((project.path / "data/prepared/names.json").read_text())
    test = np.load(project.path / "data/split.npy")
    features = np.load(project.path / "data/prepared/features.npy")[test]
    scores = model.predict(pd.DataFrame(features, columns=names["features"]))
    expected = pd.read_parquet(project.path / "data/predictions.parquet")
    predicted = scores.pop("labels")
    pd.testing.assert_frame_equal(scores, expected.drop(columns="instance"))
    assert predicted.map(len).tolist() == (scores >= 0.5).sum(axis=1).tolist()
