"""Scaling and kernel map: fitted on the training rows, applied to any rows.

Sparse features are scaled but not shifted, which keeps them sparse and changes no distance; they
have no quantiles of their own and take min-max instead.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from wscpml.arrays import Array, Matrix, pack, squared_distances, to_dense, unpack

MOST_LEVELS = 1000  # quantiles that are kept of a column


@dataclass(frozen=True)
class FeatureMap:
    """Scaled features, which the method clusters, and their RBF kernel map, which it classifies.

    ranked = rank of x among the levels, from -1 to 1 (x itself without levels)
    scaled = (ranked - offset) * gain
    mapped = exp(-|scaled - anchor|^2 / (2 bandwidth)) - centre
    """

    levels: Array  # (g, d), the quantiles of each training column, g = 0 without ranking
    offset: Array  # (d,), 0 for sparse features
    gain: Array  # (d,), 0 for a constant column
    anchors: Matrix  # (m, d), m = 0 without a kernel map
    bandwidth: Array  # ()
    centre: Array  # (m,)

    def scale(self, X: Matrix) -> Matrix:
        """Scaled rows ``(n, d)``, sparse if they were."""
        return _scale(X, self.levels, self.offset, self.gain)

    def __call__(self, X: Matrix) -> Array:
        """Map rows ``(n, d)`` to ``(n, m)``, or just scale them without a kernel map."""
        if sparse.issparse(self.anchors):
            X = sparse.csr_array(X)
        scaled = self.scale(X)
        if not self.anchors.shape[0]:
            return to_dense(scaled)
        mapped = _kernel(scaled, self.anchors, self.bandwidth)
        mapped -= self.centre
        return mapped

    def anchor_kernel(self) -> Array | None:
        """The kernel between the anchors, ``(m, m)``, if there are any."""
        if not self.anchors.shape[0]:
            return None
        return _kernel(self.anchors, self.anchors, self.bandwidth)

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
    X: Matrix,
    scaling: str,
    kernel: str,
    anchors_per_feature: int,
    bandwidth: float,
    rng: np.random.Generator,
) -> FeatureMap:
    """Fit the map on the training rows ``X``; `bandwidth` is in units of their mean distance."""
    n, d = X.shape
    levels = np.empty((0, d))
    if scaling == "quantile" and not sparse.issparse(X):
        levels = np.quantile(X, np.linspace(0, 1, min(n, MOST_LEVELS)), axis=0)
    offset, spread = _location_and_spread(X, scaling)
    if sparse.issparse(X):
        offset = np.zeros(d)
    gain = np.divide(1, spread, out=np.zeros(d), where=spread > 0)
    if kernel == "none":
        return FeatureMap(levels, offset, gain, np.empty((0, d)), np.array(1.0), np.empty(0))
    scaled = _scale(X, levels, offset, gain)
    anchors = scaled[rng.choice(n, size=min(anchors_per_feature * d, n), replace=False)]
    width = bandwidth * squared_distances(scaled, anchors).mean() or 1.0
    centre = _kernel(scaled, anchors, width).mean(axis=0)
    return FeatureMap(levels, offset, gain, anchors, np.asarray(width), centre)


def _location_and_spread(X: Matrix, scaling: str) -> tuple[Array, Array]:
    """Zero and unit of each column: [-1, 1] for min-max, mean and deviation for z-score."""
    low, high = (to_dense(extreme(axis=0)).ravel().astype(float) for extreme in (X.min, X.max))
    if scaling == "zscore":
        mean = np.asarray(X.mean(axis=0)).ravel()
        return mean, np.sqrt(_variance(X, mean)) * (high > low)
    if scaling == "minmax" or sparse.issparse(X) and scaling == "quantile":
        return (low + high) / 2, (high - low) / 2
    if scaling == "quantile":  # ranks are from -1 to 1 already
        return np.zeros(len(low)), (high > low).astype(float)
    return np.zeros(len(low)), np.ones(len(low))


def _variance(X: Matrix, mean: Array) -> Array:
    if sparse.issparse(X):
        squares = np.asarray(X.multiply(X).mean(axis=0)).ravel()
        return np.maximum(squares - mean**2, 0)
    return X.var(axis=0)


def _scale(X: Matrix, levels: Array, offset: Array, gain: Array) -> Matrix:
    if sparse.issparse(X):
        return sparse.csr_array(X.multiply(gain))
    return ((_ranks(X, levels) if len(levels) else X) - offset) * gain


def _ranks(X: Array, levels: Array) -> Array:
    """Where each value lies among its column's levels, from -1 to 1; a tie lies in its middle."""
    ranks = np.empty(X.shape)
    below = np.linspace(-1, 1, len(levels))
    for j, column in enumerate(levels.T):
        lowest = -np.interp(-X[:, j], -column[::-1], -below[::-1])
        ranks[:, j] = (np.interp(X[:, j], column, below) + lowest) / 2
    return ranks


def _kernel(scaled: Matrix, anchors: Matrix, bandwidth: Array | float) -> Array:
    mapped = squared_distances(scaled, anchors)
    mapped /= -2 * bandwidth
    return np.exp(mapped, out=mapped)
