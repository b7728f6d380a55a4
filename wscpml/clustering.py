"""Stage 3: weakly-supervised clustering, A = Pi * F (Eqs. 6-10, 12-19).

The paper derives the membership step from a Lagrangian that is linear in Pi, so its printed rule
is a heuristic, and the alternation has no guarantee to descend; the objective is recorded so
that everyone can see what it does. Pi, F and B are 0 off the candidates; a row without
candidates takes no part.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import xlogy

from wscpml.arrays import Array, Matrix, squared_distances
from wscpml.prototypes import centroids, memberships

SMALLEST_DISTANCE = 1e-12  # d of Eq. 18 for a row that lies on its prototype


@dataclass(frozen=True)
class Clustering:
    """What the clustering found, and its course."""

    pseudo_labels: Array  # F (n, q)
    memberships: Array  # Pi (n, q)
    prototypes: Array  # O (q, d), NaN for a label without candidates
    course: pd.DataFrame  # iteration, objective, change
    converged: bool


def update_pseudo_labels(
    distances: Array, candidates: Array, confidence: Array, pi: Array, alpha: float, beta: float
) -> Array:
    """Minimise over F (Eqs. 13-17), element by element.

    Of the two equal forms of the positive root, each is used where it does not cancel. With
    pi = 0 and B > 0 only the barrier is left and f = 1; with pi = B = 0 nothing is, and f = 0.
    """
    a0 = 2 * alpha * pi
    a1 = pi * distances - a0 * candidates
    a2 = -beta * confidence * candidates
    root = np.sqrt(a1 * a1 - 4 * a0 * a2)
    steep = a1 >= 0
    numerator = np.where(steep, -2 * a2, root - a1)
    denominator = np.where(steep, a1 + root, 2 * a0)
    # The root is at least 1 wherever the numerator is not below the denominator.
    shares = np.divide(
        numerator, denominator, out=np.ones_like(root), where=numerator < denominator
    )
    return shares * candidates * (numerator > 0)


def update_memberships(
    distances: Array, candidates: Array, pseudo_labels: Array, alpha: float, rule: str
) -> Array:
    """Share each row between its labels, by one of two rules.

    `paper` is Eq. 19 as printed: rows of Pi sum to 1. `constrained` takes the normaliser that
    the constraint of Eq. 18 asks for: rows of Pi * F sum to 1.
    """
    cost = pseudo_labels * distances + alpha * (pseudo_labels - candidates) ** 2
    pull = pseudo_labels / np.maximum(cost, SMALLEST_DISTANCE)
    total = (pull if rule == "paper" else pull * pseudo_labels).sum(axis=1, keepdims=True)
    return np.divide(pull, total, out=np.zeros_like(pull), where=total > 0)


def objective(
    distances: Array,
    candidates: Array,
    confidence: Array,
    pi: Array,
    pseudo_labels: Array,
    alpha: float,
    beta: float,
) -> float:
    """Value of the main objective, Eq. 10."""
    fit = pi * (pseudo_labels * distances + alpha * (pseudo_labels - candidates) ** 2)
    supervision = xlogy(confidence * candidates, pseudo_labels)
    return float(fit.sum() - beta * supervision.sum())


def cluster(
    X: Matrix,
    candidates: Array,
    confidence: Array,
    alpha: float,
    beta: float,
    rule: str,
    max_iterations: int,
    tolerance: float,
) -> Clustering:
    """Alternate over O, F and Pi from F = Y, Pi = U until F changes by less than `tolerance`."""
    F = candidates.astype(float)
    pi = memberships(candidates)
    course = []
    for _ in range(max_iterations):
        prototypes = centroids(X, pi * F)  # Eq. 12
        distances = np.nan_to_num(squared_distances(X, prototypes))
        previous = F
        F = update_pseudo_labels(distances, candidates, confidence, pi, alpha, beta)
        pi = update_memberships(distances, candidates, F, alpha, rule)
        change = np.linalg.norm(F - previous) / max(float(np.linalg.norm(previous)), 1e-300)
        value = objective(distances, candidates, confidence, pi, F, alpha, beta)
        course.append((value, change))
        if change < tolerance:
            break
    table = pd.DataFrame(course, columns=["objective", "change"])
    table.insert(0, "iteration", table.index + 1)
    return Clustering(F, pi, prototypes, table, converged=bool(change < tolerance))
