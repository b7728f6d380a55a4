"""Stage 1: initial prototypes from the noisy candidates (Eqs. 1-3)."""

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


def learn(X: Matrix, candidates: Array) -> tuple[Array, Array]:
    """Positive (Eq. 2) and negative (Eq. 3) prototypes, each ``(q, d)``."""
    return centroids(X, memberships(candidates)), centroids(X, memberships(1 - candidates))
