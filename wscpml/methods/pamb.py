"""PAMB-style: error-correcting output codes, many binary problems in place of label confidences.

A reconstruction: only the outline of the method is published. A column of the code puts some
labels on a + side, some on a - side and leaves out the rest; a row takes part in the column's
binary problem if its candidates meet one side and miss the other. Labels are read off all
columns' real outputs by a weighted loss.
"""

from typing import Any

import numpy as np
from scipy.special import gammaln

from wscpml.algorithm import features
from wscpml.arrays import ROWS_AT_ONCE, Array, Matrix, strong_directions
from wscpml.methods.base import Method
from wscpml.methods.linear import with_ones

DRAWS = 20  # times the code's length, the columns that are drawn at most


class PAMB(Method):
    """Ternary codes, a kernel least-squares learner per column, loss-weighted decoding.

    A learner sees only the rows that take part in its column. (A target of 0 for all others would
    be quicker, but with two coded labels little else than a regression on the candidates.)
    A label is on if its code word's loss is less than that of undecided outputs. A label that no
    column tells of keeps its share of the candidates; a single label is told from its absence.
    There are no confidences: `pseudo_labels_` are the predictions for the training rows.

    Parameters
    ----------
    coded
        Labels on the two sides of a column; None for the number that lets most rows take part,
        and of equally good ones the largest, whose sides are the most certain.
    length_factor
        There are length_factor * log2(q) columns, or fewer if no more differ.
    least
        Rows that each side of a column must have; 1 if that leaves no column.
    penalty
        Of the squared weights of a binary learner, its constant included.
    anchors, bandwidth
        Of the learners' RBF kernel map: at most so many training rows as anchors, and the
        kernel's width in units of their mean squared distance.
    """

    TITLE = "PAMB-style"
    SOURCE = "Liu, Jia and Zhang, TPAMI 2023; a reconstruction from its outline"
    GRID = {"length_factor": [100.0]}

    def __init__(
        self,
        coded: int | None = None,
        length_factor: float = 100.0,
        least: int = 5,
        penalty: float = 1.0,
        anchors: int = 1000,
        bandwidth: float = 1.0,
        random_state: Any = None,
    ) -> None:
        self.coded = coded
        self.length_factor = length_factor
        self.least = least
        self.penalty = penalty
        self.anchors = anchors
        self.bandwidth = bandwidth
        self.random_state = random_state

    def _fit(self, X: Matrix, candidates: Array, rng: np.random.Generator) -> Array:
        alone = candidates.shape[1] == 1
        labels = np.hstack([candidates, 1 - candidates]) if alone else candidates
        q = labels.shape[1]
        coded = min(self.coded or most_adequate(labels.sum(axis=1), q), q)
        length = int(np.ceil(self.length_factor * np.log2(q)))
        code = encode(labels, coded, length, self.least, rng)
        targets = sides(labels, code)

        rows = rng.choice(len(labels), size=min(self.anchors, len(labels)), replace=False)
        self.map_ = features.fit(X[rows], "none", "rbf", len(rows), 2 * self.bandwidth, 1.0, rng)
        mapped = self.map_(X).astype(float)
        # Along these directions the columns of Z are orthogonal; the learner's norm is still the
        # kernel's own, so that a penalty on its squared weights is that of kernel ridge regression.
        self.basis_ = strong_directions(mapped.T @ mapped)[1]
        Z = with_ones(mapped @ self.basis_)
        self.weight_ = masked_ridge(Z, targets, self.penalty)

        self.share_ = candidates.mean(axis=0)
        self.code_ = code[:, : candidates.shape[1]]
        self.performance_ = performance(candidates, Z @ self.weight_, self.code_)
        return self._probabilities(X) * candidates

    def _probabilities(self, X: Matrix) -> Array:
        blocks = [
            self._decoded(X[start : start + ROWS_AT_ONCE])
            for start in range(0, X.shape[0], ROWS_AT_ONCE)
        ]
        return np.vstack(blocks)

    def _decoded(self, X: Matrix) -> Array:
        outputs = with_ones(self.map_(X) @ self.basis_) @ self.weight_
        loss = decode(outputs, self.code_, self.performance_)
        # 1 / (1 + exp(-m)) for the one column of margin m
        return np.where(self.performance_.any(axis=0), 1 / (1 + loss), self.share_)


def adequacy(sizes: Array, q: int, coded: int) -> float:
    """Expected share of rows, with so many candidates each, that take part in a random column."""

    def missed(some: int) -> Array:
        """Probability that none of the candidates is among `some` random labels."""
        room = q - some - sizes
        ways = gammaln(q - some + 1) + gammaln(q - sizes + 1)
        log = ways - gammaln(np.maximum(room, 0) + 1) - gammaln(q + 1)
        return np.where(room >= 0, np.exp(log), 0)

    one = coded // 2
    return float((missed(one) + missed(coded - one) - 2 * missed(coded)).mean())


def most_adequate(sizes: Array, q: int) -> int:
    """The number of coded labels that lets most rows take part, the largest of equals."""
    choices = range(2, q + 1)
    return max(choices, key=lambda coded: (round(adequacy(sizes, q, coded), 9), coded), default=q)


def draw(count: int, q: int, coded: int, rng: np.random.Generator) -> Array:
    """Random columns ``(count, q)`` of 1, -1 and 0, the first coded label of each on the + side."""
    position = rng.permuted(np.tile(np.arange(q), (count, 1)), axis=1)
    code = (position < coded // 2).astype(np.int8) - (
        (position >= coded // 2) & (position < coded)
    ).astype(np.int8)
    first = np.take_along_axis(code, (code != 0).argmax(axis=1, keepdims=True), axis=1)
    return code * first


def sides(labels: Array, code: Array) -> Array:
    """Which side the candidates of each row lie on, ``(n, L)``: 1, -1, or 0 for both or neither."""
    single = labels.astype(np.float32)
    above, below = (single @ (code == side).T.astype(np.float32) > 0 for side in (1, -1))
    return above.astype(float) - below


def encode(labels: Array, coded: int, length: int, least: int, rng: np.random.Generator) -> Array:
    """Different random columns ``(L, q)``, L <= length, with at least so many rows per side."""
    accepted = np.empty((0, labels.shape[1]), np.int8)
    spare = accepted
    for _ in range(DRAWS):
        drawn = draw(length, labels.shape[1], coded, rng)
        targets = sides(labels, drawn)
        fewer = np.minimum((targets > 0).sum(axis=0), (targets < 0).sum(axis=0))
        before = len(accepted)
        accepted = _different(accepted, drawn[fewer >= least])[:length]
        spare = _different(spare, drawn[fewer >= 1])[:length]
        if before == len(accepted) > 0 or len(accepted) == length:
            break
    return accepted if len(accepted) else spare


def _different(code: Array, drawn: Array) -> Array:
    """All columns, without those that are there already."""
    code = np.vstack([code, drawn])
    _, first = np.unique(code, axis=0, return_index=True)
    return code[np.sort(first)]


def masked_ridge(
    Z: Array, targets: Array, penalty: float, tolerance: float = 1e-4, max_iterations: int = 100
) -> Array:
    """Weights ``(r, L)``: each column's ridge regression on the rows where its target is not 0.

    Conjugate gradients, all columns at once: products with Z are all they need. As the columns of
    Z are orthogonal and a column's rows are much like a random share of all, the diagonal of
    all rows' normal matrix, times that share, is nearly the column's own.
    """
    taking_part = targets != 0
    strengths = np.einsum("ij,ij->j", Z, Z)[:, None]
    closeness = 1 / (strengths * taking_part.mean(axis=0) + penalty)
    residual = Z.T @ targets
    enough = tolerance * np.linalg.norm(residual, axis=0)
    weight = np.zeros_like(residual)
    direction = closeness * residual
    slope = (residual * direction).sum(axis=0)
    for _ in range(max_iterations):
        if (np.linalg.norm(residual, axis=0) <= enough).all():
            break
        bent = Z.T @ (taking_part * (Z @ direction)) + penalty * direction
        step = _ratio(slope, (direction * bent).sum(axis=0))
        weight += step * direction
        residual -= step * bent
        before, improved = slope, closeness * residual
        slope = (residual * improved).sum(axis=0)
        direction = improved + _ratio(slope, before) * direction
    return weight


def _ratio(above: Array, below: Array) -> Array:
    """The quotient, 0 for a column that is solved already."""
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)


def performance(candidates: Array, outputs: Array, code: Array) -> Array:
    """Weights ``(L, q)``: how many of a label's rows a column sends to the label's side.

    They sum to 1 over the columns, or are all 0.
    """
    rows = candidates.astype(float)
    upper = (outputs > 0).T.astype(float) @ rows
    hits = np.where(code > 0, upper, rows.sum(axis=0) - upper) * (code != 0)
    return hits / np.maximum(hits.sum(axis=0), 1)


def decode(outputs: Array, code: Array, weights: Array) -> Array:
    """Exponential loss ``(n, q)`` of each label's code word under the outputs ``(n, L)``."""
    return np.exp(-outputs) @ (weights * (code > 0)) + np.exp(outputs) @ (weights * (code < 0))
