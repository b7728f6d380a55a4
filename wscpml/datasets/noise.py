"""Candidate noise: makes partial multi-label data of clean multi-label data.

`pad_candidates` is the paper's model. The others add a given share of all false labels: evenly,
or rather those that go with a row's true labels, or with its neighbours in feature space. What
is slow to import and not needed by `pad_candidates` is imported where it is used.
"""

import numpy as np

from wscpml.algorithm import features
from wscpml.algorithm.prototypes import memberships
from wscpml.arrays import Array, Matrix, known_rows
from wscpml.errors import UserError

FLOOR = 0.05  # of the mean affinity, added to each: every false label stays possible


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


def summary(truth: Array, candidates: Array) -> dict[str, float]:
    """How much noise there is: average label counts per row, and shares of false labels.

    Rows of unknown truth, -1, do not count.
    """
    known = known_rows(truth)
    truth, candidates = truth[known], candidates[known]
    added = int((candidates > truth).sum())
    return {
        "average_candidates": float(candidates.sum(axis=1).mean()),
        "average_true": float(truth.sum(axis=1).mean()),
        "false_share": added / max(int(candidates.sum()), 1),
        "rate": added / max(int((truth == 0).sum()), 1),
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
