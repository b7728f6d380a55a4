"""ML-kNN on the candidates as they are, a plain reference."""

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

from wscpml.arrays import Array, Matrix
from wscpml.methods.base import Method


def likelihoods(counts: Array, labels: Array, k: int, smoothing: float) -> tuple[Array, Array]:
    """How likely each count of neighbours is for rows with a label and without, ``(k + 1, q)``.

    `counts` ``(n, q)`` says how many of a row's k neighbours have the label.
    """
    tally = [
        np.array([((counts == c) & rows).sum(axis=0) for c in range(k + 1)])
        for rows in (labels == 1, labels == 0)
    ]
    on, off = ((t + smoothing) / (t.sum(axis=0) + smoothing * (k + 1)) for t in tally)
    return on, off


class MLkNN(Method):
    """Bayes' rule on how many of the nearest rows have the label among their candidates.

    Parameters
    ----------
    k, smoothing
        Number of neighbours, and what is added to every count.
    """

    TITLE = "ML-kNN"
    SOURCE = "Zhang and Zhou, Pattern Recognition 2007; on the candidates"

    def __init__(self, k: int = 10, smoothing: float = 1.0, random_state: Any = None) -> None:
        self.k = k
        self.smoothing = smoothing
        self.random_state = random_state

    def _fit(self, X: Matrix, candidates: Array, rng: np.random.Generator) -> Array:  # noqa: ARG002
        n = len(candidates)
        k = max(1, min(self.k, n - 1))
        self.neighbours_ = NearestNeighbors(n_neighbors=k).fit(X)
        self.sparse_ = sparse.issparse(X)
        self.labels_ = candidates.astype(float)
        counts = self._counts(None)
        prior = (self.smoothing + self.labels_.sum(axis=0)) / (2 * self.smoothing + n)
        on, off = likelihoods(counts, candidates, k, self.smoothing)
        self.posterior_ = prior * on / (prior * on + (1 - prior) * off)  # (k + 1, q)
        return self._looked_up(counts) * candidates

    def _counts(self, X: Matrix | None) -> Array:
        """Of each row's neighbours, how many have the label, ``(n, q)``; None: the fitted rows."""
        with threadpool_limits(1):  # which of equally near rows comes first depends on the threads
            graph = self.neighbours_.kneighbors_graph(X)
        return (graph @ self.labels_).astype(np.intp)

    def _looked_up(self, counts: Array) -> Array:
        return np.take_along_axis(self.posterior_, counts, axis=0)

    def _probabilities(self, X: Matrix) -> Array:
        if self.sparse_ and not sparse.issparse(X):  # among equally near rows, the same come first
            X = sparse.csr_array(X)
        return self._looked_up(self._counts(X))
