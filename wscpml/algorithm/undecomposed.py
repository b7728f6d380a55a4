"""Clustering without the decomposition A = Pi * F: Eq. 6, the paper's ablation ND.

Memberships A themselves are the pseudo-labels, so those of a row share one. Like Pi and F they are
0 off the candidates, which Eq. 6 leaves open; a row without candidates takes no part. Both steps
are exact, so the objective never rises.
"""

import numpy as np
import pandas as pd
from scipy import sparse

from wscpml.algorithm.clustering import Clustering
from wscpml.algorithm.prototypes import centroids, memberships
from wscpml.arrays import Array, Matrix, squared_distances

MOST_STEPS = 100  # of Newton's method, which needs about ten
SMALLEST_STEP = 1e-13  # as a share of s


def cluster(
    X: Matrix,
    candidates: Array,
    confidence: Array,
    weight: float,
    max_iterations: int,
    tolerance: float,
) -> Clustering:
    """Alternate over O and A from A = U until A changes by less than `tolerance`.

    `weight` is lambda of Eq. 6.
    """
    A = memberships(candidates)
    weights = weight * confidence.astype(float) * A
    prototypes = centroids(X, A)
    course: list[tuple[int, float, float]] = []
    for iteration in range(1, max_iterations + 1):
        distances = squared_distances(X, prototypes)
        before, A = A, update_memberships(distances, weights, candidates)
        moved = centroids(X, A)
        prototypes = np.where(np.isnan(moved), prototypes, moved)  # a label that lost all rows
        change = float(np.linalg.norm(A - before)) / max(float(np.linalg.norm(before)), 1e-300)
        course.append((iteration, objective(distances, weights, A), change))
        if change < tolerance:
            break
    stored = sparse.csr_array(candidates)
    stored = sparse.csr_array((A[candidates == 1], stored.indices, stored.indptr), stored.shape)
    table = pd.DataFrame(course, columns=["iteration", "objective", "change"])
    return Clustering(stored, stored, prototypes, table, converged=change < tolerance)


def update_memberships(distances: Array, weights: Array, candidates: Array) -> Array:
    """Minimise sum_j a_j D_j - w_j ln a_j over each row's candidates, where a sums to 1.

    Setting the derivative to zero gives a_j = w_j / (D_j - mu). With s = min D - mu that is
    w_j / (e_j + s), where e_j is how much farther j is than the nearest label that has a weight;
    Newton's method on 1 / sum_j a_j, which is concave in s, goes up to the s that makes the sum
    1. A candidate without weight gets nothing unless it is nearer by more than s: then it is
    mu's bound, and the nearest such takes what the others leave.
    """
    given = candidates == 1
    weighted = given & (weights > 0)
    w = np.where(weighted, weights, 0)
    known, free = (np.where(part, distances, np.inf) for part in (weighted, given & ~weighted))
    nearest, bound = known.min(axis=1), free.min(axis=1)
    farther = np.where(weighted, known - np.where(np.isinf(nearest), 0, nearest)[:, None], 1)
    s = np.where(weighted & (farther == 0), w, 0).max(axis=1)
    for _ in range(MOST_STEPS):
        A = w / (farther + s[:, None])
        total, slope = A.sum(axis=1), (A / (farther + s[:, None])).sum(axis=1)
        step = np.divide(total * (total - 1), slope, out=np.zeros_like(s), where=slope > 0)
        s += step
        if (np.abs(step) <= SMALLEST_STEP * s).all():
            break
    binding = np.isfinite(bound) & (bound < nearest - s)
    s[binding] = nearest[binding] - bound[binding]
    A = w / (farther + s[:, None])
    A[binding, free.argmin(axis=1)[binding]] = (1 - A.sum(axis=1))[binding]
    return A


def objective(distances: Array, weights: Array, A: Array) -> float:
    """Value of Eq. 6."""
    some, supervised = A > 0, weights > 0
    pull = float((A[some] * distances[some]).sum())
    return pull - float((weights[supervised] * np.log(A[supervised])).sum())
