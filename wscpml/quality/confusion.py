"""Labels that are confused: one that is true drags its twin in, and a row has both.

Two labels that go together more than the features foretell either belong together, or are taken for
each other. The rows that have only one of them show how such rows look: where the features lean, to
the one or to the other. Rows with both, if both are true, look like neither, but are of one kind,
in between. If they are confused, they look like the one or like the other, and nothing is in
between: a mixture of the two explains how they lean, better than any single bump does. Then a row
with both has most likely only the label that it leans to, and a row without the twin was not
dragged in by it. But if so many rows were dragged in, more rows would have both than the features
foretell of each; where they would not, the two are not confused.

Where the features hardly tell the two apart, or neither explanation is clearly better, nothing can
be said: such pairs are named, and that is all.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import expit
from scipy.stats import norm, t

from wscpml.arrays import Array

TOGETHER, SIGMAS = 0.1, 4.0  # correlation of what features do not foretell, and in deviations
FEWEST = 8  # rows that have both labels, and that have each of them alone
APART = (1.3, 1.7)  # deviations between those that have one alone: from nothing said to all
ENOUGH = 4.0  # log likelihood of a mixture beyond that of a single bump
HEAVY = 5.0  # degrees of freedom of a bump with long tails
AS_BOTH = 4.0  # rows that the spread of all counts for, in that of a few
ROUNDS = 60  # of expectation and maximisation
MOST = 1000  # pairs that are looked at, those that go together most


Column = Callable[[int], tuple[Array, Array]]


@dataclass(frozen=True)
class Confused:
    """Two labels that may be taken for each other, and the m rows that have both."""

    labels: tuple[int, int]
    sure: float  # that they are, 0 ... 1; 0 if nobody can tell
    rows: Array  # (m,)
    only: Array  # (2, m), how likely only the one label is true, and only the other
    bumps: Array  # (3, 3), share, mean and variance of leanings with one, the other, and both


def confused(P: Array, Y: Array) -> list[Confused]:
    """Pairs of labels that may be confused, by predictions P of candidates Y, both ``(n, q)``.

    Those that clearly belong together are left out.
    """
    R = Y - P
    return by_columns(R.T @ R, Y.T @ Y, len(Y), lambda j: (P[:, j], Y[:, j]))


def by_columns(products: Array, both: Array, n: int, column: Column) -> list[Confused]:
    """The same by the products of residuals and of candidates, both ``(q, q)``, over n rows.

    Of a label that is looked at, its predictions and candidates are asked for, ``(n,)`` each.
    """
    size = np.sqrt(np.maximum(products.diagonal(), 1e-12))
    together = np.triu(products / size / size[:, None], 1)
    alone = both.diagonal()[:, None] - both
    enough = np.minimum(np.minimum(both, alone), alone.T) >= FEWEST
    one, other = np.nonzero(enough & (together > max(TOGETHER, SIGMAS / np.sqrt(n))))
    most = np.argsort(-together[one, other], kind="stable")[:MOST]
    pairs = zip(one[most].tolist(), other[most].tolist(), strict=True)
    found = (_looked_at((j, k), column(j), column(k)) for j, k in pairs)
    return [pair for pair in found if pair is not None]


def _looked_at(
    labels: tuple[int, int], one: tuple[Array, Array], other: tuple[Array, Array]
) -> Confused | None:
    """Two labels, by the predictions and candidates of each; None if they belong together."""
    leaning, has = one[0] - other[0], (one[1] == 1, other[1] == 1)
    rows = np.flatnonzero(has[0] & has[1])
    alone = leaning[has[0] & ~has[1]], leaning[has[1] & ~has[0]]
    spread = float(np.concatenate([each - each.mean() for each in alone]).var()) + 1e-12
    means, spreads = ([float(of(x)) for x in alone] for of in (np.mean, partial(_shrunk, spread)))
    apart = (means[0] - means[1]) / np.sqrt(np.mean(spreads))
    if apart <= APART[0]:
        return Confused(labels, 0.0, rows, np.zeros((2, len(rows))), np.zeros((3, 3)))
    x = leaning[rows]
    each = norm.pdf(x, np.array(means)[:, None], np.sqrt(spreads)[:, None])
    gain = _mixture(each) - _single_bump(x, spread)
    if gain < -ENOUGH:
        return None
    told = min((apart - APART[0]) / (APART[1] - APART[0]), 1)
    sure = told * float(expit(2 * (gain - ENOUGH)))
    only, shares, both = _only(x, each, float(np.mean(means)), spread)
    dragged, lone = only.sum(axis=1), np.array([len(each) for each in alone])
    if _beyond_features(one[0], other[0], *dragged / (dragged + lone)) <= 0:
        sure = 0.0
    bumps = np.array([shares, [*means, both[0]], [*spreads, both[1]]])
    return Confused(labels, sure, rows, only, bumps)


def _beyond_features(one: Array, other: Array, drags: float, dragged: float) -> float:
    """How many more rows have both labels than the features foretell, if they are confused.

    Takes the predictions ``(n,)`` of the two, and the chances that a row with only the one gets the
    other too, and that one with the other gets the one. Rows with only the one are predicted to be
    `a`, and with the other `b`: one = a + b dragged, other = b + a drags.
    """
    share = 1 - drags * dragged
    a = np.clip((one - dragged * other) / share, 0, 1)
    b = np.clip((other - drags * one) / share, 0, 1)
    return float((a * drags + b * dragged - (a + b * dragged) * (b + a * drags)).sum())


def _shrunk(spread: float, x: Array) -> float:
    """The variance of a few values, with that of more of them."""
    return (len(x) * float(x.var()) + AS_BOTH * spread) / (len(x) + AS_BOTH)


def _mixture(each: Array) -> float:
    """Log likelihood of the best mixture of two densities, given at m values ``(2, m)``."""
    share = 0.5
    for _ in range(ROUNDS):
        parts = np.array([share, 1 - share])[:, None] * each + 1e-300
        share = ((parts[0] / parts.sum(axis=0)).sum() + 1) / (each.shape[1] + 2)
    return float(np.log(parts.sum(axis=0)).sum())


def _single_bump(x: Array, spread: float) -> float:
    """Log likelihood of the best bump: a normal one, or one with long tails."""
    normal = norm.logpdf(x, x.mean(), np.sqrt(_shrunk(spread, x))).sum()
    middle, scale = float(np.median(x)), float(x.var()) + spread / len(x)
    for _ in range(ROUNDS):
        weight = (HEAVY + 1) / (HEAVY + (x - middle) ** 2 / scale)
        middle = float((weight * x).sum() / weight.sum())
        scale = float(((weight * (x - middle) ** 2).sum() + spread) / (len(x) + 1))
    return float(max(normal, t.logpdf(x, HEAVY, middle, np.sqrt(scale)).sum()))


def _only(
    x: Array, each: Array, middle: float, spread: float
) -> tuple[Array, Array, tuple[float, float]]:
    """How likely each row has only the one label, or the other, ``(2, m)``; else it has both.

    Those with both are a bump of their own, which begins in between. Also gives the shares of all
    three, and the bump's mean and variance.
    """
    shares, centre, width = np.full(3, 1 / 3), middle, spread
    for _ in range(ROUNDS):
        parts = shares[:, None] * np.vstack([each, norm.pdf(x, centre, np.sqrt(width))]) + 1e-300
        parts /= parts.sum(axis=0)
        shares = (parts.sum(axis=1) + np.array([0, 0, 1])) / (len(x) + 1)
        weight = parts[2].sum() + 2
        centre = float((parts[2] @ x + 2 * middle) / weight)
        width = float((parts[2] @ (x - centre) ** 2 + 2 * spread) / weight)
    return np.asarray(parts[:2]), shares, (centre, width)


def kept(pairs: list[Confused], row: Array, label: Array) -> Array:
    """What is left of label confidences of candidates ``(m,)``, of the rows that were looked at.

    Takes the row and the label of each, row by row.
    """
    left = np.ones(len(row))
    for pair in pairs:
        for own, other_alone in zip(pair.labels, pair.only[::-1], strict=True):
            of_label = np.flatnonzero(label == own)
            left[of_label[np.isin(row[of_label], pair.rows)]] *= 1 - pair.sure * other_alone
    return left


def left(pairs: list[Confused], P: Array, Y: Array) -> Array:
    """The same of other rows, ``(b, q)``, by their predictions and candidates."""
    found = np.ones(Y.shape)
    for pair in pairs:
        one, other = pair.labels
        rows = np.flatnonzero((Y[:, one] == 1) & (Y[:, other] == 1))
        if pair.sure and len(rows):
            share, mean, variance = pair.bumps[..., None]
            x = P[rows, one] - P[rows, other]
            parts = share * norm.pdf(x, mean, np.sqrt(variance)) + 1e-300
            parts /= parts.sum(axis=0)
            found[rows, one] *= 1 - pair.sure * parts[1]
            found[rows, other] *= 1 - pair.sure * parts[0]
    return found


def dragged(pairs: list[Confused], q: int) -> Array:
    """How sure it is of each label that it is confused with another, ``(q,)``."""
    sure = np.zeros(q)
    for pair in pairs:
        labels = list(pair.labels)
        sure[labels] = np.maximum(sure[labels], pair.sure)
    return sure
