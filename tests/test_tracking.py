import os
import subprocess
import sys
from pathlib import Path

import mlflow
import numpy as np
import pandas as pd
import pytest

from stages import track
from tests.conftest import ROOT
from wscpml import settings, tracking
from wscpml.errors import UserError


@pytest.fixture
def store(tmp_path, monkeypatch):
    """A new project without a store."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setenv("DVC_ROOT", str(tmp_path))
    return tmp_path


def test_the_store_is_a_sqlite_file_in_the_project_wherever_dvc_runs(store, monkeypatch):
    monkeypatch.chdir("/")
    assert tracking.store_uri() == f"sqlite:///{store}/mlflow.db"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://example.invalid:5000")
    assert tracking.store_uri() == "http://example.invalid:5000"


def test_telemetry_is_off():
    from mlflow.telemetry.utils import is_telemetry_disabled

    assert os.environ["MLFLOW_DISABLE_TELEMETRY"] == "true"
    assert is_telemetry_disabled()


def test_processes_that_start_together_on_a_new_store_all_succeed(store):
    code = (
        "from wscpml import tracking as t; t.mlflow.set_tracking_uri(t.store_uri());"
        "print(t._experiment_id('shared'))"
    )
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


def a_result() -> tracking.Result:
    return tracking.Result(
        name="a run",
        params={},
        metrics={},
        courses={},
        tags={},
        files=[],
        model=Path("nowhere"),
        features=np.zeros((1, 1)),
        targets=np.zeros((1, 1)),
        dataset="none",
        digest="0",
    )


def test_a_server_that_cannot_be_reached_is_one_clear_line(store, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://someone:secret@127.0.0.1:9")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with pytest.raises(UserError) as mistake:
        tracking.log_run(a_result(), "none")
    text = str(mistake.value)
    assert text.startswith("MLFLOW_TRACKING_URI: MLflow at http://127.0.0.1")
    assert "stay cached" in text
    assert "\n" not in text
    assert "secret" not in text


def test_the_pages_are_served_on_loopback_from_the_store_of_the_runs(store, monkeypatch, capsys):
    started = []
    monkeypatch.setattr(os, "execvp", lambda _, command: started.append(command))
    tracking.open_pages(5001)
    command = " ".join(started.pop())
    assert (
        command
        == f"mlflow ui --backend-store-uri sqlite:///{store}/mlflow.db --host 127.0.0.1 --port 5001"
    )
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://example.invalid:5000")
    tracking.open_pages()
    assert started == []
    assert "http://example.invalid:5000" in capsys.readouterr().out


def test_nested_settings_become_dotted_names():
    assert track.flat({"a": {"b": 1, "c": {"d": 2}}, "e": 3}) == {"a.b": 1, "a.c.d": 2, "e": 3}


def test_a_run_is_named_by_what_tells_it_apart():
    committed = settings.load(ROOT / "params.yaml")
    assert track.run_name(committed, None) == "yeast-9 alpha=1 beta=1"
    assert track.run_name(committed, "gauge-here") == "yeast-9 alpha=1 beta=1 (gauge-here)"


def test_the_served_model_wants_the_features_by_name():
    class Sum:
        feature_names, label_names = ["a", "b"], ["total"]

        def predict_proba(self, X):
            return X.sum(axis=1, keepdims=True)

    table = pd.DataFrame({"b": [1.0], "extra": [9.0], "a": [2.0]}, index=["x"])
    found = tracking._probabilities(Sum(), table)
    assert found.to_dict() == {"total": {"x": 3.0}}
