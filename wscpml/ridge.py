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

from wscpml.arrays import Array, squeezed, strong_directions
from wscpml.metrics import average_precision, rankable

PENALTIES = 10.0 ** np.arange(-2, 2.01, 0.25)


@dataclass(frozen=True)
class Ridge:
    """A linear predictor on kernel features."""

    weight: Array  # (r, q)
    bias: Array  # (q,)

    def predict_proba(self, X: Array) -> Array:
        """Predicted value of each label, ``(n, q)``, squeezed into (0, 1)."""
        return squeezed(X @ self.weight + self.bias)


@dataclass(frozen=True)
class Fit:
    """A predictor fitted to n rows, and what the same factorisation tells beside it."""

    head: Ridge
    left_out: Array  # (n, q), leave-one-out predictions of the rows
    course: pd.DataFrame  # of the search for the penalty
    U: Array  # (n, r), left singular vectors of the centred features
    shrink: Array  # (r,), how much of each direction is fitted
    solve: Array  # (d, r), from values along U to weights
    errors: Array  # (n, q), of the fit to all rows
    centre: Array  # (d,), of the features

    def without(self, rows: Array) -> Ridge:
        """The predictor that a fit without some of the rows gives, at the same penalty."""
        U, n = self.U[rows], len(self.U)
        leverage = (U * self.shrink) @ U.T + 1 / n
        share = np.linalg.solve(np.eye(len(U)) - leverage, self.errors[rows])
        change = self.solve @ (U.T @ share)
        bias = self.head.bias - share.sum(axis=0) / n + self.centre @ change
        return Ridge(self.head.weight - change, bias)


def fit(X: Array, candidates: Array, pseudo_labels: Array) -> Fit:
    """Fit all labels on mapped features ``(n, d)``.

    The inner products of mapped features are the kernel, so this is kernel ridge regression.
    """
    n, centre = len(X), X.astype(np.float64).mean(axis=0)

    def centred() -> Array:  # made twice: while the square is factorised, each matrix counts
        wide = X.astype(np.float64)
        wide -= centre
        return wide

    strengths, directions = strong_directions(_square(centred()))
    U = centred() @ (directions / np.sqrt(strengths))
    target_mean = pseudo_labels.mean(axis=0, dtype=np.float64)
    targets = pseudo_labels - target_mean
    projected = U.T @ targets
    squares = U * U
    rows = rankable(candidates)

    def fitted(penalty: float) -> tuple[Array, Array]:
        """Errors of the fit to all rows, and leave-one-out predictions."""
        shrink = strengths / (strengths + penalty)
        errors = targets - U @ (shrink[:, None] * projected)
        leverage = squares @ shrink + 1 / n
        return errors, pseudo_labels - errors / np.maximum(1 - leverage, 1e-9)[:, None]

    course = []
    for step, penalty in enumerate(PENALTIES):
        errors, left_out = fitted(penalty)
        ranked = average_precision(candidates[rows], left_out[rows]) if rows.any() else 1.0
        course.append((step, penalty, float((errors**2).mean()), 1 - ranked))
    best = min(range(len(course)), key=lambda step: course[step][3])
    penalty = PENALTIES[best]
    errors, left_out = fitted(penalty)
    solve = directions * (np.sqrt(strengths) / (strengths + penalty))
    weight = solve @ projected
    return Fit(
        head=Ridge(weight, target_mean - centre @ weight),
        left_out=left_out,
        course=pd.DataFrame(
            course, columns=["step", "penalty", "training_loss", "validation_loss"]
        ),
        U=U,
        shrink=strengths / (strengths + penalty),
        solve=solve,
        errors=errors,
        centre=centre,
    )


def _square(X: Array) -> Array:
    return X.T @ X
