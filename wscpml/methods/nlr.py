"""NLR: a binary matrix of noise inside the candidates, beside a pair of competing classifiers.

minimise |XW - (Y - N)|^2 + |XV - (1 - Y + N)|^2 + beta |XW + XV - 1|^2
         + gamma (|W|^2 + |V|^2) + lam |N|_1     over W, V and N in {0, 1}, N <= Y

W finds the labels, V their absence. Both are kept in the directions of X = Z Q', where their
updates are diagonal: `strengths` is the diagonal of Z'Z ``(r,)``, `ones` is Z' times ones
``(r, 1)``, and `target` is Z' times what XW (or XV) should be, ``(r, q)``.
"""

from typing import Any

import numpy as np

from wscpml.arrays import Array, Matrix
from wscpml.methods.base import Method
from wscpml.methods.linear import TopScores, rotate, with_ones


def update_classifier(
    strengths: Array, target: Array, ones: Array, rival: Array, beta: float, gamma: float
) -> Array:
    """Minimise over one classifier ``(r, q)``, the other being its `rival`."""
    pull = target + beta * (ones - strengths[:, None] * rival)
    return pull / ((1 + beta) * strengths + gamma)[:, None]


def update_noise(lead: Array, candidates: Array, lam: float) -> Array:
    """Minimise over real N >= 0 on the candidates; `lead` is XW - XV, ``(n, q)``."""
    return np.maximum((1 - lead) / 2 - lam / 4, 0) * candidates


def objective(
    strengths: Array,
    target: Array,
    ones: Array,
    W: Array,
    V: Array,
    kept: Array,
    noise: Array,
    beta: float,
    gamma: float,
    lam: float,
) -> float:
    """Value of the objective, with Y - N as `kept` and N as `noise`."""

    def error(weight: Array, target: Array, square: float) -> float:
        return float((weight * (strengths[:, None] * weight - 2 * target)).sum()) + square

    left = float(kept.sum())
    fit = error(W, target, left) + error(V, ones - target, kept.size - left)
    ridge = float((W**2).sum() + (V**2).sum())
    return fit + beta * error(W + V, ones, kept.size) + gamma * ridge + lam * float(noise.sum())


class NLR(TopScores, Method):
    """Remove the candidates whose absence scores better than their presence.

    The authors round N up after its update, so the objective may rise.

    Parameters
    ----------
    lam
        A candidate goes if XW - XV < 1 - lam / 2. The authors set it per data set.
    beta, gamma
        Weights of "either present or absent", and of the ridge.
    iterations
        How many there are; the authors test no convergence.
    intercept
        The authors have none. Labels of 0 and 1 need one where features are centred, and so does
        a half that means even odds; the ranking hardly changes.
    """

    TITLE = "NLR"
    SOURCE = "Yang et al., KDD 2024; from the authors' code"
    GRID = {"lam": [1.7, 2.0, 2.1], "beta": [10.0, 100.0]}  # all that are known to have been used

    def __init__(
        self,
        lam: float = 2.0,
        beta: float = 100.0,
        gamma: float = 10.0,
        iterations: int = 100,
        intercept: bool = True,
        random_state: Any = None,
    ) -> None:
        self.lam = lam
        self.beta = beta
        self.gamma = gamma
        self.iterations = iterations
        self.intercept = intercept
        self.random_state = random_state

    def _fit(self, X: Matrix, candidates: Array, rng: np.random.Generator) -> Array:  # noqa: ARG002
        Z, strengths, Q = rotate(with_ones(X) if self.intercept else X)
        ones = Z.sum(axis=0)[:, None]
        target = Z.T @ candidates
        V = np.zeros_like(target)
        weights = self.beta, self.gamma
        for _ in range(self.iterations):
            W = update_classifier(strengths, target, ones, V, *weights)
            V = update_classifier(strengths, ones - target, ones, W, *weights)
            noise = update_noise(Z @ (W - V), candidates, self.lam) > 0
            kept = candidates - noise
            target = Z.T @ kept
            value = objective(strengths, target, ones, W, V, kept, noise, *weights, self.lam)
            self.objective_.append(value)
        weight = Q @ W
        self.weight_ = weight[: X.shape[1]]
        self.bias_ = weight[-1] if self.intercept else np.zeros(weight.shape[1])
        return kept.astype(float)
