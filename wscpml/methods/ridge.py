"""KRR-C: kernel ridge regression straight on the candidates, a plain reference."""

from typing import Any

import numpy as np

from wscpml.algorithm import features, ridge
from wscpml.arrays import Array, Matrix
from wscpml.methods.base import Method


class KernelRidge(Method):
    """Regress every label on the candidates as they are; no de-noising.

    The parameters are those of the kernel map: see `wscpml.algorithm.features.fit`.
    """

    TITLE = "KRR-C"
    SOURCE = "kernel ridge regression on the candidates"
    SCALING = "quantile"

    def __init__(
        self,
        kernel: str = "laplace",
        anchors_per_feature: int = 5,
        bandwidth: float = 0.5,
        energy: float = 0.999,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.anchors_per_feature = anchors_per_feature
        self.bandwidth = bandwidth
        self.energy = energy
        self.random_state = random_state

    def _fit(self, X: Matrix, candidates: Array, rng: np.random.Generator) -> Array:
        self.map_ = features.fit(
            X, "none", self.kernel, self.anchors_per_feature, self.bandwidth, self.energy, rng
        )
        fitted = ridge.fit(self.map_(X), candidates, candidates.astype(float))
        self.head_ = fitted.head
        return np.clip(fitted.left_out, 0, 1) * candidates

    def _probabilities(self, X: Matrix) -> Array:
        return self.head_.predict_proba(self.map_(X))
