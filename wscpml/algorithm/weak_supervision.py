"""Stage 2: how far each candidate can be trusted as weak supervision (Eqs. 4-5)."""

from typing import Literal

import numpy as np
from scipy import sparse

from wscpml.arrays import ROWS_AT_ONCE, Array, Matrix, row_blocks, squared_distances


def build(
    X: Matrix,
    candidates: Matrix,
    positive: Array,
    negative: Array,
    theta: Literal["adaptive"] | float,
) -> Matrix:
    """Weak supervision B, float32 ``(n, q)``: 1 for a candidate nearer to its positive prototype.

    Else it is theta. A label that every row has as a candidate has no negative prototype: nothing
    speaks against it, and its B is 1. B is 0 off the candidates, where the method never
    uses it; that of sparse candidates has a value for each of them.
    """
    if theta == "adaptive":  # Eq. 5
        reduced = 1 - np.asarray(candidates.mean(axis=1)).reshape(-1, 1)
    else:
        reduced = np.full((candidates.shape[0], 1), float(theta))
    no_negative = np.isnan(negative).any(axis=1)
    few = sparse.issparse(candidates)
    B: Matrix = np.empty((0 if few else candidates.shape[0], candidates.shape[1]), np.float32)
    if few:
        B = sparse.csr_array(candidates, dtype=np.float32)
    for rows in row_blocks(candidates.shape[0], ROWS_AT_ONCE):
        to_positive, to_negative = (squared_distances(X[rows], m) for m in (positive, negative))
        trusted = (to_positive < to_negative) | no_negative
        values = np.where(trusted, 1, reduced[rows])
        if few:
            own = slice(B.indptr[rows.start], B.indptr[rows.stop])
            row = np.repeat(np.arange(len(values)), np.diff(B.indptr[rows.start : rows.stop + 1]))
            B.data[own] = values[row, B.indices[own]]
        else:
            B[rows] = values * candidates[rows]  # Eq. 4
    return B
