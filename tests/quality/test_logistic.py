"""Logistic regression on many rows: what it learns, for whom halves speak, and when it counts."""

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from tests.contract import small
from wscpml.algorithm import composition, features, network
from wscpml.arrays import Rows
from wscpml.blocks import Engine
from wscpml.parameters import FeatureSettings
from wscpml.quality import judging, logistic


@pytest.fixture(scope="module")
def linear():
    """Features of unlike scales, one of which is constant, and labels that follow them."""
    rng = np.random.default_rng(0)
    X = np.c_[rng.normal(size=(600, 3)) * (1, 10, 0.1) + (0, 5, 1), np.full(600, 7.0)]
    logits = (X - X.mean(axis=0)) @ np.array([[1, -2], [0.2, 0], [0, 10], [3, 3]]) - (0, 2)
    return X, (rng.random(logits.shape) < expit(logits)).astype(float)


def test_each_half_learns_what_scikit_learn_does(linear):
    X, Y = linear
    rows = np.arange(len(X))
    found = logistic.learn(X, rows, sparse.csr_array(Y), Engine())
    standard, half = found.taken(X), logistic.half_of(rows)
    assert 0.4 < half.mean() < 0.6
    for which in (0, 1):
        for label in (0, 1):
            theirs = LogisticRegression(tol=1e-8, max_iter=1000)
            theirs.fit(standard[half == which], Y[half == which, label])
            wanted = theirs.predict_proba(standard)[half != which, 1]
            ours = found(X, rows)[half != which, label]
            np.testing.assert_allclose(ours, wanted, atol=5e-3)


def test_what_a_row_is_given_does_not_change_what_is_said_of_it(linear):
    X, Y = linear
    rows, changed = np.arange(len(X)), Y.copy()
    changed[5] = 1 - Y[5]
    first, second = (logistic.learn(X, rows, each, Engine())(X, rows) for each in (Y, changed))
    np.testing.assert_array_equal(first[5], second[5])
    other_half = logistic.half_of(rows) != logistic.half_of(rows[5:6])
    assert (first[other_half] != second[other_half]).all()


def test_other_targets_are_learned_from_there_on(linear):
    X, Y = linear
    some = np.arange(0, len(X), 2)
    before = logistic.learn(X, np.arange(len(X)), Y, Engine())
    doubt = 0.8 * Y[some]
    after = logistic.learn_on(before, X, some, doubt, Engine())
    said = after(X[some], some)
    assert abs(said.mean() - doubt.mean()) < 0.02
    assert abs(said - doubt).mean() < abs(before(X[some], some) - doubt).mean()


def test_any_number_of_threads_and_rows_on_disk_give_the_same_bytes(linear, monkeypatch):
    monkeypatch.setattr(logistic, "ROWS_AT_ONCE", 50)  # so that a half is several blocks
    X, Y = linear
    rows, there = np.arange(len(X)), Rows(np.repeat(X, 2, axis=0), np.arange(0, 2 * len(X), 2))
    one, many, on_disk = (
        logistic.learn(features, rows, Y, Engine(memory=size)).weights
        for features, size in ((X, 10_000), (X, 10**9), (there, 10**9))
    )
    assert one.tobytes() == many.tobytes() == on_disk.tobytes()


def test_sparse_rows_are_learned_like_dense_ones(linear):
    X, Y = linear
    rows, positive = np.arange(len(X)), (X - np.median(X, axis=0) > 0).astype(float)
    dense, thin = (
        logistic.learn(each, rows, Y, Engine()) for each in (positive, sparse.csr_array(positive))
    )
    assert not thin.centre.any()
    np.testing.assert_allclose(thin(positive, rows), dense(positive, rows), atol=0.01)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_a_column_that_only_rounding_changes_is_left_out(linear, monkeypatch, form):
    monkeypatch.setattr(logistic, "MOST_MEASURED", 300)
    X, Y = linear
    rows, odd = np.arange(len(X)), np.full((len(X), 1), 0.1)
    odd[1] = 0.7  # which is not among the rows that columns are measured by
    with_odd = form(np.hstack([X, odd]))
    found = logistic.learn(with_odd, rows, Y, Engine())
    assert found.gain[-1] == 0
    assert abs(found(with_odd, rows) - Y).mean() < 0.9 * abs(Y.mean(axis=0) - Y).mean()


def test_rows_of_many_features_are_fewer_and_a_block_needs_no_more_than_its_values(monkeypatch):
    assert len(logistic.many_rows(np.zeros((1000, 3)))) == 1000
    monkeypatch.setattr(logistic, "MOST_VALUES", 1500)
    assert len(logistic.many_rows(np.zeros((1000, 3)))) == 500
    thin = sparse.csr_array(
        (np.ones(1000), (np.arange(1000), np.arange(1000) * 30)), (1000, 30_000)
    )
    assert len(logistic.many_rows(thin)) == 1000
    Y = np.arange(2000).reshape(1000, 2) % 3 == 0
    logistic.learn(thin, np.arange(1000), Y.astype(float), Engine(memory=10_000_000))


def test_it_counts_as_far_as_it_helps(monkeypatch):
    monkeypatch.setattr(judging, "TREES", 30)
    monkeypatch.setattr(network, "START_ROWS", 300)
    for name in ("FEWEST_ANCHORS", "MOST_ANCHORS"):
        monkeypatch.setattr(features, name, 100)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 10))

    def told(scores, reached=True):
        truth = scores > np.quantile(scores, 0.8, axis=0)
        candidates = (truth | (rng.random(truth.shape) < 0.2)).astype(np.uint8)
        rows = composition.represent(X, FeatureSettings(), np.random.default_rng(0))
        live = np.arange(truth.shape[1])
        many = judging._of_many_rows(rows, candidates, live) if reached else None
        known = candidates[rows.of_axes].astype(float)
        return judging.predict_unseen(rows, known, known, seed=0, many=many).predictor

    straight = X @ rng.normal(size=(10, 6))
    around = np.stack([-((X[:, :3] - c) ** 2).sum(axis=1) for c in rng.normal(size=(6, 3))], 1)
    alone, hardly = told(straight), told(abs(straight) + around)
    assert alone.share == 1
    assert alone.sampled is None
    assert hardly.share < 0.9
    assert hardly.sampled is not None
    without = told(straight, reached=False)
    assert without.logistic is None
    assert without.sampled is not None


def test_more_rows_than_the_sample_tell_true_from_false_better(monkeypatch):
    monkeypatch.setattr(judging, "TREES", 30)
    monkeypatch.setattr(network, "START_ROWS", 120)
    X, truth, candidates = small(n=1200)
    found = {}
    for most in (0, logistic.MOST_WEIGHTS):
        monkeypatch.setattr(logistic, "MOST_WEIGHTS", most)
        rows = composition.represent(X, FeatureSettings(), np.random.default_rng(0))
        confidence = judging.judge(rows, candidates, np.random.default_rng(0)).label_confidence
        given = candidates == 1
        found[most] = judging.identification(truth[given], confidence[given])["auc"]
    assert found[logistic.MOST_WEIGHTS] > found[0]
