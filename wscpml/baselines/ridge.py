"""KRR-C: kernel ridge regression straight on the candidates, a plain reference."""

from typing import Any

import numpy as np

from wscpml import features, ridge
from wscpml.arrays import Array, Matrix
from wscpml.baselines.base import Method


class KernelRidge(Method):
    """Regress every label on the candidates as they are; no de-noising.

    Parameters
    ----------
    anchors_per_feature, bandwidth
        Of the kernel map: min(anchors_per_feature * d, n) training rows as anchors, and the
        kernel's width in units of their mean squared distance.
    """

    TITLE = "KRR-C"
    SOURCE = "kernel ridge regression on the candidates"
    SCALING = "quantile"

    def __init__(
        self, anchors_per_feature: int = 5, bandwidth: float = 0.5, random_state: Any = None
    ) -> None:
        self.anchors_per_feature = anchors_per_feature
        self.bandwidth = bandwidth
        self.random_state = random_state

    def _fit(self, X: Matrix, candidates: Array, rng: np.random.Generator) -> Array:
        self.map_ = features.fit(X, "none", "rbf", self.anchors_per_feature, self.bandwidth, rng)
        self.head_, left_out, _ = ridge.fit(
            self.map_(X), candidates, candidates.astype(float), self.map_.anchor_kernel()
        )
        return np.clip(left_out, 0, 1) * candidates

    def _probabilities(self, X: Matrix) -> Array:
        return self.head_.predict_proba(self.map_(X))
