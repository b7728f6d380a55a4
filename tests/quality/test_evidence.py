import numpy as np
import pytest
from scipy import sparse
from sklearn.decomposition import PCA

from wscpml.quality import evidence


@pytest.mark.parametrize("shape", [(40, 6), (30, 50), (9, 1), (2, 2), (1, 3)])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_positions_are_those_on_the_principal_axes(shape, kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=shape) * np.arange(1, shape[1] + 1)
    placed, prototypes = evidence.positions(
        kind(X), np.vstack([X[:1], np.full((1, shape[1]), np.nan)])
    )
    assert placed.shape == (shape[0], 2)
    kept = min(2, shape[0] - 1, shape[1])
    if kept:
        expected = PCA(kept).fit_transform(X)
        np.testing.assert_allclose(abs(placed[:, :kept]), abs(expected), atol=1e-8)
    np.testing.assert_allclose(placed[:, kept:], 0, atol=1e-6)
    np.testing.assert_allclose(prototypes[0], placed[0], atol=1e-8)
    assert np.isnan(prototypes[1]).all()


def test_axes_of_many_rows_are_those_of_some_of_them(monkeypatch):
    X = np.random.default_rng(0).normal(size=(2001, 3)) * [5, 2, 1]
    monkeypatch.setattr(evidence, "MOST_FITTED", 400)
    placed, _ = evidence.positions(X, X[:1])
    chosen = PCA(2).fit(X[::6])
    np.testing.assert_allclose(abs(placed), abs(chosen.transform(X)), atol=1e-8)


def test_rows_that_are_all_alike_are_in_one_place():
    placed, prototypes = evidence.positions(np.ones((5, 3)), np.ones((2, 3)))
    assert not placed.any()
    assert not prototypes.any()


def test_labels_come_from_the_nearest_prototype_to_the_farthest():
    X = np.array([[0.0], [1.0], [5.0]])
    pairs = np.array([[0, 1, 1], [1, 1, 0], [0, 0, 0]])
    seen = evidence.gather(X, np.array([[4.0], [0.2], [np.nan]]), pairs)
    assert seen.nearest.tolist() == [[1, 0, 2], [1, 0, 2], [0, 1, 2]]
    assert seen.ranks.toarray().tolist() == [[0, 1, 3], [2, 1, 0], [0, 0, 0]]
    assert np.isnan(seen.prototypes[2]).all()
