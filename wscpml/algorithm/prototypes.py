"""Stage 1: initial prototypes from the noisy candidates (Eqs. 1-3)."""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from wscpml.arrays import ROWS_AT_ONCE, Array, Matrix, label_counts, row_blocks, to_dense


def memberships(labels: Matrix) -> Matrix:
    """Each row's weight shared equally by its labels (u of Eq. 1); 0 for a row without labels."""
    if sparse.issparse(labels):
        return _shared(labels, label_counts(labels.T))
    return labels / np.maximum(labels.sum(axis=1, keepdims=True, dtype=float), 1)


def centroids(X: Matrix, weights: Matrix) -> Array:
    """Weighted mean of the rows for each label (Eq. 2); NaN for a label without weight."""
    return _means(*_sums(X, weights))


def _sums(X: Matrix, weights: Matrix) -> tuple[Array, Array]:
    """The weighted sum of the rows for each label ``(q, d)``, and of the weights ``(q,)``."""
    sums = np.zeros((weights.shape[1], X.shape[1]))
    for rows in row_blocks(X.shape[0], ROWS_AT_ONCE):
        sums += to_dense(weights[rows].T @ X[rows])
    return sums, label_counts(weights)


def _means(sums: Array, total: Array) -> Array:
    known = np.broadcast_to(total[:, None] > 0, sums.shape)
    return np.divide(sums, total[:, None], out=np.full(sums.shape, np.nan), where=known)


def _shared(labels: Matrix, among: Array) -> sparse.csr_array:
    """Each row's weight shared by so many ``(n,)``, where it has labels."""
    return sparse.csr_array(labels.multiply(_part(among)))


def _part(among: Array) -> Array:
    """What each of so many has ``(n, 1)``; nothing if there is none."""
    return (among > 0)[:, None] / np.maximum(among, 1.0)[:, None]


class Prototypes(NamedTuple):
    """Where a label's instances lie, and where the others do."""

    positive: Array  # (q, d), Eq. 2; NaN for a label without candidates
    negative: Array  # (q, d), Eq. 3; NaN for a label that is a candidate everywhere


def learn(X: Matrix, candidates: Matrix) -> Prototypes:
    """Learn the prototypes from rows ``(n, d)`` and their candidates ``(n, q)``.

    Where these are sparse, the negative ones are what candidates leave of the sum of all rows.
    """
    if sparse.issparse(candidates):
        others = candidates.shape[1] - label_counts(candidates.T)
        parts = zip(_sums(X, _part(others)), _sums(X, _shared(candidates, others)), strict=True)
        sums, total = (every - own for every, own in parts)
        total[label_counts(candidates) == len(others)] = 0
        return Prototypes(centroids(X, memberships(candidates)), _means(sums, total))
    return Prototypes(
        positive=centroids(X, memberships(candidates)),
        negative=centroids(X, memberships(1 - candidates)),
    )
