import numpy as np
import pytest
from scipy import sparse

from wscpml.methods import neighbours


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(neighbours, "BLOCK", 7)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_blocks_are_all_distances(kind):
    X = np.random.default_rng(0).normal(size=(20, 3))
    X[3] = X[17]
    found = np.vstack([squared for _, squared in neighbours.distance_blocks(kind(X))])
    np.testing.assert_allclose(found, ((X[:, None] - X) ** 2).sum(axis=2), rtol=1e-9)
    assert not found.diagonal().any()  # exactly
    assert found[3, 17] == 0


def test_the_graph_joins_each_row_with_its_nearest_others():
    X = np.random.default_rng(0).normal(size=(20, 3))
    squared = ((X[:, None] - X) ** 2).sum(axis=2)
    np.fill_diagonal(squared, np.inf)
    nearest = squared <= np.sort(squared, axis=1)[:, [3]]
    weights = np.where(nearest, np.exp(-squared / (2 * 0.5 * squared[nearest].mean())), 0)
    graph = neighbours.neighbour_graph(X, 4, 0.5).toarray()
    np.testing.assert_allclose(graph, (weights + weights.T) / 2, rtol=1e-9)


def test_graphs_of_few_or_equal_rows():
    assert neighbours.neighbour_graph(np.ones((1, 2)), 5, 1.0).nnz == 0
    pair = neighbours.neighbour_graph(np.ones((2, 2)), 5, 1.0).toarray()
    np.testing.assert_array_equal(pair, [[0, 1], [1, 0]])
