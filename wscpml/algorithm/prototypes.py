"""Stage 1: initial prototypes from the noisy candidates (Eqs. 1-3)."""

from typing import NamedTuple

import numpy as np

from wscpml.arrays import ROWS_AT_ONCE, Array, Matrix, row_blocks


def memberships(labels: Array) -> Array:
    """Each row's weight shared equally by its labels (u of Eq. 1); 0 for a row without labels."""
    return labels / np.maximum(labels.sum(axis=1, keepdims=True, dtype=float), 1)


def centroids(X: Matrix, weights: Array) -> Array:
    """Weighted mean of the rows for each label (Eq. 2); NaN for a label without weight."""
    total = weights.sum(axis=0)[:, None]
    sums = np.zeros((len(total), X.shape[1]))
    for rows in row_blocks(X.shape[0], ROWS_AT_ONCE):
        sums += weights[rows].T @ X[rows]
    return np.divide(sums, total, out=np.full(sums.shape, np.nan), where=total > 0)


class Prototypes(NamedTuple):
    """Where a label's instances lie, and where the others do."""

    positive: Array  # (q, d), Eq. 2; NaN for a label without candidates
    negative: Array  # (q, d), Eq. 3; NaN for a label that is a candidate everywhere


def learn(X: Matrix, candidates: Array) -> Prototypes:
    """Learn the prototypes from rows ``(n, d)`` and their candidates ``(n, q)``."""
    return Prototypes(
        positive=centroids(X, memberships(candidates)),
        negative=centroids(X, memberships(1 - candidates)),
    )
