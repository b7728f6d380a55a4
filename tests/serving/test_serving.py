"""The model as MLflow serves it, on loopback: the same numbers as everywhere else."""

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import mlflow
import numpy as np
import pandas as pd
import pytest
import requests

from tests.contract import small
from wscpml import WSCPML, artifacts
from wscpml.cli import main
from wscpml.quality import judging
from wscpml.serving import tracking
from wscpml.serving.model import Model, save

LABELS = ["rock", "<b>R&B</b>", "NA", "labels"]
FEATURES = [f"feature {j}" for j in range(8)]
SECONDS_TO_START = 120


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return tmp_path_factory.mktemp("served")


@pytest.fixture(scope="module")
def fitted(directory):
    """An estimator, and its model in a directory."""
    X, _, candidates = small(n=60)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judging, "TREES", 50)
        fitted = WSCPML(kind="kernel_ridge", random_state=0).fit(X, candidates)
    model = Model(fitted.map_, fitted.head_, FEATURES, LABELS)
    save(directory / "model", model)
    return fitted


@pytest.fixture(scope="module")
def logged(directory, fitted):
    """The address of the model in MLflow, as the pipeline logs it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        patch.setenv("DVC_ROOT", str(directory))
        result = tracking.Result(
            name="served",
            params={},
            metrics={},
            tags={},
            courses={},
            files=[],
            tables={},
            texts={},
            model=directory / "model",
            example=np.zeros((2, 8)),
            dataset="none",
            digest="0",
            identity="0",
            source="songs.csv",
            sizes={},
        )
        run_id = tracking.log_run(result, "served")
        (output,) = mlflow.get_run(run_id).outputs.model_outputs
        return tracking.store_uri(), f"models:/{output.model_id}"


@pytest.fixture(scope="module")
def ask(directory, logged):
    """A function that sends a request to `mlflow models serve` and gives the answer."""
    store, model = logged
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = ["-m", "mlflow", "models", "serve", "--model-uri", model, "--host", "127.0.0.1"]
    log = (directory / "server.log").open("w")
    server = subprocess.Popen(
        [sys.executable, *command, "--port", str(port), "--env-manager", "local"],
        cwd=directory,
        env=os.environ | {"MLFLOW_TRACKING_URI": store, "MLFLOW_DISABLE_TELEMETRY": "true"},
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(SECONDS_TO_START):
            try:
                requests.get(f"{address}/ping", timeout=5)
                break
            except requests.ConnectionError:
                assert server.poll() is None, (directory / "server.log").read_text()
                time.sleep(1)
        yield lambda table: requests.post(
            f"{address}/invocations",
            data=json.dumps({"dataframe_split": json.loads(table.to_json(orient="split"))}),
            headers={"Content-Type": "application/json"},
            timeout=30,
        )
    finally:
        os.killpg(server.pid, 15)
        server.wait(30)
        log.close()


@pytest.fixture
def rows():
    """New rows, their columns in another order and with one too many."""
    table = pd.DataFrame(np.random.default_rng(1).normal(size=(30, 8)), columns=FEATURES)
    return table[FEATURES[::-1]].assign(extra=7)


def test_a_request_and_the_command_give_the_numbers_of_predict_proba(
    ask, fitted, logged, rows, directory, monkeypatch
):
    expected = fitted.predict_proba(rows[FEATURES].to_numpy())
    chosen = [[LABELS[j] for j in np.flatnonzero(row)] for row in expected >= 0.5]
    assert 0 < sum(map(len, chosen)) < expected.size

    answer = ask(rows)
    assert answer.status_code == 200, answer.text
    served = pd.DataFrame(answer.json()["predictions"])
    assert served.columns.tolist() == [*LABELS, "labels_"]
    np.testing.assert_allclose(served[LABELS], expected, rtol=1e-6)
    assert served.labels_.tolist() == chosen
    whole = rows.round()
    assert ask(whole.astype(int)).json() == ask(whole).json()

    monkeypatch.chdir(directory)
    artifacts.write("rows.parquet", rows)
    main(["predict", "model", "rows.parquet", "-o", "out.parquet"])
    written = artifacts.read(Path("out.parquet"))
    np.testing.assert_allclose(written[LABELS], served[LABELS], rtol=1e-6)
    assert written.labels_.tolist() == [";".join(each) for each in chosen]


def test_the_signature_is_what_goes_in_and_out(logged, rows):
    store, address = logged
    mlflow.set_tracking_uri(store)
    model = mlflow.pyfunc.load_model(address)
    predicted = model.predict(rows)
    assert model.metadata.signature.inputs.input_names() == FEATURES
    assert model.metadata.signature.outputs.input_names() == predicted.columns.tolist()
    assert len(model.input_example) == 2


def test_a_request_that_cannot_be_answered_is_400_and_says_why(ask, rows):
    lacking = ask(rows.drop(columns="feature 3"))
    assert lacking.status_code == 400
    assert "Model is missing inputs ['feature 3']" in lacking.json()["message"]
    assert "Traceback" not in lacking.text

    rows.loc[4, "feature 5"] = np.nan
    empty = ask(rows)
    assert empty.status_code == 400
    line = "the request: row 5, column 'feature 5': is empty; mend that value"
    assert empty.json()["message"].endswith(f"Error: {line}")
    assert "Traceback" not in empty.text

    text = ask(rows.assign(**{"feature 5": "fast"}))
    assert text.status_code == 400
    assert "feature 5" in text.json()["message"]
