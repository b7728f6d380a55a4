"""What the linear methods share: one factorisation of the features, and from scores to labels."""

import numpy as np
from scipy import sparse

from wscpml.arrays import EVEN_ODDS, Array, Matrix, from_unit_interval, to_dense, to_unit_interval

WEAKEST = 1e-12  # of the strongest direction; what is weaker is rounding


def with_ones(X: Matrix) -> Matrix:
    """The rows with a last column of ones, whose weight is the bias; sparse if they were."""
    ones = np.ones((X.shape[0], 1))
    return sparse.hstack([X, ones], format="csr") if sparse.issparse(X) else np.hstack([X, ones])


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


class LinearScores:
    """Prediction by a linear map of the features, fitted to labels of 0 and 1."""

    weight_: Array  # (d, q)
    bias_: Array  # (q,)

    def _probabilities(self, X: Matrix) -> Array:
        return to_unit_interval(X @ self.weight_ + self.bias_)


class TopScores(LinearScores):
    """Linear scores of which those near the row's best make labels, as some authors have it."""

    OWN_RULE = True

    def _choose(self, probabilities: Array) -> Array:
        return on_top(from_unit_interval(probabilities))


def on_top(scores: Array, share: float = 0.9) -> Array:
    """Labels whose score, min-max scaled within its row, is at least `share`.

    A row whose labels all score the same has none that stands out; then the usual half decides.
    """
    low, high = (f(axis=1, keepdims=True) for f in (scores.min, scores.max))
    scaled = (scores - low) / np.where(high > low, high - low, 1)
    return np.where(high > low, scaled >= share, scores >= EVEN_ODDS)
