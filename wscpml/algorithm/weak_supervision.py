"""Stage 2: how far each candidate can be trusted as weak supervision (Eqs. 4-5)."""

from typing import Literal

import numpy as np

from wscpml.arrays import ROWS_AT_ONCE, Array, Matrix, row_blocks, squared_distances


def build(
    X: Matrix,
    candidates: Array,
    positive: Array,
    negative: Array,
    theta: Literal["adaptive"] | float,
) -> Array:
    """Weak supervision B, float32 ``(n, q)``: 1 for a candidate nearer to its positive prototype.

    Else it is theta. A label that every row has as a candidate has no negative prototype: nothing
    speaks against it, and its B is 1. B is 0 off the candidates, where the method never
    uses it.
    """
    if theta == "adaptive":  # Eq. 5
        reduced = 1 - candidates.mean(axis=1, keepdims=True)
    else:
        reduced = np.full((len(candidates), 1), float(theta))
    no_negative = np.isnan(negative).any(axis=1)
    B = np.empty(candidates.shape, np.float32)
    for rows in row_blocks(len(B), ROWS_AT_ONCE):
        to_positive, to_negative = (squared_distances(X[rows], m) for m in (positive, negative))
        trusted = (to_positive < to_negative) | no_negative
        B[rows] = np.where(trusted, 1, reduced[rows]) * candidates[rows]  # Eq. 4
    return B
