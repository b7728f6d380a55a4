"""Distances between all rows, a block of rows at a time, and the graph of nearest neighbours."""

from collections.abc import Iterator

import numpy as np
from scipy import sparse

from wscpml.arrays import Array, Matrix, squared_distances

BLOCK = 256  # rows at a time
ROUNDING = 1e-12  # of the largest squared distance; what is less is between equal rows


def distance_blocks(X: Matrix) -> Iterator[tuple[slice, Array]]:
    """Blocks of rows, each with its squared distances ``(block, n)`` to all rows."""
    for start in range(0, X.shape[0], BLOCK):
        block = slice(start, min(start + BLOCK, X.shape[0]))
        squared = squared_distances(X[block], X)
        squared[squared < ROUNDING * squared.max()] = 0
        yield block, squared


def neighbour_graph(X: Matrix, neighbours: int, bandwidth: float) -> sparse.csr_array:
    """Symmetric Gaussian weights ``(n, n)`` between each row and its nearest other rows.

    `bandwidth` is in units of their mean squared distance.
    """
    n = X.shape[0]
    k = min(neighbours, n - 1)
    if k == 0:
        return sparse.csr_array((n, n))
    nearest, squared = np.empty((n, k), dtype=np.intp), np.empty((n, k))
    for block, distances in distance_blocks(X):
        np.fill_diagonal(distances[:, block], np.inf)
        nearest[block] = np.argpartition(distances, k - 1, axis=1)[:, :k]
        squared[block] = np.take_along_axis(distances, nearest[block], axis=1)
    weights = np.exp(-squared / (2 * bandwidth * (squared.mean() or 1)))
    graph = sparse.csr_array((weights.ravel(), nearest.ravel(), np.arange(n + 1) * k), (n, n))
    return (graph + graph.T) / 2
