"""Folds of the rows, as the paper's cross-validation draws them: at random, not stratified."""

import numpy as np

from wscpml.arrays import Array
from wscpml.errors import UserError


def held_out(n: int, folds: int, fold: int | None, rng: np.random.Generator) -> Array:
    """Which of ``n`` rows are in ``fold``, the test rows; no fold, no rows. A boolean ``(n,)``."""
    if fold is None:
        return np.zeros(n, bool)
    if folds > n:
        raise UserError(f"split.folds: must be at most {n}, the number of instances, got {folds}")
    return rng.permutation(np.arange(n) % folds) == fold
