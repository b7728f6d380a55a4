import os
import socket
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import mlflow
import numpy as np
import pandas as pd
import pytest

from stages import track
from tests.conftest import ROOT
from wscpml import settings
from wscpml.algorithm import features
from wscpml.algorithm.network import Network
from wscpml.errors import UserError
from wscpml.quality import diff
from wscpml.serving import opening, tracking
from wscpml.serving.model import Model, save
from wscpml.serving.versions import Locked


def test_the_store_is_a_sqlite_file_in_the_project_wherever_dvc_runs(store, monkeypatch):
    monkeypatch.chdir("/")
    assert tracking.store_uri() == f"sqlite:///{store}/mlflow.db"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://example.invalid:5000")
    assert tracking.store_uri() == "http://example.invalid:5000"


def test_a_password_leaves_the_address_for_where_no_line_shows_it(store, monkeypatch):
    for name in ("MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD", "PGPASSWORD"):
        monkeypatch.setenv(name, "")  # so that what is set is undone
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://ann:se%40cret@example.invalid:5000/mlflow")
    assert tracking.store_uri() == "http://example.invalid:5000/mlflow"
    assert os.environ["MLFLOW_TRACKING_URI"] == tracking.store_uri()
    assert os.environ["MLFLOW_TRACKING_USERNAME"] == "ann"
    assert os.environ["MLFLOW_TRACKING_PASSWORD"] == "se@cret"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "postgresql+psycopg2://ann:s%2Fx@localhost/mlflow")
    assert tracking.store_uri() == "postgresql+psycopg2://ann@localhost/mlflow"
    assert os.environ["PGPASSWORD"] == "s/x"


def test_telemetry_is_off():
    from mlflow.telemetry.utils import is_telemetry_disabled

    assert os.environ["MLFLOW_DISABLE_TELEMETRY"] == "true"
    assert is_telemetry_disabled()


def test_processes_that_start_together_on_a_new_store_all_succeed(store):
    code = "from wscpml.serving import tracking; print(tracking.prepare('shared'))"
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for _ in range(3)
    ]
    done = [(process.communicate(), process.returncode) for process in started]
    assert [code for _, code in done] == [0, 0, 0], done
    assert len({out for (out, _), _ in done}) == 1
    mlflow.set_tracking_uri(tracking.store_uri())
    found = mlflow.get_experiment_by_name("shared")
    assert found.artifact_location == (store / "mlruns").as_uri()


def a_result(model: Path, **changes) -> tracking.Result:
    """A result with a model of one feature and one label."""
    one = np.ones((1, 1), np.float32)
    network = Network(one, one[0], one, one[0])
    whole = Model(features.fit_scaling(one, "none"), network, ["x"], ["y"])
    save(model, whole)
    result = tracking.Result(
        name="a run",
        params={},
        metrics={},
        courses={},
        tags={},
        files=[],
        tables={},
        texts={},
        model=model,
        example=np.zeros((1, 1)),
        dataset="none",
        digest="0",
        source="songs.csv",
        identity="0",
        sizes={"instances": 1},
    )
    return replace(result, **changes)


def test_a_server_that_cannot_be_reached_is_one_clear_line(store, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", "")
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", "")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://someone:secret@127.0.0.1:9")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    text = failure(store)
    assert text.startswith("MLFLOW_TRACKING_URI: MLflow at http://127.0.0.1")
    assert "secret" not in text


def failure(store) -> str:
    with pytest.raises(UserError) as mistake:
        tracking.log_run(a_result(store / "model"), "none")
    text = str(mistake.value)
    assert "stay cached" in text
    assert "\n" not in text
    assert len(text) < 500
    return text


def test_a_store_that_is_damaged_or_needs_a_driver_is_one_clear_line(store, monkeypatch):
    (store / "mlflow.db").write_text("this is no database, but it is long enough to be read as one")
    assert f"MLflow at sqlite:///{store}/mlflow.db failed (" in failure(store)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "mysql+nodriver://someone:secret@127.0.0.1/x")
    assert "secret" not in failure(store)


def test_a_run_that_cannot_be_logged_whole_is_not_left_half(store, tmp_path):
    whole = a_result(store / "model", metrics={"average_precision": 0.5})
    run_id = tracking.log_run(whole, "none")
    with pytest.raises(UserError, match="nothing.csv: is missing"):
        tracking.log_run(replace(whole, files=[Path("nothing.csv")]), "none")
    with pytest.raises(UserError, match="MLFLOW_TRACKING_URI"):
        tracking.log_run(replace(whole, identity="1", metrics={"not / a ? name": 1.0}), "none")
    found = mlflow.search_runs(search_all_experiments=True)
    assert found.run_id.tolist() == [run_id]


def test_a_data_set_that_another_writes_at_the_same_moment_is_logged_at_the_second_try(
    store, monkeypatch
):
    inner, tries = mlflow.log_input, []

    def log_input(*given, **options):
        tries.append(given)
        if len(tries) == 1:
            raise mlflow.exceptions.MlflowException("UNIQUE constraint failed")
        inner(*given, **options)

    monkeypatch.setattr(mlflow, "log_input", log_input)
    run_id = tracking.log_run(replace(a_result(store / "model"), model=None), "none")
    assert len(tries) == 2
    assert len(mlflow.get_run(run_id).inputs.dataset_inputs) == 1


def test_a_method_without_a_model_is_logged_without_one(store):
    run_id = tracking.log_run(replace(a_result(store / "model"), model=None), "none")
    assert not mlflow.get_run(run_id).outputs.model_outputs


def test_the_logged_model_needs_little_of_this_project(store):
    run_id = tracking.log_run(a_result(store / "model"), "none")
    (output,) = mlflow.get_run(run_id).outputs.model_outputs
    code = (
        "import sys\n"
        "for name in ('torch', 'sklearn', 'dvc', 'river', 'matplotlib', 'pooch', 'tqdm.auto'):\n"
        "    sys.modules[name] = None\n"
        "import mlflow, pandas as pd\n"
        f"model = mlflow.pyfunc.load_model('models:/{output.model_id}')\n"
        "print(model.predict(pd.DataFrame({'x': [1.0]})).y[0])\n"
    )
    env = {"MLFLOW_TRACKING_URI": tracking.store_uri(), "PATH": os.environ["PATH"]}
    done = subprocess.run(
        [sys.executable, "-I", "-c", code], env=env, cwd=store, capture_output=True, text=True
    )
    expected = 1 / (1 + np.exp(-(np.tanh(2) + 1)))
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) == pytest.approx(expected, rel=1e-6)


def test_names_that_mlflow_would_refuse_are_made_fit():
    assert track.metric_name("label.R&B (80s)/é") == "label.R_B _80s__é"


def test_the_pages_are_served_on_loopback_from_the_store_of_the_runs(store, monkeypatch, capsys):
    started, opened = [], []

    class Server:
        def __init__(self, command, start_new_session):
            started.append(command[1:])
            assert start_new_session

        def wait(self):
            return 3

    monkeypatch.setattr(subprocess, "Popen", Server)
    monkeypatch.setattr(opening, "open_later", opened.append)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    with pytest.raises(SystemExit, match="3"):
        tracking.open_pages(port)
    assert opened == [f"http://127.0.0.1:{port}/#/experiments?workflowType=machine_learning"]
    assert capsys.readouterr().out == f"The runs: {opened.pop()}\n"
    command = started.pop()
    assert command[:3] == ["-m", "mlflow", "ui"]
    assert command[3:] == ["--host", "127.0.0.1", "--port", port]
    assert os.environ.pop("MLFLOW_BACKEND_STORE_URI") == f"sqlite:///{store}/mlflow.db"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://example.invalid:5000")
    tracking.open_pages()
    assert started == []
    assert "MLFLOW_TRACKING_URI" in capsys.readouterr().out


def test_a_port_that_is_taken_is_told_and_nothing_is_started(store):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        done = subprocess.run(
            [sys.executable, "-m", "wscpml.serving.tracking", port],
            env=os.environ | {"PYTHONPATH": str(ROOT), "MAKELEVEL": "1"},
            capture_output=True,
            text=True,
        )
    assert done.returncode == 1
    assert done.stderr == (
        f"port {port}: cannot be used (Address already in use); name another: make ui PORT=5001\n"
    )


@pytest.mark.parametrize("port", ["http", "70000"])
def test_what_is_no_port_is_told_in_words_that_need_no_make(store, port, monkeypatch):
    monkeypatch.delenv("MAKELEVEL", raising=False)
    another = "name another: python -m wscpml.serving.tracking 5001"
    with pytest.raises(UserError, match=f"port {port}: cannot be used .*; {another}"):
        tracking.open_pages(port)


def test_nested_settings_become_dotted_names():
    assert track.flat({"a": {"b": 1, "c": {"d": 2}}, "e": 3}) == {"a.b": 1, "a.c.d": 2, "e": 3}


def a_lock(data="1234567890", decided="0", code="0", **settings) -> Locked:
    hashes = {"data/prepared": data, "data/decided.parquet": decided}
    return Locked(hashes, settings, hashes, {"stages.judge_labels": code, "stages.cluster": "0"})


def test_a_run_is_named_by_what_differs_from_the_last_commit_and_by_its_data():
    committed = settings.load(ROOT / "params.yaml")
    before = a_lock(**{"clustering.alpha": 10, "method": "wsc-pml", "seed": 0})

    def name(found, before=before, experiment=None, chosen=committed):
        return track.run_name(chosen, False, found, before, experiment)

    same = "wsc-pml yeast-9 @1234567"
    assert name(before, None) == name(before) == same
    assert name(a_lock(**{"clustering.alpha": 1})) == f"clustering.alpha=1 | {same}"
    assert name(a_lock(decided="1")) == f"new decisions | {same}"
    assert name(a_lock(code="1")) == f"new code of judge_labels | {same}"
    assert name(a_lock("7654321", seed=1), experiment="gauge-here") == (
        "seed=1, new data | wsc-pml yeast-9 @7654321 (gauge-here)"
    )
    other = committed.model_copy(update={"method": "pml-ni"})
    assert name(a_lock(method="pml-ni"), chosen=other) == "pml-ni yeast-9 @1234567"
    elsewhere = {"dataset.features": "songs.csv", "dataset.id": "song", "seed": 1}
    before = a_lock(**{"dataset.features": None, "dataset.id": None, "seed": 0})
    assert name(a_lock("7654321", **elsewhere), before) == "seed=1 | wsc-pml yeast-9 @7654321"
    many = {f"k{i}": 0 for i in range(5)}
    found = name(a_lock(**dict.fromkeys(many, 1)), a_lock(**many))
    assert found == f"k0=1, k1=1, k2=1, 2 more | {same}"


def test_metrics_of_labels_that_mlflow_takes_for_one_keep_their_names_apart():
    found = track.named("rate", ["R&B", "R/B"], [0.1, 0.2])
    assert found == {"rate.R_B": 0.1, "rate.R_B_": 0.2}


def test_columns_and_labels_of_any_name_and_length_are_logged_each_by_a_name_of_its_own(store):
    columns = ["Year (released)", "Year [released]", "x" * 300 + "1", "x" * 300 + "2", "年/月"]
    params = track.fit({f"dataset.columns.{name}": name for name in columns})
    metrics = track.named("rate", columns, [0.1, 0.2, 0.3, 0.4, 0.5])
    made = replace(a_result(store / "model"), model=None, params=params, metrics=metrics)
    found = mlflow.get_run(tracking.log_run(made, "none")).data
    assert sorted(found.params.values()) == sorted(columns)
    assert sorted(found.metrics.values()) == [0.1, 0.2, 0.3, 0.4, 0.5]
    assert found.params["dataset.columns.Year _released_"] == columns[0]


def test_a_run_that_the_environment_names_is_left_alone(store, monkeypatch):
    made = replace(a_result(store / "model"), model=None)
    first = tracking.log_run(made, "none")
    before = mlflow.get_run(first)
    for identity, metrics in (("1", {"m": 1.0}), ("2", {"not / a ? name": 1.0})):
        monkeypatch.setenv("MLFLOW_RUN_ID", first)
        with suppress(UserError):
            ours = tracking.log_run(replace(made, identity=identity, metrics=metrics), "none")
            assert ours != first
        assert mlflow.get_run(first).to_dictionary() == before.to_dictionary()


def test_the_table_for_the_pages_begins_with_what_flipped_and_is_bounded(monkeypatch):
    table = pd.DataFrame(
        {"instance": list("abcd"), "label": "rock", "label_confidence": [0.1, 0.9, 0.6, 0.3]}
    )
    old = diff.candidates(table.assign(label_confidence=[0.1, 0.2, 0.6, 0.3]), "old")
    ours = diff.candidates(table, "new")
    difference = diff.compare(diff.Version("old", old), diff.Version("new", ours))
    found = track.shown(ours, difference)
    assert found.instance.tolist() == ["b", "a", "d", "c"]
    assert found.change.tolist() == ["kept", "", "", ""]
    assert found.decision.tolist() == ["keep", "drop", "drop", "keep"]
    monkeypatch.setattr(track, "MOST_ROWS", 2)
    assert track.shown(ours, None).instance.tolist() == ["a", "d"]


def test_the_newest_run_with_a_tag_is_found_and_so_is_the_page_of_runs(store):
    assert tracking.logged("none", "dvc.data/x", "1") is None
    made = replace(a_result(store / "model", tags={"dvc.data/x": "1"}), model=None)
    run_id = tracking.log_run(made, "none")
    assert tracking.logged("none", "dvc.data/x", "1") == run_id
    assert tracking.logged("none", "dvc.data/x", "2") is None
    place = mlflow.get_run(run_id).info.experiment_id
    assert tracking._page_of_runs() == f"/experiments/{place}/runs?workflowType=machine_learning"


def test_a_model_may_be_registered_by_a_name_with_quotes(store):
    for _ in range(2):
        run_id = tracking.log_run(a_result(store / "model"), "none", register_as='Ann\'s "5"')
        (found,) = mlflow.MlflowClient().search_model_versions(f"run_id = '{run_id}'")
        assert (found.name, str(found.version)) == ('Ann\'s "5"', "1")


def test_a_server_s_fault_before_a_model_is_registered_is_told(store, monkeypatch):
    def fails(*_: object, **__: object) -> None:
        raise mlflow.exceptions.MlflowException("the server has a fault")

    monkeypatch.setattr(mlflow.MlflowClient, "search_model_versions", fails)
    with pytest.raises(UserError, match="the server has a fault"):
        tracking.log_run(a_result(store / "model"), "none", register_as="songs")


def test_a_model_is_registered_if_it_is_to_be(store):
    result = a_result(store / "model")
    first = tracking.log_run(result, "none")
    assert not mlflow.MlflowClient().search_registered_models()
    for version, made in (("1", result), ("1", result), ("2", replace(result, identity="1"))):
        run_id = tracking.log_run(made, "none", register_as="songs")
        assert (run_id == first) == (version == "1")
        found = mlflow.MlflowClient().search_model_versions("name = 'songs'")[0]
        assert (str(found.version), found.run_id) == (version, run_id)
    assert mlflow.pyfunc.load_model("models:/songs/2").predict(pd.DataFrame({"x": [1.0]})).size == 2
