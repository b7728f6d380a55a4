"""Linear maps fitted to targets by way of the smaller Gram matrix of the features."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from wscpml.arrays import Array, Matrix, to_dense


def with_ones(X: Matrix) -> Matrix:
    """The rows with a last column of ones, whose weight is the bias; sparse if they were."""
    ones = np.ones((X.shape[0], 1))
    return sparse.hstack([X, ones], format="csr") if sparse.issparse(X) else np.hstack([X, ones])


@dataclass(frozen=True)
class Gram:
    """``X.T @ X`` or ``X @ X.T``, whichever is smaller, ``(r, r)``.

    For every function f of a matrix f(X.T X) X.T T = X.T f(X X.T) T, so weights that depend on
    the features through their Gram matrix are ``expand(f(matrix) @ reduce(targets))``.
    """

    X: Matrix  # (n, d)

    @property
    def wide(self) -> bool:
        """Whether the rows are fewer than the features."""
        return self.X.shape[0] < self.X.shape[1]

    def matrix(self) -> Array:
        """The smaller Gram matrix, ``(r, r)``."""
        return to_dense(self.X @ self.X.T if self.wide else self.X.T @ self.X)

    def reduce(self, targets: Array) -> Array:
        """From targets ``(n, q)`` to ``(r, q)``."""
        return targets if self.wide else self.X.T @ targets

    def expand(self, solved: Array) -> Array:
        """From ``(r, q)`` to weights ``(d, q)``."""
        return self.X.T @ solved if self.wide else solved
