"""The model as it is served, on loopback: the same numbers as everywhere else."""

import json
from pathlib import Path

import mlflow
import numpy as np
import pandas as pd
import pytest
import requests

from tests import load
from tests.serving.server import FEATURES, LABELS, log, make, serving
from wscpml import artifacts
from wscpml.cli import main


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return tmp_path_factory.mktemp("served")


@pytest.fixture(scope="module")
def fitted(directory):
    """An estimator, and its model in a directory."""
    return make(directory)


@pytest.fixture(scope="module")
def logged(directory, fitted):
    """The address of the model in MLflow, as the pipeline logs it."""
    return log(directory)


@pytest.fixture(scope="module")
def server(directory, logged):
    """The address of a server of the model, and its process."""
    with serving(directory, *logged) as server:
        yield server


@pytest.fixture(scope="module")
def ask(server):
    """A function that sends a request with a table and gives the answer."""
    address, _ = server
    return lambda table: requests.post(
        f"{address}/invocations",
        data=json.dumps({"dataframe_split": json.loads(table.to_json(orient="split"))}),
        headers={"Content-Type": "application/json"},
        timeout=30,
    )


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
    assert empty.json() == {"message": line}
    assert "Traceback" not in empty.text

    text = ask(rows.assign(**{"feature 5": "fast"}))
    assert text.status_code == 400
    assert "feature 5" in text.json()["message"]


def test_many_clients_are_answered_and_every_mistake_is_4xx_with_a_reason(server):
    report = load.run(*server, clients=20, seconds=2)
    assert report.good > 20
    assert not report.failed
    assert report.bad.keys() == load.BAD.keys()
    assert report.grown < load.MOST_GROWN


def test_nothing_answers_but_predictions_and_health(server):
    address, _ = server
    for path in ("/", "/docs", "/redoc", "/openapi.json", "/docs/oauth2-redirect"):
        assert requests.get(address + path, timeout=30).status_code == 404, path
    for path in ("/ping", "/health", "/version"):
        assert requests.get(address + path, timeout=30).status_code == 200, path
    assert requests.get(f"{address}/invocations", timeout=30).status_code == 405
