"""A closed-form classifier: kernel ridge regression on the pseudo-labels, all labels at once.

One factorisation serves every penalty and every label, and gives leave-one-out predictions with it.
The penalty is the one whose leave-one-out predictions rank each row's candidates best above its
other labels: candidates are all that it looks at, never the truth. (Their squared error would be
the usual criterion; it counts the noise that cannot be predicted, and picks penalties that are
too large where few labels of many are candidates.)
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from wscpml.arrays import Array, squeezed
from wscpml.metrics import average_precision, rankable

PENALTIES = 10.0 ** np.arange(-3, 3.01, 0.5)
WEAKEST = 1e-10  # of the strongest direction; what is weaker is rounding


@dataclass(frozen=True)
class Ridge:
    """A linear predictor on kernel features."""

    weight: Array  # (m, q)
    bias: Array  # (q,)

    def predict_proba(self, X: Array) -> Array:
        """Predicted value of each label, ``(n, q)``, squeezed into (0, 1)."""
        return squeezed(X @ self.weight + self.bias)


def fit(
    X: Array, candidates: Array, pseudo_labels: Array, anchor_kernel: Array | None
) -> tuple[Ridge, Array, pd.DataFrame]:
    """Fit on mapped features ``(n, m)``: the predictor, its leave-one-out predictions, its course.

    `anchor_kernel` ``(m, m)`` is the kernel between the anchors, whose inverse root makes the
    features those of kernel ridge regression (Nystroem); None for features that are no kernel map.
    """
    whiten = np.eye(X.shape[1]) if anchor_kernel is None else _inverse_root(anchor_kernel)
    centre = X.mean(axis=0)
    features = (X - centre) @ whiten
    strengths, directions = _strong_directions(features.T @ features)
    U = features @ (directions / np.sqrt(strengths))
    target_mean = pseudo_labels.mean(axis=0)
    targets = pseudo_labels - target_mean
    projected = U.T @ targets
    rows = rankable(candidates)

    def left_out(penalty: float) -> tuple[Array, float]:
        """Leave-one-out predictions, and the squared error of the fit to all rows."""
        shrink = strengths / (strengths + penalty)
        errors = targets - U @ (shrink[:, None] * projected)
        leverage = np.einsum("ij,j,ij->i", U, shrink, U) + 1 / len(X)
        without = errors / np.maximum(1 - leverage, 1e-9)[:, None]
        return pseudo_labels - without, float((errors**2).mean())

    course = []
    for step, penalty in enumerate(PENALTIES):
        scores, error = left_out(penalty)
        ranked = average_precision(candidates[rows], scores[rows]) if rows.any() else 1.0
        course.append((step, penalty, error, 1 - ranked))
    table = pd.DataFrame(course, columns=["step", "penalty", "training_loss", "validation_loss"])
    penalty = PENALTIES[int(table.validation_loss.argmin())]
    solved = (np.sqrt(strengths) / (strengths + penalty))[:, None] * projected
    weight = whiten @ (directions @ solved)
    return Ridge(weight, target_mean - centre @ weight), left_out(penalty)[0], table


def _inverse_root(kernel: Array) -> Array:
    """The inverse square root of a kernel matrix on its strong directions, ``(m, r)``."""
    strengths, directions = _strong_directions(kernel)
    return directions / np.sqrt(strengths)


def _strong_directions(square: Array) -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors that carry the matrix, the strongest first."""
    values, vectors = np.linalg.eigh(square)
    values, vectors = values[::-1], vectors[:, ::-1]
    kept = int((values > values[0] * WEAKEST).sum())
    return values[:kept], vectors[:, :kept]
