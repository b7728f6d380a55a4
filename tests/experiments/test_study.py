"""The study's cells: what is in them, when they run again, and what happens when one fails."""

import inspect
import json
import os
import re
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import yaml
from joblib.externals.loky import process_executor

from experiments import cell, convergence, cost, folds, identify, pool, protocols, settings, study
from experiments.cell import Cell
from experiments.folds import Outcome, Task
from tests.conftest import ROOT, Project, Tiny
from wscpml.datasets.registry import BENCHMARKS, REGISTRY
from wscpml.errors import UserError
from wscpml.methods import ABLATIONS, METHODS, OTHER_FEATURES, PLACES, method

STUDY = settings.load(ROOT / "experiments/params.yaml")
STAGES = {
    name: stage
    for file in ("experiments/dvc.yaml", "experiments/quick/dvc.yaml")
    for name, stage in yaml.safe_load((ROOT / file).read_text())["stages"].items()
}
EMOTIONS = Cell("quick", "emotions-4", "ml-knn")
YEAST = Cell("quick", "yeast-9", "ml-knn")


@pytest.fixture
def tiny(monkeypatch):
    """A benchmark of 60 rows, in this process alone."""
    monkeypatch.setitem(REGISTRY, "tiny", Tiny())
    monkeypatch.setitem(BENCHMARKS, "tiny-2", ("tiny", 2))
    folds.load.cache_clear()
    yield "tiny-2"
    folds.load.cache_clear()


# What a cell holds


def test_a_fold_of_wsc_pml_has_a_run_for_every_pair_of_the_grid(tiny):
    outcome = folds.run(Task(tiny, "wsc-pml", seed=0, folds=10, fold=3))
    assert outcome.error is None
    assert outcome.peak_memory > 0
    assert len({tuple(run["settings"].values()) for run in outcome.runs}) == 25
    for run in outcome.runs:
        assert run["fold"] == 3
        assert 0 < run["criterion"] < 1
        assert set(run["metrics"]) == {
            "average_precision",
            "coverage",
            "hamming_loss",
            "one_error",
            "ranking_loss",
        }
    assert sum(run["seconds"] for run in outcome.runs) == pytest.approx(outcome.seconds)


def test_folds_and_candidates_are_the_pipelines_and_labels_the_methods_own(tiny, monkeypatch):
    seen = {}

    def note(truth, scored):
        seen.update(truth=truth, scored=scored)
        return {}

    monkeypatch.setattr(folds, "measure", note)
    folds.run(Task(tiny, "pml-lenfn", seed=0, folds=10, fold=1))
    given = folds.load(tiny, 0, 10)
    test = given.fold == 1
    alone = method("pml-lenfn")(random_state=0).fit(given.X[~test], given.candidates[~test])
    np.testing.assert_array_equal(seen["truth"], given.truth[test])
    np.testing.assert_array_equal(seen["scored"].labels, alone.predict(given.X[test]))


def test_hamming_loss_is_of_the_labels_and_not_of_a_threshold():
    truth = np.array([[1, 0], [0, 1]])
    scored = folds.Scored({}, np.array([[0.4, 0.1], [0.1, 0.4]]), truth.copy(), None)
    assert folds.measure(truth, scored)["hamming_loss"] == 0


@pytest.mark.parametrize(("name", "labels"), [("oracle", "truth"), ("br", "candidates")])
def test_oracle_alone_is_given_the_truth(tiny, monkeypatch, name, labels):
    taken = []

    def note(estimator, X, y, rest):  # noqa: ARG001
        taken.append(y)
        return []

    monkeypatch.setattr(method(name), "score_grid", note)
    folds.run(Task(tiny, name, seed=0, folds=10, fold=0))
    given = folds.load(tiny, 0, 10)
    np.testing.assert_array_equal(taken[0], getattr(given, labels)[given.fold != 0])


def test_a_result_has_ordered_keys_rounded_figures_and_no_runs_of_a_failed_cell():
    tasks = EMOTIONS.tasks(STUDY)
    runs = [{"fold": 0, "metrics": {"b": np.float64(1 / 3), "a": None}, "seconds": 2 / 3}]
    whole = cell.result(EMOTIONS, [Outcome(tasks[0], runs, 1.0, 5_000_000), Outcome(tasks[1])])
    assert list(whole) == sorted(whole)
    assert whole["runs"] == [
        {"fold": 0, "metrics": {"a": None, "b": 0.333333}, "seconds": 0.666667}
    ]
    assert (whole["folds"], whole["peak_memory_mb"], whole["seconds"]) == (2, 5.0, 1.0)
    json.dumps(whole, allow_nan=False)
    failed = cell.result(EMOTIONS, [Outcome(tasks[0], runs), Outcome(tasks[1], error="why")])
    assert (failed["error"], failed["runs"]) == ("why", [])


def test_the_best_runs_are_those_of_one_setting_over_all_folds():
    alphas, precisions = [1, 2, 1, 2, 2], [0.9, 0.7, 0.1, 0.7, None]
    best = protocols.paper([{"alpha": alpha} for alpha in alphas], precisions)
    assert best.tolist() == [False, True, False, True, True]
    assert not len(protocols.paper([], []))


def test_the_course_of_the_clustering_is_that_of_the_first_folds_training_rows(tiny):
    course = convergence.course(tiny, seed=0, folds=10)
    given = folds.load(tiny, 0, 10)
    train = given.fold != 0
    fitted = method("wsc-pml")(max_epochs=1).fit(given.X[train], given.candidates[train])
    assert course["benchmark"] == tiny
    assert course["iteration"] == list(range(1, len(course["change"]) + 1))
    assert course["objective"] == fitted.objective_


def test_the_cost_is_measured_along_every_dimension(monkeypatch):
    monkeypatch.setattr(cost, "seconds", lambda size: size.n * size.q * size.d)
    found = cost.measure(cost.Size(100, 4, 8))
    assert {axis: [size for size, _ in points] for axis, points in found.items()} == {
        "n": [25, 50, 100, 200, 400, 800],
        "q": [1, 2, 4, 8, 16, 32],
        "d": [2, 4, 8, 16, 32, 64],
    }
    assert found["q"][0] == [1, 800]


# What goes wrong


def test_what_goes_wrong_in_a_fold_is_told_in_one_line(tiny, monkeypatch, capsys):
    def fail(*_):
        raise ValueError("two\nlines")

    monkeypatch.setattr(method("br"), "score_grid", fail)
    outcome = folds.run(Task(tiny, "br", 0, 10, 0))
    assert (outcome.error, outcome.runs) == ("ValueError: two lines", [])
    assert "Traceback" in capsys.readouterr().err
    absent = folds.run(Task("Music_emotion", "br", 0, 10, 0))
    assert absent.error.startswith("Music_emotion.mat: is not public")


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"quick": {"benchmarks": ["songs-3"]}}, "quick.benchmarks.0: must be one of Mirflickr, "),
        ({"quick": {"benchmarks": ["emotions"]}}, "quick.benchmarks.0: must be one of Mirflickr, "),
        ({"full": {"methods": ["br", "svm"]}}, "full.methods.1: must be one of wsc-pml, "),
        ({"full": {"folds": 11}}, "full.folds must be <= folds = 10, got 11"),
        ({"quick": {"fold": 1}}, "quick.fold: unknown key; known here: folds, benchmarks, methods"),
        ({"seed": -1}, "seed: must be >= 0, got -1"),
    ],
)
def test_a_mistake_in_the_settings_is_one_clear_line(tmp_path, changes, line):
    content = yaml.safe_load((ROOT / "experiments/params.yaml").read_text())
    for key, value in changes.items():
        content[key] = content[key] | value if isinstance(value, dict) else value
    path = tmp_path / "params.yaml"
    path.write_text(yaml.safe_dump(content))
    with pytest.raises(UserError) as mistake:
        settings.load(path)
    assert line in str(mistake.value)
    assert "\n" not in str(mistake.value)


def test_a_cell_that_is_none_of_the_study_is_one_clear_line(monkeypatch):
    monkeypatch.setattr("sys.argv", ["cell", "full", "emotions-4", "svm"])
    with pytest.raises(SystemExit, match="emotions-4 svm: no such cell; benchmark and method must"):
        cell.main()


def test_a_cell_whose_worker_is_killed_has_failed_and_the_others_have_not(monkeypatch, tmp_path):
    (tmp_path / "deadly.py").write_text(
        "import os, signal\ndef end(): os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    import deadly as module

    class Deadly(Task):  # ends the worker that unpacks it
        def __reduce__(self):
            return module.end, ()

    good = [YEAST.tasks(STUDY), Cell("quick", "yeast-7", "ml-knn").tasks(STUDY)]
    bad = [Deadly("yeast-9", "br", 0, 10, 0)]
    found = dict(pool.run_cells([good[0], bad, good[1]], None))
    assert found[1] == [Outcome(bad[0], error=pool.LOST)]
    for place in (0, 2):
        assert [each.error for each in found[place]] == [None] * STUDY.quick.folds
        assert [each.task.fold for each in found[place]] == list(range(STUDY.quick.folds))


def test_a_worker_that_is_replaced_is_not_reported_and_ends_nothing():
    stopped = "A worker stopped while some jobs were given to the executor."
    assert stopped.split(" some")[0] in inspect.getsource(process_executor)
    with pool._workers(None):
        warnings.warn(stopped, UserWarning, stacklevel=1)  # an error, were it not for the pool
        with pytest.raises(UserWarning, match="another"):
            warnings.warn("another", UserWarning, stacklevel=1)


# The matrix


def test_the_study_covers_every_method_and_every_benchmark_whose_files_are_public():
    public = [name for name in settings.KNOWN if not name.startswith("Music")]
    assert len(settings.KNOWN) == 24
    assert sorted(STUDY.full.benchmarks) == sorted(public)
    assert sorted(STUDY.full.methods) == sorted(STUDY.quick.methods) == sorted(METHODS)
    assert STUDY.full.methods[:5] == ["wsc-pml", "br", "krr-c", "rf-c", "oracle"]
    assert sorted(STUDY.ablation.methods) == sorted(ABLATIONS)
    assert (STUDY.features.benchmarks, STUDY.features.methods) == (
        STUDY.full.benchmarks,
        list(OTHER_FEATURES),
    )
    assert (STUDY.folds, STUDY.full.folds, STUDY.quick.folds) == (10, 10, 3)
    assert len(STUDY.quick.benchmarks) == 4


@pytest.mark.parametrize("part", cell.PLACES)
def test_a_cell_is_a_stage_that_depends_on_its_code_data_and_settings(part):
    stage, first = STAGES[part], cell.cells(STUDY, part)[0]

    def filled(text):
        names = {"benchmark": first.benchmark, "method": first.method}
        for name, value in names.items():
            text = text.replace(f"${{item.{name}}}", value)
        return text

    assert stage["matrix"] == {
        "benchmark": f"${{{part}.benchmarks}}",
        "method": f"${{{part}.methods}}",
    }
    assert filled(stage["cmd"]) == f"cd .. && python -m experiments.cell {part} {first}"
    ((out, options),) = stage["outs"][0].items()
    assert "experiments" / Path(filled(out)) == first.path
    assert options == {"cache": False}
    own, known = (next(iter(each.values())) for each in stage["params"])
    assert own == ["seed", "folds", f"{part}.folds"]
    assert [filled(name) for name in known] == [f"code.{first.method}", f"data.{first.benchmark}"]
    identities = identify.identities()
    for each in cell.cells(STUDY, part):
        assert each.method in identities["code"]
        assert each.benchmark in identities["data"]


def test_what_tells_the_identities_always_runs():
    assert STAGES["identify"]["always_changed"]


def test_the_pipeline_knows_nothing_of_the_study():
    assert "/experiments" in (ROOT / ".dvcignore").read_text().splitlines()


@pytest.mark.parametrize(
    ("file", "changed"),
    [
        ("wscpml/methods/pamb.py", {"pamb"}),
        (
            "wscpml/algorithm/clustering.py",
            {"wsc-pml", "convergence", "cost", *ABLATIONS, *OTHER_FEATURES} - {"ablation-nc"},
        ),
        ("wscpml/methods/base.py", {*PLACES}),
        ("wscpml/serving/tracking.py", set()),
    ],
)
def test_a_change_of_code_touches_the_cells_behind_which_it_is(monkeypatch, file, changed):
    before, read = identify.identities()["code"], Path.read_text

    def edited(path, *args, **options):
        text = read(path, *args, **options)
        return text + "\nassert True\n" if path == ROOT / file else text

    monkeypatch.setattr(Path, "read_text", edited)
    after = identify.identities()["code"]
    assert {name for name in before if before[name] != after[name]} == changed


def test_renamed_files_and_packages_leave_every_cell_as_it_is(tmp_path):
    for package in identify.PACKAGES:
        for file in (ROOT / package).rglob("*.py"):
            text = file.read_text()
            text = re.sub(
                r"(from wscpml\.algorithm import [^(]*?)\bridge\b", r"\1closed as ridge", text
            )
            text = text.replace("wscpml.algorithm.ridge", "wscpml.algorithm.closed")
            text = text.replace("wscpml.algorithm", "wscpml.mathematics")
            place = file.relative_to(ROOT).as_posix()
            place = place.replace("algorithm/ridge", "mathematics/closed")
            target = tmp_path / place.replace("algorithm", "mathematics")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
    assert (tmp_path / "wscpml/mathematics/closed.py").exists()
    assert identify.identities(tmp_path) == identify.identities()
    closed = tmp_path / "wscpml/mathematics/closed.py"
    closed.write_text(closed.read_text() + "\nassert True\n")
    assert identify.identities(tmp_path) != identify.identities()


def test_other_data_are_another_identity(monkeypatch):
    from dataclasses import replace

    before = identify.identities()["data"]
    emotions = REGISTRY["emotions"]
    other = replace(emotions.files[0], sha256="0" * 64)
    monkeypatch.setitem(REGISTRY, "emotions", replace(emotions, files=(other,)))
    after = identify.identities()["data"]
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"emotions-3", "emotions-4", "emotions-5"}
    assert len(set(before.values())) == len(before)


# A cluster


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
def test_a_cluster_that_loses_a_worker_in_the_middle_loses_no_result(tmp_path):
    from distributed import LocalCluster

    cells = [Cell("quick", name, "pml-lenfn").tasks(STUDY) for name in ("yeast-7", "yeast-9")]
    with LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", local_directory=tmp_path
    ) as cluster:
        workers = [worker.pid for worker in cluster.workers.values()]
        done = pool.run_cells(cells, cluster.scheduler_address)
        found = dict([next(done)])
        os.kill(workers[0], signal.SIGKILL)
        found |= dict(done)
    here = dict(pool.run_cells(cells, None))
    assert found.keys() == here.keys()
    for place, outcomes in here.items():
        for local, remote in zip(outcomes, found[place], strict=True):
            assert local.error is remote.error is None
            assert local.task == remote.task
            assert local.runs[0]["metrics"] == remote.runs[0]["metrics"]


def test_a_scheduler_that_does_not_answer_is_one_clear_line(monkeypatch):
    monkeypatch.setattr(pool, "SECONDS_TO_ANSWER", 1)
    with pytest.raises(UserError, match="no Dask scheduler answers at tcp://127.0.0.1:9 "):
        list(pool.run_cells([YEAST.tasks(STUDY)], "tcp://127.0.0.1:9"))


# The sweep, in a clone

SWEEP = [sys.executable, "-m", "experiments.study", "--quick"]


@pytest.fixture(scope="module")
def project(clone: Project, tmp_path_factory) -> Project:
    """A clone whose quick study is three benchmarks, one of them with a damaged file."""
    path = clone.path / "experiments/params.yaml"
    content = yaml.safe_load(path.read_text())
    for part in ("full", "ablation", "features"):  # one cell: DVC reads all at every command
        for axis in ("benchmarks", "methods"):
            del content[part][axis][1:]
    content["quick"] = {
        "folds": 2,
        "benchmarks": ["yeast-7", "yeast-9", "emotions-4"],
        "methods": ["ml-knn", "pml-ni"],
    }
    path.write_text(yaml.safe_dump(content))
    analyse = "import sys\nprint('analysed', *sys.argv[1:])\n"
    (clone.path / "experiments/analyse.py").write_text(analyse)
    mirror = tmp_path_factory.mktemp("mirror")
    (mirror / "emotions.mat").write_text("damaged")
    clone.env["WSCPML_DATA"] = str(mirror)
    return clone


def results(project: Project) -> dict[str, float]:
    """When each result was written."""
    files = (project.path / "experiments/quick/results").rglob("*.json")
    return {f"{file.parent.name} {file.stem}": file.stat().st_mtime_ns for file in files}


def lock(project: Project) -> dict:
    return yaml.safe_load((project.path / "experiments/quick/dvc.lock").read_text())["stages"]


def in_study(project: Project, *command: str) -> str:
    """What DVC says in the study's project."""
    return project.run("dvc", "--cd", "experiments", *command).stdout


def store(project: Project) -> list:
    """All runs of the study in the project's MLflow store."""
    import mlflow

    mlflow.set_tracking_uri(f"sqlite:///{project.path}/mlflow.db")
    (experiment,) = mlflow.search_experiments(filter_string="name = 'study'")
    return mlflow.search_runs([experiment.experiment_id], output_format="list")


def test_a_killed_sweep_goes_on_where_it_was_and_a_failed_cell_does_not_stop_it(project):
    started = subprocess.Popen(
        SWEEP,
        cwd=project.path,
        env=project.env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    said = b""
    while b"last yeast" not in said:  # such a cell is in the lock file
        said += (read := started.stderr.read(1))
        assert read, said
    os.killpg(started.pid, signal.SIGKILL)
    started.communicate()
    kept = {name for name in results(project) if f"quick@{name.replace(' ', '-')}" in lock(project)}
    assert 1 <= len(kept) < 4
    before = results(project)

    done = project.run(*SWEEP, check=False)
    assert done.returncode == 1
    assert f"6 cells, {len(kept)} of them up to date" in done.stdout
    assert "analysed --results experiments/quick/results --out experiments/quick" in done.stdout
    for name in ("ml-knn", "pml-ni"):
        path = project.path / f"experiments/quick/results/emotions-4/{name}.json"
        failed = json.loads(path.read_text())
        assert failed["error"].endswith(
            "is not the expected file (sha256 differs); delete or replace it"
        )
        assert f"emotions-4 {name}: {failed['error']}" in done.stderr
    after = results(project)
    assert len(after) == 6
    assert {name for name in kept if after[name] != before[name]} == set()


def test_a_cell_is_an_mlflow_run_with_its_folds_below_it(project):
    runs = store(project)
    (parent,) = [run for run in runs if run.info.run_name == "yeast-9 ml-knn"]
    children = [r for r in runs if r.data.tags.get("mlflow.parentRunId") == parent.info.run_id]
    path = project.path / "experiments/quick/results/yeast-9/ml-knn.json"
    written = json.loads(path.read_text())
    assert parent.info.status == "FINISHED"
    assert parent.data.params == {
        "benchmark": "yeast-9",
        "method": "ml-knn",
        "seed": "0",
        "folds": "2",
    }
    precisions = [run["metrics"]["average_precision"] for run in written["runs"]]
    assert parent.data.metrics["average_precision"] == pytest.approx(np.mean(precisions))
    logged = {int(r.data.params["fold"]): r.data.metrics["average_precision"] for r in children}
    assert logged == dict(enumerate(precisions))
    failed = [run for run in runs if run.info.status == "FAILED"]
    assert {run.data.tags["benchmark"] for run in failed} == {"emotions-4"}
    assert all("sha256 differs" in run.data.tags["error"] for run in failed)


def test_dvc_itself_finds_finished_cells_up_to_date_and_runs_one_by_the_same_command(project):
    stage = "quick/dvc.yaml:quick@yeast-9-pml-ni"
    assert "up to date" in in_study(project, "status", stage)
    known = store(project)
    path = project.path / "experiments/quick/results/yeast-9/pml-ni.json"
    before = json.loads(path.read_text())
    assert f"Running stage '{stage}'" in in_study(
        project, "repro", "--force", "--single-item", stage
    )
    assert len(store(project)) == len(known)  # one result is one run, in the one store
    after = json.loads(path.read_text())
    for whole in (before, after):
        whole["peak_memory_mb"] = whole["seconds"] = 0
        for run in whole["runs"]:
            run["seconds"] = 0
    assert before == after


def test_a_change_of_one_method_runs_its_cells_and_those_that_failed(project):
    path = project.path / "wscpml/methods/ml_knn.py"
    path.write_text(path.read_text() + "\nassert True\n")
    before = results(project)
    done = project.run(*SWEEP, check=False)
    assert "6 cells, 2 of them up to date" in done.stdout
    unchanged = {name for name, when in results(project).items() if before[name] == when}
    assert unchanged == {"yeast-7 pml-ni", "yeast-9 pml-ni"}


def test_vouching_renews_the_locks_of_stored_cells_and_makes_no_other(project):
    path = project.path / "wscpml/methods/base.py"
    path.write_text(path.read_text() + "\nassert True\n")
    before = lock(project)
    project.run(sys.executable, "-c", "from experiments import vouch; vouch.renew()")
    changed = json.loads(in_study(project, "status", "--json", "dvc.yaml"))
    assert changed == {"identify": ["always changed"]}
    assert lock(project) == before


@pytest.fixture
def written_lock(monkeypatch, tmp_path):
    """A lock file in a directory of its own."""
    monkeypatch.chdir(tmp_path)
    study.LOCK.parent.mkdir()
    study.LOCK.write_text("whole")


@pytest.mark.usefixtures("written_lock")
def test_a_lock_file_that_dvc_could_not_finish_is_as_before(monkeypatch):
    def cut_off(*_):
        study.LOCK.write_text("wh")
        raise KeyboardInterrupt

    monkeypatch.setattr(study, "dvc", cut_off)
    with pytest.raises(KeyboardInterrupt):
        study.change_lock("commit")
    study.mend_lock()
    assert study.LOCK.read_text() == "whole"

    monkeypatch.setattr(study, "dvc", lambda *_: study.LOCK.write_text("new"))
    study.change_lock("commit")
    study.mend_lock()
    assert study.LOCK.read_text() == "new"


@pytest.mark.usefixtures("written_lock")
def test_a_command_that_failed_leaves_no_old_lock_to_come_back_later(monkeypatch):
    def fails(*_):
        study.LOCK.write_text("wh")
        raise UserError("no room")

    monkeypatch.setattr(study, "dvc", fails)
    with pytest.raises(UserError, match="no room"):
        study.change_lock("commit")
    assert study.LOCK.read_text() == "whole"
    study.LOCK.write_text("new")
    study.mend_lock()
    assert study.LOCK.read_text() == "new"
