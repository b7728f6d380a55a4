"""What a person has decided: pairs of an instance and a label that are known to be true or false."""

from dataclasses import dataclass

import numpy as np

from wscpml.arrays import Array


@dataclass(frozen=True)
class Decided:
    """m decided pairs, each pair once."""

    row: Array  # (m,), which instance
    label: Array  # (m,)
    true: Array  # (m,), bool

    def added_to(self, candidates: Array) -> Array:
        """Candidates ``(n, q)`` with the labels that were missing and are true."""
        found = candidates.copy()
        found[self.row[self.true], self.label[self.true]] = 1
        return found

    def settle(self, label_confidence: Array) -> Array:
        """Label confidences ``(n, q)`` with 1 and 0 where it is decided."""
        settled = label_confidence.copy()
        settled[self.row, self.label] = self.true
        return settled

    def among(self, shape: tuple[int, int]) -> Array:
        """Which pairs are decided, a boolean ``(n, q)``."""
        found = np.zeros(shape, dtype=bool)
        found[self.row, self.label] = True
        return found
