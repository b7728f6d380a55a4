"""Folds of the rows, as the paper's cross-validation draws them: at random, not stratified."""

import numpy as np

from wscpml.arrays import Array
from wscpml.errors import UserError


def held_out(n: int, folds: int, fold: int, rng: np.random.Generator) -> Array:
    """Which of ``n`` rows belong to ``fold``: the test rows, a boolean ``(n,)``."""
    if folds > n:
        raise UserError(f"split.folds: must be at most {n}, the number of instances, got {folds}")
    return rng.permutation(np.arange(n) % folds) == fold
