import numpy as np
import pytest
from hypothesis import given
from scipy import sparse

from tests.strategies import problems
from wscpml.algorithm import prototypes


def literal_centroid(X, labels, j):
    """Eqs. 1-2 (or 3, with the labels turned round), read off the page."""
    total, weight = 0.0, 0.0
    for x, y in zip(X, labels, strict=True):
        if y.sum():
            total, weight = total + y[j] / y.sum() * x, weight + y[j] / y.sum()
    return total / weight if weight else np.full(X.shape[1], np.nan)


@given(problems())
def test_prototypes_are_the_weighted_means_of_the_equations(problem):
    X, Y = problem.X, problem.candidates.astype(int)
    positive, negative = prototypes.learn(X, problem.candidates)
    for j in range(Y.shape[1]):
        np.testing.assert_allclose(positive[j], literal_centroid(X, Y, j), atol=1e-9)
        np.testing.assert_allclose(negative[j], literal_centroid(X, 1 - Y, j), atol=1e-9)


def test_a_row_without_candidates_has_no_weight():
    labels = np.array([[0, 0], [1, 1]], dtype=np.uint8)
    np.testing.assert_array_equal(prototypes.memberships(labels), [[0, 0], [0.5, 0.5]])


def test_a_label_in_no_row_has_no_positive_and_one_in_every_row_no_negative_prototype():
    labels = np.array([[0, 1], [0, 1]], dtype=np.uint8)
    positive, negative = prototypes.learn(np.eye(2), labels)
    np.testing.assert_array_equal(np.isnan(positive).any(axis=1), [True, False])
    np.testing.assert_array_equal(np.isnan(negative).any(axis=1), [False, True])


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_centroids_are_weighted_means(kind, monkeypatch):
    monkeypatch.setattr(prototypes, "ROWS_AT_ONCE", 4)
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(10, 3)), rng.random((10, 3))
    weights[:, 2] = 0
    found = prototypes.centroids(kind(X), weights)
    for j in range(2):
        np.testing.assert_allclose(found[j], np.average(X, axis=0, weights=weights[:, j]))
    assert np.isnan(found[2]).all()
