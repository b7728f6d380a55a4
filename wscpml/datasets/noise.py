"""Candidate noise: makes partial multi-label data of clean multi-label data.

`pad_candidates` is the paper's model. The others add false labels: evenly, or with a chance that
differs from label to label or from row to row, in proportion to how frequent a label is, rather
those that go with a row's true labels, with its neighbours in feature space, or that are the twin
of a true one. What is slow to import and not needed by `pad_candidates` is imported where it is
used.
"""

from typing import Literal

import numpy as np

from wscpml.algorithm import features
from wscpml.algorithm.prototypes import memberships
from wscpml.arrays import Array, Matrix, known_rows, values_at
from wscpml.errors import UserError

FLOOR = 0.05  # of the mean affinity, added to each: every false label stays possible
UNEVEN = 2.0  # a + b of the Beta distribution that labels' own rates are drawn from

Kind = Literal[
    "pad",
    "uniform",
    "per_label",
    "per_row",
    "frequency",
    "label_dependent",
    "instance_dependent",
    "twins",
]


def inject(
    kind: Kind,
    truth: Array,
    X: Matrix,
    candidates: int | None,
    rate: float,
    missing: float,
    rng: np.random.Generator,
) -> Array:
    """Candidates ``(n, q)`` by a kind of noise.

    Takes the truth ``(n, q)``, the features ``(n, d)``, the number of `candidates` that rows are
    padded to, the `rate` of the other kinds, and the share of true labels that are lost.
    """
    if kind == "pad":
        assert candidates is not None
        noisy = pad_candidates(truth, candidates, rng)
    elif kind == "instance_dependent":
        noisy = instance_dependent(truth, X, rate, rng)
    else:
        models = {
            "uniform": uniform,
            "per_label": per_label,
            "per_row": per_row,
            "frequency": by_frequency,
            "label_dependent": label_dependent,
            "twins": twins,
        }
        noisy = models[kind](truth, rate, rng)
    return lose(truth, noisy, missing, rng) if missing else noisy


def pad_candidates(truth: Array, r: int, rng: np.random.Generator) -> Array:
    """Candidates ``(n, q)``: each row's true labels, padded at random to ``r`` labels in all.

    A row that has ``r`` or more true labels keeps just those.
    """
    q = truth.shape[1]
    if r > q:
        raise UserError(f"noise.candidates: must be at most {q}, the number of labels, got {r}")
    draw = rng.random(truth.shape) + truth  # true labels draw from [1, 2): they come first
    position = np.argsort(np.argsort(-draw, axis=1), axis=1)
    return ((position < r) | (truth == 1)).astype(np.uint8)


def uniform(truth: Array, rate: float, rng: np.random.Generator) -> Array:
    """Candidates ``(n, q)``: the truth, and every false label with probability `rate`."""
    return _add(truth, rate, rng)


def per_label(truth: Array, rate: float, rng: np.random.Generator) -> Array:
    """Candidates ``(n, q)``: the truth, and false labels with a chance of their label's own.

    The chances are drawn from a Beta distribution with mean `rate`, as crowds have it: at a rate
    of 0.25, Beta(0.5, 1.5), some labels are hardly ever given wrongly, and some mostly.
    """
    own = rng.beta(UNEVEN * rate, UNEVEN * (1 - rate), truth.shape[1])
    return _add(truth, own, rng)


def per_row(truth: Array, rate: float, rng: np.random.Generator) -> Array:
    """Candidates ``(n, q)``: the truth, and false labels with a chance of their row's own.

    The chances are drawn as those of `per_label`: some rows are tagged with care, and some without.
    """
    own = rng.beta(UNEVEN * rate, UNEVEN * (1 - rate), (len(truth), 1))
    return _add(truth, own, rng)


def by_frequency(truth: Array, rate: float, rng: np.random.Generator) -> Array:
    """Candidates ``(n, q)``: the truth, and false labels in proportion to their label's frequency.

    Of all false labels a share `rate` is added.
    """
    affinity = np.broadcast_to(truth.mean(axis=0), truth.shape)
    return _add_by_affinity(truth, affinity, rate, rng)


def twins(truth: Array, rate: float, rng: np.random.Generator) -> Array:
    """Candidates ``(n, q)``: the truth, and with chance `rate` the twin of every true label.

    Labels are paired at random: who sees "rock" says "metal" too, and the other way round. Of an
    odd number, the one that is left drags the first one in.
    """
    order = rng.permutation(truth.shape[1])
    twin = np.empty_like(order)
    half = len(order) // 2
    twin[order[:half]], twin[order[half : 2 * half]] = order[half : 2 * half], order[:half]
    twin[order[2 * half :]] = order[0]
    dragged = np.zeros(truth.shape)
    np.maximum.at(dragged.T, twin, truth.T)
    return _add(truth, rate * dragged, rng)


def lose(truth: Array, candidates: Array, share: float, rng: np.random.Generator) -> Array:
    """The candidates without a share of the true ones; a row keeps at least one of its own."""
    draw = np.where(truth == 1, rng.random(truth.shape), 2.0)
    lost = draw < share
    kept = np.where(truth == 1, draw, -1).argmax(axis=1)
    lost[np.arange(len(truth)), kept] = False
    return np.where(lost, 0, candidates).astype(np.uint8)


def label_dependent(truth: Array, rate: float, rng: np.random.Generator) -> Array:
    """Candidates ``(n, q)``: the truth, and false labels that often go with the row's true ones.

    Affinity is the mean of P(label | true label) over the row's true labels; a row without any
    takes the label frequencies.
    """
    labels = truth.astype(float)
    together = labels.T @ labels
    given = together / np.maximum(together.diagonal(), 1)[:, None]
    labelled = truth.any(axis=1, keepdims=True)
    affinity = np.where(labelled, memberships(truth) @ given, labels.mean(axis=0))
    return _add_by_affinity(truth, affinity, rate, rng)


def instance_dependent(
    truth: Array,
    X: Matrix,
    rate: float,
    rng: np.random.Generator,
    neighbours: int = 10,
) -> Array:
    """Candidates ``(n, q)``: the truth, and false labels that the nearest other rows have.

    Affinity is the share of the neighbours with the label, after min-max scaling of ``X``.
    """
    from sklearn import config_context
    from sklearn.neighbors import NearestNeighbors

    k = min(neighbours, len(truth) - 1)
    if k == 0:
        return uniform(truth, rate, rng)
    scaled = features.fit_scaling(X, "minmax").scale(X)
    search = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(scaled)
    # sklearn's faster searches break ties (common among 0/1 features) in one way for dense and in
    # another for sparse features, and not always alike with another number of threads.
    with config_context(enable_cython_pairwise_dist=False, working_memory=64):  # MB
        affinity = search.kneighbors_graph() @ truth / k
    return _add_by_affinity(truth, affinity, rate, rng)


def summary(truth: Matrix, candidates: Matrix) -> dict[str, float]:
    """How much noise there is: average label counts per row, and shares of false labels.

    Both are ``(n, q)``, dense or sparse. Rows of unknown truth, -1, do not count.
    """
    known = known_rows(truth)
    truth, candidates = truth[known], candidates[known]
    given, true = np.nonzero(candidates), int(truth.sum())
    added = int((values_at(truth, *given) == 0).sum())
    return {
        "average_candidates": float(candidates.sum(axis=1).mean()),
        "average_true": float(truth.sum(axis=1).mean()),
        "false_share": added / max(int(candidates.sum()), 1),
        "rate": added / max(truth.shape[0] * truth.shape[1] - true, 1),
    }


def _add(truth: Array, probability: Array | float, rng: np.random.Generator) -> Array:
    """The truth, and every false label with its probability; one above 1 counts as 1."""
    return ((rng.random(truth.shape) < probability) | (truth == 1)).astype(np.uint8)


def _add_by_affinity(truth: Array, affinity: Array, rate: float, rng: np.random.Generator) -> Array:
    """The truth, and a share `rate` of all false labels, by p = min(1, c (affinity + floor))."""
    from scipy.optimize import brentq

    false = truth == 0
    total = affinity[false].sum()
    if total == 0:
        return uniform(truth, rate, rng)
    weight = affinity * (false.sum() / total) + FLOOR  # in units of the mean affinity
    drawn = weight[false]
    c = brentq(lambda c: np.minimum(c * drawn, 1).mean() - rate, 0, 1 / FLOOR)
    return _add(truth, c * weight, rng)
