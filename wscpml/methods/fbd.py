"""FBD-style: a fuzzy confidence, refined by prototypes of the features and of the labels.

A reconstruction of FBD-PML from its abstract: the objective, its updates and the role of each
weight are ours. Over prototypes Vx (q, d) and Vf (q, q), weights W, predictive labels
F (n, q) with 0 <= F <= Y, and a confidence P (n, q) that shares each row between its candidates:

    |X W - F|^2 + ridge |W|^2 + fidelity (|F - Y|^2 + |F - P|^2) + manifold tr(P^T (D - S) P)
        + sum_ij P_ij^m (feature_clusters |x_i - vx_j|^2 + label_clusters |f_i - vf_j|^2)

where W has a bias too, S is a graph of nearest neighbours and D its degrees.
"""

from typing import Any

import numpy as np
from scipy import sparse

from wscpml.algorithm.prototypes import centroids, memberships
from wscpml.arrays import Array, Matrix, squared_distances
from wscpml.methods.base import Method
from wscpml.methods.linear import LinearScores, rotate, with_ones
from wscpml.methods.neighbours import neighbour_graph


class RidgeStep:
    """Minimise over W: ridge regression of F on the features, factored once."""

    def __init__(self, X: Matrix, ridge: float) -> None:
        self.Z, strengths, self.Q = rotate(X)
        self.held = (strengths + ridge)[:, None]

    def __call__(self, targets: Array) -> Array:
        """The weights ``(d, q)``."""
        return self.Q @ (self.Z.T @ targets / self.held)


def update_labels(
    scores: Array,
    candidates: Array,
    confidence: Array,
    weights: Array,
    prototypes: Array,
    label_clusters: float,
    fidelity: float,
) -> Array:
    """Minimise over F, element by element, given X W, P, P^m and Vf."""
    pulled = scores + label_clusters * weights @ prototypes + fidelity * (candidates + confidence)
    held = 1 + label_clusters * weights.sum(axis=1, keepdims=True) + 2 * fidelity
    return np.clip(pulled / held, 0, candidates)


def multiplicative_step(
    labels: Array,
    confidence: Array,
    cost: Array,
    graph: sparse.csr_array,
    fuzzifier: float,
    manifold: float,
    fidelity: float,
) -> Array:
    """P times the falling over the rising part of its gradient; `cost` is what P^m weighs."""
    degree = graph.sum(axis=1)[:, None]
    falling = 2 * (manifold * (graph @ confidence) + fidelity * labels)
    rising = fuzzifier * confidence ** (fuzzifier - 1) * cost
    rising += 2 * (manifold * degree + fidelity) * confidence
    return np.divide(confidence * falling, rising, out=np.zeros_like(rising), where=rising > 0)


def shared(confidence: Array) -> Array:
    """The confidence with rows that sum to 1, or to 0 where nothing is left."""
    total = confidence.sum(axis=1, keepdims=True)
    return np.divide(confidence, total, out=np.zeros_like(confidence), where=total > 0)


class FBD(LinearScores, Method):
    """Fuzzy clusters of features and of labels in turn say which candidates to trust.

    A reconstruction from the abstract, not the authors' method. Five weights are on record
    without their terms: 1e-4, 1, 1e-3, 1e-3, 1e-2. The first three are used in that order; with
    the last two nothing would hold F, which shrinks until no label is predicted, so `fidelity`
    is that of the fit to X W, and `ridge` is that of PML-LENFN's code for the same term.

    Parameters
    ----------
    feature_clusters, label_clusters, manifold, fidelity, ridge
        Weights of the objective's terms.
    fuzzifier
        The power m of the confidence; with 2 the step on P would never raise the objective, did
        its rows not have to be scaled to 1 again.
    neighbours, bandwidth
        Of the graph: neighbours of each row, and the width of its Gaussian weights in units of
        their mean squared distance.
    max_iterations, tolerance
        It stops once the objective changes by less than this share.
    """

    TITLE = "FBD-style"
    SOURCE = "Fang et al., Neural Networks 2025; a reconstruction from the abstract"
    GRID = {"fidelity": [1e-3, 1.0], "ridge": [1e-2, 10.0]}

    def __init__(
        self,
        feature_clusters: float = 1e-4,
        label_clusters: float = 1.0,
        manifold: float = 1e-3,
        fidelity: float = 1.0,
        ridge: float = 10.0,
        fuzzifier: float = 2.0,
        neighbours: int = 5,
        bandwidth: float = 1.0,
        max_iterations: int = 50,
        tolerance: float = 1e-4,
        random_state: Any = None,
    ) -> None:
        self.feature_clusters = feature_clusters
        self.label_clusters = label_clusters
        self.manifold = manifold
        self.fidelity = fidelity
        self.ridge = ridge
        self.fuzzifier = fuzzifier
        self.neighbours = neighbours
        self.bandwidth = bandwidth
        self.max_iterations = max_iterations
        self.tolerance = tolerance
        self.random_state = random_state

    def _fit(self, X: Matrix, candidates: Array, rng: np.random.Generator) -> Array:  # noqa: ARG002
        graph = neighbour_graph(X, self.neighbours, self.bandwidth)
        extended = with_ones(X)
        ridge_step = RidgeStep(extended, self.ridge)
        F, P = candidates.astype(float), memberships(candidates)
        previous = np.inf
        for _ in range(self.max_iterations):
            weights = P**self.fuzzifier
            # A label without weight has no prototype; nothing of it counts anywhere.
            Vx, Vf = (np.nan_to_num(centroids(each, weights)) for each in (X, F))
            W = ridge_step(F)
            scores = extended @ W
            F = update_labels(
                scores, candidates, P, weights, Vf, self.label_clusters, self.fidelity
            )
            cost = self.feature_clusters * squared_distances(X, Vx)
            cost += self.label_clusters * squared_distances(F, Vf)
            P = shared(
                multiplicative_step(F, P, cost, graph, self.fuzzifier, self.manifold, self.fidelity)
            )
            value = self._objective(candidates, scores, W, F, P, cost, graph)
            self.objective_.append(value)
            if abs(previous - value) <= self.tolerance * value:
                break
            previous = value
        self.weight_, self.bias_ = W[:-1], W[-1]
        return F

    def _objective(
        self,
        candidates: Array,
        scores: Array,
        W: Array,
        F: Array,
        P: Array,
        cost: Array,
        graph: sparse.csr_array,
    ) -> float:
        linear = ((scores - F) ** 2).sum() + self.ridge * (W**2).sum()
        fidelity = ((F - candidates) ** 2).sum() + ((F - P) ** 2).sum()
        rough = (graph.sum(axis=1)[:, None] * P**2).sum() - (P * (graph @ P)).sum()
        clusters = (P**self.fuzzifier * cost).sum()
        return float(linear + self.fidelity * fidelity + self.manifold * rough + clusters)
