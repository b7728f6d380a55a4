import numpy as np
import pytest

from wscpml import classifier
from wscpml.errors import UserError

SETTINGS = {
    "width": 3,
    "learning_rate": 0.01,
    "weight_decay": 0.01,
    "batch_size": 32,
    "max_epochs": 60,
    "patience": 10,
    "validation_share": 0.2,
}


def problem(n=200, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    truth = np.column_stack([X[:, 0] > 0, X[:, 1] * X[:, 2] > 0, X[:, 3] > 0]).astype(np.uint8)
    return X, truth


def fit(X, candidates, pseudo_labels, seed=0, **changes):
    rng = np.random.default_rng(seed)
    return classifier.fit(X, candidates, pseudo_labels, **{**SETTINGS, **changes}, rng=rng)


def test_it_learns_labels_that_no_line_separates():
    X, truth = problem(800)
    network, _ = fit(X[:600], truth[:600], truth[:600], width=8, max_epochs=200, patience=50)
    right = (network.predict_proba(X[600:]) > 0.5) == truth[600:]
    assert right.mean(axis=0).min() > 0.85


def test_the_network_is_the_one_of_eq_11():
    rng = np.random.default_rng(0)
    d, q, width = 4, 3, 2
    w, b = rng.normal(size=(d, q * width)), rng.normal(size=q * width)
    v, c = rng.normal(size=(q, width)), rng.normal(size=q)
    network = classifier.Network(*(a.astype(np.float32) for a in (w, b, v, c)))
    X = rng.normal(size=(5, d))
    for k in range(q):
        columns = slice(k * width, (k + 1) * width)
        logit = np.tanh(X @ w[:, columns] + b[columns]) @ v[k] + c[k]
        expected = 1 / (1 + np.exp(-logit))
        np.testing.assert_allclose(network.predict_proba(X)[:, k], expected, rtol=1e-5)


def test_the_recorded_loss_is_the_hybrid_loss():
    X, Y = problem(50)
    F = Y * np.random.default_rng(1).random(Y.shape)
    network, course = fit(X, Y, F, max_epochs=1, learning_rate=1e-12)
    validation = np.random.default_rng(0)
    validation.standard_normal((4, 9), dtype=np.float32)  # the weights are drawn first
    validation.standard_normal((3, 3), dtype=np.float32)
    rows = validation.permutation(50)[:10]
    p = network.predict_proba(X[rows]).astype(float)
    hybrid = F[rows] * np.log(p) + (1 - Y[rows]) * np.log(1 - p)
    assert course.validation_loss.item() == pytest.approx(-hybrid.sum(axis=1).mean(), rel=1e-5)


def test_a_pseudo_label_of_zero_takes_a_candidate_out_of_the_loss():
    X, Y = problem(100)
    Y[:, 0] = 1
    F = Y.astype(float)
    F[:, 0] = 0
    network, _ = fit(X, Y, F)
    untouched, _ = fit(X, Y, F, max_epochs=1, learning_rate=1e-12, weight_decay=0)
    np.testing.assert_allclose(network.output_bias[0], untouched.output_bias[0], atol=1e-7)
    assert abs(network.output_bias[2] - untouched.output_bias[2]) > 1e-3


def test_rows_without_candidates_are_pure_negatives():
    X, _ = problem(100)
    nothing = np.zeros((100, 3), np.uint8)
    network, _ = fit(X, nothing, nothing, max_epochs=200, patience=200)
    assert network.predict_proba(X).max() < 0.1


def test_training_stops_early_and_keeps_the_best_network():
    X, _ = problem(60)
    noise = (np.random.default_rng(3).random((60, 3)) < 0.5).astype(np.uint8)
    network, course = fit(X, noise, noise, max_epochs=500, patience=7, weight_decay=0)
    assert len(course) < 500
    assert course.validation_loss.idxmin() == len(course) - 1 - 7
    longer, _ = fit(X, noise, noise, max_epochs=len(course), patience=500, weight_decay=0)
    np.testing.assert_array_equal(network.output_bias, longer.output_bias)


def test_weight_decay_shrinks_the_weights():
    X, truth = problem()
    free, _ = fit(X, truth, truth, weight_decay=0, patience=60)
    held, _ = fit(X, truth, truth, weight_decay=5, patience=60)
    assert np.linalg.norm(held.hidden_weight) < 0.5 * np.linalg.norm(free.hidden_weight)


def test_the_same_seed_gives_the_same_network():
    X, truth = problem()
    (one, course), (two, _), (other, _) = (fit(X, truth, truth, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.hidden_weight, two.hidden_weight)
    assert (one.hidden_weight != other.hidden_weight).any()
    assert list(course.columns) == ["step", "training_loss", "validation_loss"]


def test_a_single_training_row_is_refused():
    X, truth = problem(1)
    with pytest.raises(UserError, match="at least 2 training rows, got 1"):
        fit(X, truth, truth)


def test_a_loss_that_is_not_finite_is_the_learning_rates_fault():
    X, truth = problem()
    with pytest.raises(UserError, match="classifier.learning_rate: 1e\\+36 .* smaller"):
        fit(X, truth, truth, learning_rate=1e36)
