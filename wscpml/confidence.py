"""Stage 2: how far each candidate can be trusted as weak supervision (Eqs. 4-5)."""

from typing import Literal

import numpy as np

from wscpml.arrays import Array, Matrix, squared_distances


def build(
    X: Matrix,
    candidates: Array,
    positive: Array,
    negative: Array,
    theta: Literal["adaptive"] | float,
) -> Array:
    """Confidence B ``(n, q)``: 1 for a candidate nearer to its positive prototype, else theta.

    A label that every row has as a candidate has no negative prototype: nothing speaks against
    it, and its confidence is 1. B is 0 off the candidates, where the method never uses it.
    """
    if theta == "adaptive":  # Eq. 5
        reduced = 1 - candidates.mean(axis=1, keepdims=True)
    else:
        reduced = np.full((len(candidates), 1), float(theta))
    no_negative = np.isnan(negative).any(axis=1)
    nearer = squared_distances(X, positive) < squared_distances(X, negative)
    return np.where(nearer | no_negative, 1.0, reduced) * candidates  # Eq. 4
