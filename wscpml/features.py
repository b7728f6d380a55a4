"""Scaling and kernel map: fitted on the training rows, applied to any rows."""

from dataclasses import dataclass

import numpy as np

from wscpml.arrays import Array, squared_distances


@dataclass(frozen=True)
class FeatureMap:
    """Scaled features, then an RBF kernel map if there are anchors.

    scaled = (x - offset) * gain;  mapped = exp(-|scaled - anchor|^2 / (2 bandwidth)) - centre
    """

    offset: Array  # (d,)
    gain: Array  # (d,), 0 for a constant column
    anchors: Array  # (m, d), m = 0 without a kernel map
    bandwidth: Array  # ()
    centre: Array  # (m,)

    def __call__(self, X: Array) -> Array:
        """Map rows ``(n, d)`` to ``(n, m)``, or to ``(n, d)`` without a kernel map."""
        scaled = (X - self.offset) * self.gain
        if not len(self.anchors):
            return scaled
        return _kernel(scaled, self.anchors, self.bandwidth) - self.centre


def fit(
    X: Array, scaling: str, kernel: str, anchors_per_feature: int, rng: np.random.Generator
) -> FeatureMap:
    """Fit the map on the training rows ``X``."""
    offset, spread = _location_and_spread(X, scaling)
    gain = np.divide(1, spread, out=np.zeros_like(spread), where=spread > 0)
    n, d = X.shape
    if kernel == "none":
        return FeatureMap(offset, gain, np.empty((0, d)), np.array(1.0), np.empty(0))
    scaled = (X - offset) * gain
    anchors = scaled[rng.choice(n, size=min(anchors_per_feature * d, n), replace=False)]
    bandwidth = squared_distances(scaled, anchors).mean() or 1.0
    centre = _kernel(scaled, anchors, bandwidth).mean(axis=0)
    return FeatureMap(offset, gain, anchors, np.asarray(bandwidth), centre)


def _location_and_spread(X: Array, scaling: str) -> tuple[Array, Array]:
    """Zero and unit of each column: [-1, 1] for min-max, mean and deviation for z-score."""
    if scaling == "minmax":
        low, high = X.min(axis=0), X.max(axis=0)
        return (low + high) / 2, (high - low) / 2
    if scaling == "zscore":
        return X.mean(axis=0), X.std(axis=0) * (np.ptp(X, axis=0) > 0)
    return np.zeros(X.shape[1]), np.ones(X.shape[1])


def _kernel(scaled: Array, anchors: Array, bandwidth: Array | float) -> Array:
    mapped = squared_distances(scaled, anchors)
    mapped /= -2 * bandwidth
    return np.exp(mapped, out=mapped)
