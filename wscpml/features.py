"""Scaling and kernel map: fitted on the training rows, applied to any rows.

Sparse features are scaled but not shifted, which keeps them sparse and changes no distance.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from wscpml.arrays import Array, Matrix, pack, squared_distances, to_dense, unpack


@dataclass(frozen=True)
class FeatureMap:
    """Scaled features, then an RBF kernel map if there are anchors.

    scaled = (x - offset) * gain;  mapped = exp(-|scaled - anchor|^2 / (2 bandwidth)) - centre
    """

    offset: Array  # (d,), 0 for sparse features
    gain: Array  # (d,), 0 for a constant column
    anchors: Matrix  # (m, d), m = 0 without a kernel map
    bandwidth: Array  # ()
    centre: Array  # (m,)

    def __call__(self, X: Matrix) -> Array:
        """Map rows ``(n, d)`` to ``(n, m)``, or to ``(n, d)`` without a kernel map."""
        if sparse.issparse(self.anchors):
            X = sparse.csr_array(X)
        scaled = _scale(X, self.offset, self.gain)
        if not self.anchors.shape[0]:
            return to_dense(scaled)
        mapped = _kernel(scaled, self.anchors, self.bandwidth)
        mapped -= self.centre
        return mapped

    def to_arrays(self) -> dict[str, Array]:
        """All of it as named arrays, ready for a file."""
        return {name: value for name, value in vars(self).items() if name != "anchors"} | pack(
            "anchors", self.anchors
        )

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> "FeatureMap":
        """The map that `to_arrays` took apart."""
        rest = dict(arrays)
        return cls(anchors=unpack("anchors", rest), **rest)


def fit(
    X: Matrix, scaling: str, kernel: str, anchors_per_feature: int, rng: np.random.Generator
) -> FeatureMap:
    """Fit the map on the training rows ``X``."""
    n, d = X.shape
    offset, spread = _location_and_spread(X, scaling)
    if sparse.issparse(X):
        offset = np.zeros(d)
    gain = np.divide(1, spread, out=np.zeros(d), where=spread > 0)
    if kernel == "none":
        return FeatureMap(offset, gain, np.empty((0, d)), np.array(1.0), np.empty(0))
    scaled = _scale(X, offset, gain)
    anchors = scaled[rng.choice(n, size=min(anchors_per_feature * d, n), replace=False)]
    bandwidth = squared_distances(scaled, anchors).mean() or 1.0
    centre = _kernel(scaled, anchors, bandwidth).mean(axis=0)
    return FeatureMap(offset, gain, anchors, np.asarray(bandwidth), centre)


def _location_and_spread(X: Matrix, scaling: str) -> tuple[Array, Array]:
    """Zero and unit of each column: [-1, 1] for min-max, mean and deviation for z-score."""
    low, high = (to_dense(extreme(axis=0)).ravel().astype(float) for extreme in (X.min, X.max))
    if scaling == "minmax":
        return (low + high) / 2, (high - low) / 2
    if scaling == "zscore":
        mean = np.asarray(X.mean(axis=0)).ravel()
        deviation = np.sqrt(_variance(X, mean))
        return mean, deviation * (high > low)
    return np.zeros(X.shape[1]), np.ones(X.shape[1])


def _variance(X: Matrix, mean: Array) -> Array:
    if sparse.issparse(X):
        squares = np.asarray(X.multiply(X).mean(axis=0)).ravel()
        return np.maximum(squares - mean**2, 0)
    return X.var(axis=0)


def _scale(X: Matrix, offset: Array, gain: Array) -> Matrix:
    if sparse.issparse(X):
        return sparse.csr_array(X.multiply(gain))
    return (X - offset) * gain


def _kernel(scaled: Matrix, anchors: Matrix, bandwidth: Array | float) -> Array:
    mapped = squared_distances(scaled, anchors)
    mapped /= -2 * bandwidth
    return np.exp(mapped, out=mapped)
