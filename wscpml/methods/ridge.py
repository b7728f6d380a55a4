"""KRR-C: kernel ridge regression straight on the candidates, a plain reference."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from wscpml.algorithm import composition
from wscpml.arrays import Array, Matrix
from wscpml.methods.base import OnKernelFeatures
from wscpml.parameters import FeatureSettings


@dataclass(kw_only=True, eq=False, repr=False)
class KernelRidge(OnKernelFeatures, FeatureSettings):
    """Regress every label on the candidates as they are; no de-noising.

    The parameters are those of section `features` of params.yaml, which explains each.
    """

    TITLE = "KRR-C"
    SOURCE = "kernel ridge regression on the candidates"
    FEWEST_ROWS = 1

    random_state: Any = None

    def _fit(self, X: Matrix, candidates: Array, rng: np.random.Generator) -> Array:
        rows = self._represented(X, rng)
        targets = candidates.astype(float)
        fitted = composition.closed_form(rows, candidates, targets)
        self.head_ = fitted.head
        targets[candidates == 1] = composition.left_out(rows, fitted, candidates, targets)
        return np.clip(targets, 0, 1)
