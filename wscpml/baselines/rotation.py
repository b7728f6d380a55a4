"""What the linear methods share: one factorisation of the features for all their iterations."""

import numpy as np
from scipy import sparse

from wscpml.arrays import Array, Matrix, to_dense

WEAKEST = 1e-12  # of the strongest direction; what is weaker is rounding


def rotate(X: Matrix) -> tuple[Array, Array, Array]:
    """Features ``(n, d)`` as Z Q': Z ``(n, r)``, the diagonal of Z'Z ``(r,)``, and Q ``(d, r)``.

    The columns of Z are orthogonal, those of Q orthonormal. They come from the smaller of the two
    Gram matrices: n x n where there are more features than rows.
    """
    wide = X.shape[0] < X.shape[1]
    strengths, vectors = np.linalg.eigh(to_dense(X @ X.T if wide else X.T @ X))
    kept = strengths > strengths[-1] * WEAKEST
    strengths, vectors = strengths[kept], vectors[:, kept]
    if wide:
        lengths = np.sqrt(strengths)
        return vectors * lengths, strengths, X.T @ (vectors / lengths)
    return X @ vectors, strengths, vectors


def with_ones(X: Matrix) -> Matrix:
    """Features with a last column of ones, ``(n, d + 1)``, sparse if they were."""
    ones = np.ones((X.shape[0], 1))
    return sparse.hstack([X, ones], format="csr") if sparse.issparse(X) else np.hstack([X, ones])
