"""A closed-form classifier: kernel ridge regression on the pseudo-labels, all labels at once.

One factorisation of the features serves every penalty, every label and every kind of pseudo-labels,
and gives leave-one-out predictions with it. Of very many rows it is made of what blocks of them add
up, and some rows choose the penalty. The penalty is in the middle of those whose
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
    Matrix,
    from_unit_interval,
    label_counts,
    row_blocks,
    strong_directions,
    to_dense,
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
class Projected:
    """What the labels of n rows have along the principal axes of these."""

    n: int
    mean: Array  # (q,), of the labels
    along: Array  # (r, q), U' (labels - mean)


@dataclass(frozen=True)
class Axes:
    """Principal axes of n centred rows: X - centre = U sqrt(strengths) directions'.

    U is of these rows, with orthonormal columns, or of some of very many.
    """

    centre: Array  # (d,)
    strengths: Array  # (r,)
    U: Array  # (n, r)
    directions: Array | None  # (d, r), or None: the features lie along the axes already

    def weights(self, along: Array, penalty: float) -> Array:
        """The weights of the features ``(d, q)`` that fit values along U ``(r, q)``."""
        along = (np.sqrt(self.strengths) / (self.strengths + penalty))[:, None] * along
        return along if self.directions is None else self.directions @ along

    def shrink(self, penalty: float) -> Array:
        """What a fit leaves of the labels along each axis, ``(r,)``."""
        return self.strengths / (self.strengths + penalty)

    def project(self, labels: Array) -> Projected:
        """What labels ``(n, q)`` of the rows have along their axes."""
        mean = labels.mean(axis=0, dtype=np.float64)
        blocks = _blocks(len(self.U))
        along = sum(_wide(self.U[rows]).T @ (labels[rows] - mean) for rows in blocks)
        return Projected(len(labels), mean, along)

    def project_sums(self, n: int, total: Array, products: Array) -> Projected:
        """The same of the labels of n rows that were `added_up`."""
        assert self.directions is not None
        along = self.directions.T @ (products - np.outer(total, self.centre)).T
        return Projected(n, total / n, along / np.sqrt(self.strengths)[:, None])

    def fit(self, candidates: Array, pseudo_labels: Array, whole: Projected | None = None) -> "Fit":
        """Fit all labels, with the penalty that suits the candidates best.

        Where U is of some of very many rows, so are candidates and pseudo-labels, and the `whole`
        is of all rows.
        """
        n, mean, projected = vars(whole or self.project(pseudo_labels)).values()
        blocks = _blocks(len(self.U))

        def fitted(penalty: float, U: Array, rows: slice) -> tuple[Array, Array]:
            """Errors of the fit to all rows, and leave-one-out predictions, of some of them."""
            shrink = self.shrink(penalty).astype(U.dtype)
            centred = pseudo_labels[rows] - mean
            errors = centred - U @ (shrink[:, None] * projected).astype(U.dtype)
            leverage = np.einsum("ij,ij,j->i", U, U, shrink) + 1 / n
            return errors, _left_out(pseudo_labels[rows], errors, leverage)

        some = slice(0, len(self.U), -(-len(self.U) // MOST_RANKED))
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
            n=n,
        )


@dataclass(frozen=True)
class Fit:
    """A predictor fitted to n rows, and what the same factorisation tells beside it."""

    head: Ridge
    left_out: Array  # (n, q), leave-one-out predictions of the rows, or of some of very many
    course: pd.DataFrame  # of the search for the penalty
    axes: Axes
    penalty: float
    errors: Array  # (n, q), of the fit to all rows
    n: int  # that it was fitted to

    def leaves_out(self, X: Array, labels: Array) -> Array:
        """Leave-one-out predictions ``(b, q)`` of rows ``(b, d)`` and what was learned of them."""
        axes = self.axes
        assert axes.directions is not None
        U = _along(X, axes.centre, axes.strengths, axes.directions)
        leverage = np.einsum("ij,ij,j->i", U, U, axes.shrink(self.penalty)) + 1 / self.n
        return _left_out(labels, labels - X @ self.head.weight - self.head.bias, leverage)

    def without(self, rows: Array) -> Ridge:
        """The predictor that a fit without some of the rows gives, at the same penalty."""
        U = _wide(self.axes.U[rows])
        leverage = (U * self.axes.shrink(self.penalty)) @ U.T + 1 / self.n
        share = np.linalg.solve(np.eye(len(U)) - leverage, self.errors[rows])
        change = self.axes.weights(U.T @ share, self.penalty)
        bias = self.head.bias - share.sum(axis=0) / self.n + self.axes.centre @ change
        return Ridge(self.head.weight - change, bias)


def _left_out(labels: Array, errors: Array, leverage: Array) -> Array:
    """Leave-one-out predictions ``(n, q)``, by the errors of the fit to all rows."""
    return labels - errors / np.maximum(1 - leverage, 1e-9)[:, None]


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
    return Axes(centre, strengths, _along(X, centre, strengths, directions), directions)


def added_up(X: Array, other: Matrix) -> tuple[Array, Array]:
    """What rows ``(n, k)``, dense or sparse, add up, and their products with rows ``(n, d)``."""
    return label_counts(other), to_dense(other.T @ X)


def axes_of_sums(n: int, total: Array, products: Array, X: Array) -> Axes:
    """The principal axes of n rows that were `added_up` with themselves; U of some, ``(m, d)``."""
    centre = total / n
    strengths, directions = strong_directions(products - n * np.outer(centre, centre))
    return Axes(centre, strengths, _along(X, centre, strengths, directions), directions)


def _along(X: Array, centre: Array, strengths: Array, directions: Array) -> Array:
    """U of rows ``(n, d)``; of very many in float32."""
    blocks, turned = _blocks(len(X)), directions / np.sqrt(strengths)
    U = np.empty((len(X), len(strengths)), np.float64 if len(blocks) == 1 else np.float32)
    for rows in blocks:
        U[rows] = (X[rows] - centre) @ turned
    return U


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
