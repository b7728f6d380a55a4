"""Very many labels through the stages: sparse from the file to the last output."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from stages import inputs
from tests.stages.test_stages import STAGES, change, run_all
from wscpml import artifacts, settings
from wscpml.algorithm import network, ridge
from wscpml.datasets import dataset
from wscpml.quality import judging

ITEMS, LABELS = 200, 30
RESULT = "data/pseudo_labels.parquet"


@pytest.fixture
def items(tiny_project, monkeypatch):
    """Items with two tags of thirty each, and what a person has decided of three pairs."""
    monkeypatch.setattr(judging, "TREES", 20)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ITEMS, 4))
    scores = X @ rng.normal(size=(4, LABELS))
    best, other = scores.argmax(axis=1), rng.integers(0, LABELS, ITEMS)
    table = pd.DataFrame(X, columns=list("abcd"))
    table["tags"] = [f"tag {i:02};tag {j:02}" for i, j in zip(best, other, strict=True)]
    Path("data/own").mkdir(parents=True)
    table.to_parquet("data/own/items.parquet")
    own = {"name": None, "features": "data/own/items.parquet", "tags": "tags", "separator": ";"}
    change("dataset", own)
    names = sorted({tag for tags in table.tags for tag in tags.split(";")})
    added = next(name for name in names if name not in table.tags[2])
    said = [
        (0, table.tags[0].split(";")[0], "false"),
        (1, table.tags[1].split(";")[0], "true"),
        (2, added, "true"),
    ]
    Path("data/decisions").mkdir(parents=True, exist_ok=True)
    decisions = pd.DataFrame(said, columns=["instance", "label", "decision"])
    decisions.to_csv("data/decisions/said.csv", index=False)
    change("review", {"decisions": "data/decisions/said.csv"})


@pytest.mark.parametrize("kind", ["network", "kernel_ridge"])
def test_sparse_labels_give_what_dense_ones_do(items, monkeypatch, kind):
    change("classifier", {"kind": kind, "max_epochs": 2})
    run_all()
    assert not sparse.issparse(inputs.candidates("train"))
    dense, measured = artifacts.read(RESULT), artifacts.read("metrics/evaluation.json")
    monkeypatch.setattr(dataset, "LARGE", 100)
    run_all()
    assert sparse.issparse(inputs.candidates("train"))
    assert (
        artifacts.read_matrix("data/prepared", "candidates").nnz == inputs.candidates("train").sum()
    )
    found = artifacts.read(RESULT)
    assert (found.decided != "").sum() == 3
    pd.testing.assert_frame_equal(found, dense, rtol=1e-3, atol=1e-5)
    again = artifacts.read("metrics/evaluation.json")
    assert again["decisions"] == measured["decisions"]
    assert again["labels"] == pytest.approx(measured["labels"], rel=1e-3)


def test_another_method_takes_sparse_labels(items, monkeypatch):
    Path("params.yaml").write_text(Path("params.yaml").read_text().replace("wsc-pml", "br", 1))
    monkeypatch.setattr(dataset, "LARGE", 100)
    run_all()
    assert sparse.issparse(inputs.candidates("train"))
    found = artifacts.read(RESULT)
    assert found.F.notna().all()
    assert (found.decided != "").sum() == 3


def test_truth_beside_sparse_labels_measures_as_beside_dense_ones(items, monkeypatch):
    table = pd.read_parquet("data/own/items.parquet")
    table["id"] = [f"item {i}" for i in range(ITEMS)]
    table.drop(columns="tags").to_parquet("data/own/items.parquet")
    rows = [(item, tag) for item, tags in zip(table.id, table.tags, strict=True)
            for tag in dict.fromkeys(tags.split(";"))]  # fmt: skip
    columns = ["id", "label"]
    pd.DataFrame(rows, columns=columns).to_csv("data/own/tags.csv", index=False)
    true = [(item, tags.split(";")[0]) for item, tags in zip(table.id, table.tags, strict=True)]
    pd.DataFrame(true, columns=columns).to_csv("data/own/truth.csv", index=False)
    own = {"candidates": "data/own/tags.csv", "truth": "data/own/truth.csv", "id": "id"}
    change("dataset", own | {"tags": None, "separator": None})
    change("review", {"decisions": None})
    change("classifier", {"kind": "kernel_ridge"})
    run_all()
    dense = artifacts.read("metrics/evaluation.json"), artifacts.read("metrics/noise.json")
    monkeypatch.setattr(dataset, "LARGE", 100)
    run_all()
    assert sparse.issparse(inputs.truth("train"))
    found = artifacts.read("metrics/evaluation.json"), artifacts.read("metrics/noise.json")
    assert found[1] == dense[1]
    for name in ("average_precision", "hamming_loss"):
        assert found[0][name] == pytest.approx(dense[0][name], abs=1e-3)
    assert found[0]["noise_auc"] == pytest.approx(dense[0]["noise_auc"], abs=1e-3)


@pytest.mark.parametrize("kind", ["network", "kernel_ridge"])
def test_labels_that_may_be_missing_are_a_few_of_each_row(items, monkeypatch, kind):
    change("classifier", {"kind": kind, "max_epochs": 2})
    change("dataset", {"complete": False})
    run_all()
    dense = artifacts.read_matrix("models/wsc-pml", "missing")
    before = artifacts.read("metrics/evaluation.json")["labels"]
    monkeypatch.setattr(dataset, "LARGE", 100)
    run_all()
    found = artifacts.read_matrix("models/wsc-pml", "missing")
    assert sparse.issparse(found)
    assert ITEMS < found.nnz <= judging.MOST_MISSING * ITEMS
    kept = found.toarray() > 0
    assert kept[np.arange(ITEMS), dense.argmax(axis=1)].mean() > 0.9
    np.testing.assert_allclose(found.toarray()[kept], dense[kept], atol=0.05)
    assert artifacts.read("metrics/evaluation.json")["labels"] == pytest.approx(before, rel=0.1)


def test_kernel_ridge_of_very_many_rows_learns_all_of_them(items, monkeypatch):
    change("classifier", {"kind": "kernel_ridge"})
    monkeypatch.setattr(dataset, "LARGE", 100)
    monkeypatch.setattr(ridge, "PENALTIES", np.array([0.3]))  # fewer rows would choose another
    run_all()
    whole = artifacts.read(RESULT)
    monkeypatch.setattr(network, "START_ROWS", 70)
    for stage in ("train_classifier", "apply_method"):
        STAGES[stage](settings.load())
    np.testing.assert_allclose(artifacts.read(RESULT).leave_one_out, whole.leave_one_out, atol=1e-3)
