"""Which pairs a person is asked first."""

import numpy as np

from wscpml.arrays import Array
from wscpml.quality.decisions import Decided


def choose(
    label_confidence: Array,
    candidates: Array,
    decided: Decided | None,
    k: int,
    rng: np.random.Generator,  # noqa: ARG001
) -> tuple[Array, Array]:
    """Row and label of at most k undecided candidates, the most suspicious first."""
    open_ = candidates == 1
    if decided is not None:
        open_ &= ~decided.among(candidates.shape)
    row, label = np.nonzero(open_)
    first = np.argsort(label_confidence[row, label], kind="stable")[:k]
    return row[first], label[first]
