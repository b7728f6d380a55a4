import numpy as np
import pytest
from scipy import sparse

from wscpml.arrays import to_unit_interval
from wscpml.methods.linear import TopScores, rotate, with_ones


@pytest.mark.parametrize("shape", [(30, 5), (5, 30), (8, 8), (1, 3), (3, 1)])
@pytest.mark.parametrize("kind", ["dense", "sparse", "low rank", "zero"])
def test_the_features_are_rotated_so_that_their_columns_are_orthogonal(shape, kind):
    X = np.random.default_rng(0).normal(size=shape)
    if kind == "sparse":
        X[np.abs(X) < 1] = 0
    elif kind == "low rank":
        X[:, 1:] = X[:, :1]
    elif kind == "zero":
        X[:] = 0
    Z, strengths, Q = rotate(sparse.csr_array(X) if kind == "sparse" else X)
    assert len(strengths) == np.linalg.matrix_rank(X)
    np.testing.assert_allclose(Z @ Q.T, X, atol=1e-12)
    np.testing.assert_allclose(Z.T @ Z, np.diag(strengths), atol=1e-12)
    np.testing.assert_allclose(Q.T @ Q, np.eye(len(strengths)), atol=1e-12)


def test_a_column_of_ones_comes_last_and_sparse_features_stay_sparse():
    X = np.array([[0.0, 2.0], [3.0, 0.0]])
    expected = [[0, 2, 1], [3, 0, 1]]
    np.testing.assert_array_equal(with_ones(X), expected)
    both = with_ones(sparse.csr_array(X))
    assert sparse.issparse(both)
    np.testing.assert_array_equal(both.toarray(), expected)


def test_labels_are_those_near_the_top_before_the_scores_are_squeezed():
    scores = np.array(
        [
            [0.0, 1.75, 2.0, 1.85],
            [0.0, 0.0, 0.0, 1e9],
            [0.0, 100.0, 90.0, 1e9],  # beyond 10 or so all are certain
            [0.2] * 4,
            [0.7] * 4,
        ]
    )
    expected = [[0, 0, 1, 1], [0, 0, 0, 1], [0, 1, 1, 1], [0] * 4, [1] * 4]
    np.testing.assert_array_equal(TopScores()._choose(to_unit_interval(scores)), expected)
