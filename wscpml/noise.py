"""Candidate noise: how the paper makes partial multi-label data of clean multi-label data."""

import numpy as np

from wscpml.arrays import Array
from wscpml.errors import UserError


def pad_candidates(truth: Array, r: int, rng: np.random.Generator) -> Array:
    """Candidates ``(n, q)``: each row's true labels, padded at random to ``r`` labels in all.

    A row that has ``r`` or more true labels keeps just those.
    """
    q = truth.shape[1]
    if r > q:
        raise UserError(f"noise.candidates: must be at most {q}, the number of labels, got {r}")
    draw = rng.random(truth.shape) + truth  # true labels draw from [1, 2): they come first
    position = np.argsort(np.argsort(-draw, axis=1), axis=1)
    return ((position < r) | (truth == 1)).astype(np.uint8)
