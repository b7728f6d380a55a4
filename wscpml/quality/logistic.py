"""Logistic regression of all labels at once, on more rows than kernel and forest can learn from.

A straight line has few weights and costs little for each row, so that of very many rows it may
learn from more. Two halves of the rows learn apart, and each speaks for the rows of the other, of
which it has seen nothing. With x in units of its deviation, z = v x + b and targets t, a half
minimises

    sum over rows and labels of log(1 + exp(z)) - t z, and |v|^2 / 2

in a few steps of L-BFGS, from labels' frequencies or from what was learned before: a sum over
blocks of rows, in their order.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse
from scipy.special import expit, logit

from wscpml.arrays import Array, Matrix, row_blocks, to_dense
from wscpml.blocks import Engine
from wscpml.randomness import mixed_bits

MOST_ROWS = 100_000  # that are learned from; of more, every second, third, ...
MOST_VALUES = 50_000_000  # of features of these rows, which are in memory in float32
MOST_MEASURED = 20_000  # by which the units of columns are found
MOST_WEIGHTS = 1_000_000  # features times labels; L-BFGS takes 200 bytes for each
STEPS, MORE_STEPS = 20, 30  # of L-BFGS, from the start and from what was learned before
ROWS_AT_ONCE = 256
VALUES = 24  # bytes that a block takes for each row and feature or label
CONSTANT = 1e-5  # deviation of a column beside its values that is taken for rounding


@dataclass(frozen=True)
class Halves:
    """What each half of the rows has learned, of features in units of their deviation."""

    centre: Array  # (d,), 0 for sparse features
    gain: Array  # (d,), 0 for a constant column
    weights: Array  # (2, d + 1, k), float32; the last of each half is its bias

    def __call__(self, scaled: Matrix, rows: Array) -> Array:
        """Predictions ``(b, k)`` for these rows, ``(b, d)``, by the half that has not seen them."""
        found, half = np.empty((len(rows), self.weights.shape[2])), half_of(rows)
        for which, weights in enumerate(self.weights):
            theirs = half != which
            found[theirs] = expit(_scores(self.taken(scaled[theirs]), weights))
        return found

    def taken(self, scaled: Matrix) -> Matrix:
        """Rows ``(b, d)`` as they are learned from, float32."""
        if sparse.issparse(scaled):
            return sparse.csr_array(scaled.multiply(self.gain), dtype=np.float32)
        return ((scaled - self.centre) * self.gain).astype(np.float32)


def many_rows(scaled: Matrix) -> Array:
    """The rows of all ``(n, d)`` that are learned from: all, or evenly spaced of very many."""
    n, most = scaled.shape[0], int(MOST_VALUES // max(_width(scaled), 1))
    return np.arange(0, n, -(-n // min(MOST_ROWS, most)))


def _width(X: Matrix) -> float:
    """The values of a row, on average."""
    return float(X.nnz / X.shape[0] if sparse.issparse(X) else X.shape[1])


def half_of(rows: Array) -> Array:
    """The half, 0 or 1, of rows by their numbers, as good as random."""
    return (mixed_bits(rows.astype(np.uint64)) & np.uint64(1)).astype(np.uint8)


def learn(scaled: Matrix, rows: Array, targets: Matrix, engine: Engine) -> Halves:
    """Learn targets ``(m, k)`` of those of all rows ``(n, d)`` that have these numbers."""
    start, half = np.zeros((2, scaled.shape[1] + 1, targets.shape[1]), np.float32), half_of(rows)
    for which in (0, 1):
        count = np.asarray(targets[half == which].sum(axis=0)).ravel()
        start[which, -1] = logit((count + 0.5) / ((half == which).sum() + 1))
    units = _units(scaled[rows[:: -(-len(rows) // MOST_MEASURED)]])
    return learn_on(Halves(*units, start), scaled, rows, targets, engine, STEPS)


def learn_on(
    before: Halves,
    scaled: Matrix,
    rows: Array,
    targets: Matrix,
    engine: Engine,
    steps: int = MORE_STEPS,
) -> Halves:
    """The same from what was learned before, by a few steps towards other targets."""
    X, half = _taken(before, scaled, rows), half_of(rows)
    alone = replace(engine, client=None, shown=False)
    weights = [
        _descend(X, targets, np.flatnonzero(half == which), start, alone, steps)
        for which, start in enumerate(before.weights)
    ]
    return replace(before, weights=np.stack(weights))


def _taken(before: Halves, scaled: Matrix, rows: Array) -> Matrix:
    """Rows by their numbers as they are learned from, made block by block."""
    if sparse.issparse(scaled):
        return before.taken(scaled[rows])
    X = np.empty((len(rows), scaled.shape[1]), np.float32)
    for block in row_blocks(len(rows), ROWS_AT_ONCE):
        X[block] = before.taken(scaled[rows[block]])
    return X


def _units(X: Matrix) -> tuple[Array, Array]:
    """The mean of each column, 0 if they are sparse, and one through its deviation."""
    mean = np.asarray(X.mean(axis=0)).ravel()
    if sparse.issparse(X):
        squares = np.asarray(X.multiply(X).mean(axis=0)).ravel()
        spread, mean = np.sqrt(np.maximum(squares - mean**2, 0)), np.zeros_like(mean)
    else:
        spread, squares = X.std(axis=0), np.einsum("ij,ij->j", X, X) / len(X)
    varies = spread > CONSTANT * np.sqrt(squares)
    return mean, np.divide(1, spread, out=np.zeros_like(spread), where=varies)


def _descend(
    X: Matrix, targets: Matrix, chosen: Array, start: Array, engine: Engine, steps: int
) -> Array:
    """Weights ``(d + 1, k)`` by some of the rows, after so many steps from those at the start."""
    from scipy.optimize import minimize

    n, blocks = len(chosen), row_blocks(len(chosen), ROWS_AT_ONCE)
    need = int(ROWS_AT_ONCE * VALUES * (_width(X) + start.shape[1])) + 2 * 8 * start.size

    def loss(flat: Array) -> tuple[float, Array]:
        weights = flat.reshape(start.shape)
        v = weights[:-1]
        total, gradient = float((v * v).sum()) / 2, np.vstack([v, np.zeros_like(v[:1])])
        work = _Loss(X, targets, chosen, weights.astype(np.float32))
        for value, slope in engine.over(work, blocks, need, "logistic regression"):
            total += value
            gradient += slope
        return total / n, gradient.ravel() / n

    found = minimize(loss, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": steps})
    return np.asarray(found.x.reshape(start.shape), np.float32)


@dataclass(frozen=True)
class _Loss:
    """The loss of a block of rows, and its gradient."""

    X: Matrix
    targets: Matrix
    chosen: Array
    weights: Array

    def __call__(self, block: slice) -> tuple[float, Array]:
        chosen = self.chosen[block]
        X, targets = self.X[chosen], to_dense(self.targets[chosen]).astype(np.float32)
        z = _scores(X, self.weights)
        small = np.exp(-abs(z))
        value = (np.maximum(z, 0) - targets * z + np.log1p(small)).sum(dtype=np.float64)
        error = np.where(z >= 0, 1, small) / (1 + small) - targets
        return float(value), np.vstack([X.T @ error, error.sum(axis=0)])


def _scores(X: Matrix, weights: Array) -> Array:
    return np.asarray(X @ weights[:-1] + weights[-1])
