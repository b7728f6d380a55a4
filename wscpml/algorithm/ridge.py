"""A closed-form classifier: kernel ridge regression on the pseudo-labels, all labels at once.

One factorisation of the features serves every penalty, every label and every kind of pseudo-labels,
and gives leave-one-out predictions with it. The penalty is in the middle of those whose
leave-one-out predictions rank each row's candidates best above its other labels: candidates are all
that it looks at, never the truth. (Their squared error would be the usual criterion; it counts the
noise that cannot be predicted, and picks penalties that are too large where few labels of many are
candidates.)
"""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from wscpml.arrays import (
    EVEN_ODDS,
    Array,
    from_unit_interval,
    row_blocks,
    strong_directions,
    to_unit_interval,
)
from wscpml.evaluation.metrics import average_precision, rankable

PENALTIES = 10.0 ** np.arange(-2, 2.01, 0.25)
AS_GOOD = 0.003  # average precision that is lost in the noise of the candidates
MOST_RANKED = 2000  # rows that the penalty is chosen on; of more, every second, third, ...
FEW, ROWS_AT_ONCE = 16_384, 4096  # of more rows, axes are made in blocks and kept in float32
PROBES, ORTHOGONAL = 8, 1e-3  # random sums of columns, and how far their products may be off


@dataclass(frozen=True)
class Ridge:
    """A linear predictor on kernel features."""

    weight: Array  # (r, q)
    bias: Array  # (q,)

    def predict_proba(self, X: Array) -> Array:
        """Predicted value of each label, ``(n, q)``, to_unit_interval into (0, 1)."""
        blocks = row_blocks(len(X), ROWS_AT_ONCE) or [slice(None)]
        return np.concatenate([to_unit_interval(X[b] @ self.weight + self.bias) for b in blocks])

    def with_even_odds_at(self, probability: float) -> "Ridge":
        """The same predictor, shifted so that this probability becomes a half."""
        shift = EVEN_ODDS - from_unit_interval(np.array(probability))
        return replace(self, bias=self.bias + shift)


@dataclass(frozen=True)
class Axes:
    """Principal axes of n centred rows: X - centre = U sqrt(strengths) directions'."""

    centre: Array  # (d,)
    strengths: Array  # (r,)
    U: Array  # (n, r), orthonormal columns
    directions: Array | None  # (d, r), or None: the features lie along the axes already

    def weights(self, along: Array, penalty: float) -> Array:
        """The weights of the features ``(d, q)`` that fit values along U ``(r, q)``."""
        along = (np.sqrt(self.strengths) / (self.strengths + penalty))[:, None] * along
        return along if self.directions is None else self.directions @ along

    def fit(self, candidates: Array, pseudo_labels: Array) -> "Fit":
        """Fit all labels, with the penalty that suits the candidates best."""
        n, blocks = len(self.U), _blocks(len(self.U))
        mean = pseudo_labels.mean(axis=0, dtype=np.float64)
        projected = sum(_wide(self.U[rows]).T @ (pseudo_labels[rows] - mean) for rows in blocks)

        def fitted(penalty: float, U: Array, rows: slice) -> tuple[Array, Array]:
            """Errors of the fit to all rows, and leave-one-out predictions, of some of them."""
            shrink = (self.strengths / (self.strengths + penalty)).astype(U.dtype)
            centred = pseudo_labels[rows] - mean
            errors = centred - U @ (shrink[:, None] * projected).astype(U.dtype)
            leverage = np.einsum("ij,ij,j->i", U, U, shrink) + 1 / n
            return errors, pseudo_labels[rows] - errors / np.maximum(1 - leverage, 1e-9)[:, None]

        some = slice(0, n, -(-n // MOST_RANKED))
        few, Y = self.U[some].astype(np.float32), candidates[some]
        ranked = rankable(Y)
        course = []
        for step, penalty in enumerate(PENALTIES):
            errors, left_out = fitted(penalty, few, some)
            best = average_precision(Y[ranked], left_out[ranked]) if ranked.any() else 1.0
            course.append((step, penalty, float((errors**2).mean()), 1 - best))
        losses = np.array([loss for *_, loss in course])
        penalty = np.exp(np.log(PENALTIES[losses <= losses.min() + AS_GOOD]).mean())
        shape = pseudo_labels.shape
        errors, left_out = np.empty(shape, self.U.dtype), np.empty(shape)
        for rows in blocks:
            errors[rows], left_out[rows] = fitted(penalty, self.U[rows], rows)
        weight = self.weights(projected, penalty)
        return Fit(
            head=Ridge(weight, mean - self.centre @ weight),
            left_out=left_out,
            course=pd.DataFrame(
                course, columns=["step", "penalty", "training_loss", "validation_loss"]
            ),
            axes=self,
            penalty=penalty,
            errors=errors,
        )


@dataclass(frozen=True)
class Fit:
    """A predictor fitted to n rows, and what the same factorisation tells beside it."""

    head: Ridge
    left_out: Array  # (n, q), leave-one-out predictions of the rows
    course: pd.DataFrame  # of the search for the penalty
    axes: Axes
    penalty: float
    errors: Array  # (n, q), of the fit to all rows

    def without(self, rows: Array) -> Ridge:
        """The predictor that a fit without some of the rows gives, at the same penalty."""
        U, n = _wide(self.axes.U[rows]), len(self.axes.U)
        shrink = self.axes.strengths / (self.axes.strengths + self.penalty)
        leverage = (U * shrink) @ U.T + 1 / n
        share = np.linalg.solve(np.eye(len(U)) - leverage, self.errors[rows])
        change = self.axes.weights(U.T @ share, self.penalty)
        bias = self.head.bias - share.sum(axis=0) / n + self.axes.centre @ change
        return Ridge(self.head.weight - change, bias)


def _blocks(n: int) -> list[slice]:
    """All of n rows, or blocks of very many."""
    return row_blocks(n, n if n <= FEW else ROWS_AT_ONCE)


def _wide(values: Array) -> Array:
    return values.astype(np.float64, copy=False)


def fit(X: Array, candidates: Array, pseudo_labels: Array) -> Fit:
    """Fit all labels on mapped features ``(n, d)``.

    The inner products of mapped features are the kernel, so this is kernel ridge regression.
    """
    return factorise(X).fit(candidates, pseudo_labels)


def factorise(X: Array) -> Axes:
    """The principal axes of rows ``(n, d)``.

    A kernel map with every row as an anchor has made them its features; then nothing is left to do.
    """
    centre = X.mean(axis=0, dtype=np.float64)
    blocks = _blocks(len(X))
    if len(blocks) == 1:
        wide = X - centre
        lengths = np.sqrt(np.einsum("ij,ij->j", wide, wide))
        if lengths.all() and _orthogonal(wide, lengths):
            wide /= lengths
            return Axes(centre, lengths**2, wide, None)
    strengths, directions = strong_directions(_products(X, centre, blocks))
    turned = directions / np.sqrt(strengths)
    U = np.empty((len(X), len(strengths)), np.float64 if len(blocks) == 1 else np.float32)
    for rows in blocks:
        U[rows] = (X[rows] - centre) @ turned
    return Axes(centre, strengths, U, directions)


def _products(X: Array, centre: Array, blocks: list[slice]) -> Array:
    """The products ``(d, d)`` of the columns of centred rows."""
    total = np.zeros((X.shape[1], X.shape[1]))
    for rows in blocks:
        wide = X[rows] - centre
        total += wide.T @ wide
    return total


def _orthogonal(X: Array, lengths: Array) -> bool:
    """Whether no two columns have anything in common, by a few random sums of them."""
    sums = np.random.default_rng(0).choice([-1.0, 1.0], (X.shape[1], PROBES))
    back = (X.T @ (X @ (sums / lengths[:, None]))) / lengths[:, None]
    return bool(abs(back - sums).max() < ORTHOGONAL)
