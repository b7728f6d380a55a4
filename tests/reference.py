"""The clustering as the paper prints it, in plain float64: what the engine is held against."""

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.special import xlogy

from wscpml.algorithm.clustering import SMALLEST_DISTANCE, Clustering
from wscpml.algorithm.prototypes import centroids, memberships
from wscpml.arrays import squared_distances


def pseudo_labels(distances, candidates, B, pi, alpha, beta):
    """Eqs. 13-17, each of the root's two forms where it does not cancel."""
    a0 = 2 * alpha * pi
    a1 = pi * distances - a0 * candidates
    a2 = -beta * B * candidates
    root = np.sqrt(a1 * a1 - 4 * a0 * a2)
    steep = a1 >= 0
    numerator = np.where(steep, -2 * a2, root - a1)
    denominator = np.where(steep, a1 + root, 2 * a0)
    shares = np.divide(
        numerator, denominator, out=np.ones_like(root), where=numerator < denominator
    )
    return shares * candidates * (numerator > 0)


def shares(distances, candidates, F, alpha, rule):
    """Eq. 19, or its constrained form."""
    cost = F * distances + alpha * (F - candidates) ** 2
    pull = F / np.maximum(cost, SMALLEST_DISTANCE)
    total = (pull if rule == "paper" else pull * F).sum(axis=1, keepdims=True)
    return np.divide(pull, total, out=np.zeros_like(pull), where=total > 0)


def objective(distances, candidates, B, pi, F, alpha, beta):
    """Eq. 10."""
    fit = pi * (F * distances + alpha * (F - candidates) ** 2)
    return float(fit.sum() - beta * xlogy(B * candidates, F).sum())


def cluster(X, candidates, B, alpha, beta, rule, max_iterations, tolerance):
    """Algorithm 1, stage 3."""
    F, pi, course = candidates.astype(float), memberships(candidates), []
    for _ in range(max_iterations):
        prototypes = centroids(X, pi * F)
        distances = np.nan_to_num(squared_distances(X, prototypes))
        previous = F
        F = pseudo_labels(distances, candidates, B, pi, alpha, beta)
        pi = shares(distances, candidates, F, alpha, rule)
        change = np.linalg.norm(F - previous) / np.linalg.norm(previous)
        value = objective(distances, candidates, B, pi, F, alpha, beta)
        course.append((value, change))
        if change < tolerance:
            break
    table = pd.DataFrame(course, columns=["objective", "change"])
    return Clustering(*map(sparse.csr_array, (F, pi)), prototypes, table, bool(change < tolerance))
