import numpy as np
import pytest
from scipy import sparse

from wscpml.arrays import to_dense
from wscpml.baselines.gram import Gram, with_ones


@pytest.mark.parametrize("shape", [(12, 5), (5, 12), (6, 6)])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_ridge_by_the_smaller_matrix_is_ridge(shape, kind):
    rng = np.random.default_rng(0)
    X, targets = rng.normal(size=shape), rng.normal(size=(shape[0], 3))
    gram = Gram(kind(X))
    square = gram.matrix()
    assert square.shape == (min(shape), min(shape))
    solved = np.linalg.solve(square + 2 * np.eye(len(square)), gram.reduce(targets))
    expected = np.linalg.solve(X.T @ X + 2 * np.eye(shape[1]), X.T @ targets)
    np.testing.assert_allclose(gram.expand(solved), expected, rtol=1e-9)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_the_last_column_is_ones(kind):
    X = kind(np.arange(6.0).reshape(3, 2))
    extended = with_ones(X)
    assert sparse.issparse(extended) == sparse.issparse(X)
    np.testing.assert_array_equal(to_dense(extended), [[0, 1, 1], [2, 3, 1], [4, 5, 1]])
