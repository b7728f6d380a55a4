"""What the mathematics of several stages shares."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def squared_distances(X: Array, points: Array) -> Array:
    """Squared Euclidean distances ``(n, k)`` of rows ``X`` to ``points`` ``(k, d)``."""
    distances: Array = X @ (-2 * points.T)
    distances += np.einsum("ij,ij->i", X, X)[:, None]
    distances += np.einsum("ij,ij->i", points, points)
    return np.maximum(distances, 0, out=distances)
