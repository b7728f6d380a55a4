"""Scaling and kernel map: fitted on the training rows, applied to any rows.

Sparse features are scaled but not shifted, which keeps them sparse and changes no distance; they
have no quantiles of their own and take min-max instead.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from wscpml.algorithm.ridge import Ridge
from wscpml.arrays import (
    Array,
    Matrix,
    pack,
    row_blocks,
    squared_distances,
    squared_norms,
    strong_directions,
    to_dense,
    unpack,
)

MOST_LEVELS = 1000  # quantiles that are kept of a column
FEWEST_ANCHORS, MOST_ANCHORS = 2500, 6000  # their kernel is factorised
MOST_ROWS = 50_000  # that scaling and centre are fitted on; of more, every second, third, ...
ROWS_AT_ONCE = 1024  # whose kernel to all anchors is held at a time
EXPONENTS = {"laplace": 0.5, "rbf": 1.0}


@dataclass(frozen=True)
class FeatureMap:
    """Scaled features, which the method clusters, and their kernel map, which it classifies.

    ranked = rank of x among the levels, from -1 to 1 (x itself without levels)
    scaled = (ranked - offset) * gain
    kernel = exp(-(|scaled - anchor|^2 / bandwidth)^exponent)
    mapped = (kernel - centre) @ whitening: inner products are those of the kernel (Nystroem),
    its axes are the principal ones of the anchors, the strongest first
    """

    levels: Array  # (g, d), the quantiles of each training column, g = 0 without ranking
    offset: Array  # (d,), 0 for sparse features
    gain: Array  # (d,), 0 for a constant column
    anchors: Matrix  # (m, d), m = 0 without a kernel map
    bandwidth: Array  # ()
    exponent: Array  # ()
    centre: Array  # (m,)
    whitening: Array  # (m, r)

    def scale(self, X: Matrix) -> Matrix:
        """Scaled rows ``(n, d)``, sparse if they were and zero stays zero."""
        if not sparse.issparse(X):
            return _scale(X, self.levels, self.offset, self.gain)
        if self.keeps_zero:
            return sparse.csr_array(X.multiply(self.gain))
        X, scaled = sparse.csr_array(X), np.empty(X.shape)
        for rows in row_blocks(X.shape[0], ROWS_AT_ONCE):
            scaled[rows] = self.scale(X[rows].toarray())
        return scaled

    @property
    def keeps_zero(self) -> bool:
        """Whether columns are only multiplied, as those of sparse training rows are."""
        return not len(self.levels) and not self.offset.any()

    def __call__(self, X: Matrix) -> Array:
        """Map rows ``(n, d)`` to float32 ``(n, r)``, or just scale them without a kernel map."""
        if sparse.issparse(self.anchors):
            X = sparse.csr_array(X)
        if not sparse.issparse(X) or self.keeps_zero:
            return self.map_scaled(self.scale(X))
        X, mapped = sparse.csr_array(X), np.empty((X.shape[0], self.size), np.float32)
        for rows in row_blocks(X.shape[0], ROWS_AT_ONCE):
            self.map_scaled(self.scale(X[rows]), out=mapped[rows])
        return mapped

    def map_scaled(self, scaled: Matrix, out: Array | None = None) -> Array:
        """The same for rows that are scaled already, into `out` if it is given."""
        n, kernel = scaled.shape[0], self.anchors.shape[0] > 0
        mapped = np.empty((n, self.size), np.float32) if out is None else out
        for rows in row_blocks(n, ROWS_AT_ONCE):
            mapped[rows] = self._kernel_map(scaled[rows]) if kernel else to_dense(scaled[rows])
        return mapped

    def _kernel_map(self, scaled: Matrix) -> Array:
        return self.centred_kernel(scaled) @ self.whitening

    def kernel(self, scaled: Matrix) -> Array:
        """What `on_kernel` predicts by: the kernel of scaled rows to all anchors, ``(b, m)``."""
        if not self.anchors.shape[0]:
            return to_dense(scaled).astype(np.float32)
        rows, anchors = scaled.astype(np.float32), self.anchors.astype(np.float32)
        return _kernel(rows, anchors, float(self.bandwidth), float(self.exponent))

    def centred_kernel(self, scaled: Matrix) -> Array:
        """The kernel of which `unfolding` makes mapped features, ``(b, m)``."""
        if not self.anchors.shape[0]:
            return to_dense(scaled).astype(np.float64)
        values = _kernel(scaled, self.anchors, self.bandwidth, self.exponent)
        values -= self.centre
        return values

    @property
    def unfolding(self) -> Array:
        """The linear map ``(m, r)`` from the centred kernel to mapped features."""
        return self.whitening if self.anchors.shape[0] else np.eye(self.size)

    @property
    def kernel_alone(self) -> "FeatureMap":
        """A map that has kernels and no more, and is small: its whitening is most of a map."""
        none = {name: getattr(self, name)[:0] for name in ("levels", "whitening")}
        return replace(self, **none)

    def on_kernel(self, line: Ridge) -> Ridge:
        """A predictor on mapped features as one on the kernel, for rows that need not be mapped."""
        if not self.anchors.shape[0]:
            return Ridge(line.weight.astype(np.float32), line.bias)
        weight = self.whitening @ line.weight
        return Ridge(weight.astype(np.float32), line.bias - self.centre @ weight)

    @property
    def size(self) -> int:
        """How many features rows are mapped to."""
        return int((self.whitening if self.anchors.shape[0] else self.anchors).shape[1])

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
    energy: float,
    rng: np.random.Generator,
) -> FeatureMap:
    """Fit the map on the training rows ``X``, which may be a memory map.

    `bandwidth` is in units of the mean squared distance between rows and anchors; `energy` is
    the share of the anchors' kernel that the strongest directions have to carry.
    """
    n, d = X.shape
    scaling_only = fit_scaling(X, scaling)
    if kernel == "none":
        return scaling_only
    wanted = min(max(anchors_per_feature * d, FEWEST_ANCHORS), MOST_ANCHORS)
    chosen = rng.choice(n, size=min(wanted, n), replace=False)
    anchors, scaled = (scaling_only.scale(rows) for rows in (X[np.sort(chosen)], _sample(X)))
    exponent = EXPONENTS[kernel]
    width = bandwidth * _mean_squared_distance(scaled, anchors) or 1.0
    square = _kernel(anchors, anchors, width, exponent)
    centre = square.mean(axis=0)
    square -= centre
    square -= square.mean(axis=1, keepdims=True)
    strengths, directions = strong_directions(square, energy, least=1.0)
    whitening = directions / np.sqrt(strengths)
    return replace(
        scaling_only,
        anchors=anchors,
        bandwidth=np.asarray(width),
        exponent=np.asarray(exponent),
        centre=centre,
        whitening=whitening if whitening.size else np.zeros((len(chosen), 1)),
    )


def fit_scaling(X: Matrix, scaling: str) -> FeatureMap:
    """Fit a map that scales features and has no kernel."""
    sample, d = _sample(X).astype(np.float64, copy=False), X.shape[1]
    levels = np.empty((0, d))
    if scaling == "quantile" and not sparse.issparse(X):
        levels = np.quantile(sample, np.linspace(0, 1, min(len(sample), MOST_LEVELS)), axis=0)
    offset, spread = _location_and_spread(sample, scaling)
    if sparse.issparse(X):
        offset = np.zeros(d)
    gain = np.divide(1, spread, out=np.zeros(d), where=spread > 0)
    one, none = np.array(1.0), np.empty((0, d))
    return FeatureMap(levels, offset, gain, none, one, one, np.empty(0), none)


def _sample(X: Matrix) -> Matrix:
    """All rows, or evenly spaced ones of very many."""
    return X[:: -(-X.shape[0] // MOST_ROWS)]


def _mean_squared_distance(X: Matrix, points: Matrix) -> float:
    """Mean over all pairs of rows, without making them."""
    centres = [np.asarray(rows.mean(axis=0)).ravel() for rows in (X, points)]
    spread = sum(float(squared_norms(rows).mean()) for rows in (X, points))
    return max(spread - 2 * float(centres[0] @ centres[1]), 0.0)


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


def _scale(X: Array, levels: Array, offset: Array, gain: Array) -> Array:
    if not len(levels):
        return (X - offset) * gain
    ranks = _ranks(X, levels)
    ranks -= offset
    ranks *= gain
    return ranks


def _ranks(X: Array, levels: Array) -> Array:
    """Where each value lies among its column's levels, from -1 to 1; a tie lies in its middle."""
    ranks = np.empty(X.shape)
    below = np.linspace(-1, 1, len(levels))
    for j, column in enumerate(levels.T):
        lowest = -np.interp(-X[:, j], -column[::-1], -below[::-1])
        ranks[:, j] = (np.interp(X[:, j], column, below) + lowest) / 2
    return ranks


def _kernel(
    scaled: Matrix, anchors: Matrix, bandwidth: Array | float, exponent: Array | float
) -> Array:
    values = squared_distances(scaled, anchors)
    values /= bandwidth
    if exponent == EXPONENTS["laplace"]:
        np.sqrt(values, out=values)
    return np.exp(np.negative(values, out=values), out=values)
