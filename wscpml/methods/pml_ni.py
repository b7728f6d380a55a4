"""PML-NI: a low-rank classifier of the labels and a sparse one of the noise, fitted as one.

minimise |Y - XW|^2 / 2 + lam |W|^2 / 2 + beta |U|_* + gamma |V|_1   subject to W = U + V

X has a last column of ones; U classifies, V identifies the noise. No entry of a matrix exceeds its
largest singular value, so with gamma >= beta, the authors' choice too, V is 0 in every iteration;
the rest is blind to rotations of X, and then happens in its directions, X = Z Q'.
"""

from typing import Any

import numpy as np

from wscpml.arrays import Array, Matrix
from wscpml.methods.base import Method
from wscpml.methods.linear import LinearScores, rotate, with_ones

FIRST_PENALTY, GROWTH, LAST_PENALTY = 1e-4, 1.1, 1e10  # mu of the augmented Lagrangian
SMALL_GAP, SMALL_STEP = 1e-7, 1e-5  # of |W - U - V| and of mu |U - previous U|, in units of |W|


def update_sum(
    strengths: Array, Q: Array | None, pull: Array, weight: float
) -> tuple[Array, float]:
    """Minimise |XW|^2 / 2 + weight |W|^2 / 2 - <pull, W> over W; returns W and |XW|^2.

    X'X is Q diag(strengths) Q'. Without Q, `pull` and W are in its directions.
    """
    rotated = (pull if Q is None else Q.T @ pull) / (strengths + weight)[:, None]
    fitted = strengths[:, None] * rotated
    W = rotated if Q is None else (pull - Q @ fitted) / weight
    return W, float((rotated * fitted).sum())


def update_classifier(goal: Array, threshold: float) -> tuple[Array, float]:
    """Minimise threshold |U|_* + |U - goal|^2 / 2 over U; returns U and its trace norm."""
    left, values, right = np.linalg.svd(goal, full_matrices=False)
    values = np.maximum(values - threshold, 0)
    return left @ (values[:, None] * right), float(values.sum())


def update_noise(goal: Array, threshold: float) -> Array:
    """Minimise threshold |V|_1 + |V - goal|^2 / 2 over V."""
    return np.sign(goal) * np.maximum(np.abs(goal) - threshold, 0)


class PMLNI(LinearScores, Method):
    """Split a linear classifier into that of the labels and that of the noise.

    A score of a half makes a label: the authors' threshold is fitted to the true labels.

    The objective is recorded at W, U and V as they are. It may rise: augmented Lagrangians
    approach W = U + V only in the end.

    Parameters
    ----------
    lam, beta, gamma
        Weights of the ridge, of the trace norm of U and of the entries of V.
    max_iterations
        When to stop if W = U + V is not reached before.
    """

    TITLE = "PML-NI"
    SOURCE = "Xie and Huang, TPAMI 2021; from the authors' code"

    def __init__(
        self,
        lam: float = 10.0,
        beta: float = 0.5,
        gamma: float = 0.5,
        max_iterations: int = 500,
        random_state: Any = None,
    ) -> None:
        self.lam = lam
        self.beta = beta
        self.gamma = gamma
        self.max_iterations = max_iterations
        self.random_state = random_state

    def _fit(self, X: Matrix, candidates: Array, rng: np.random.Generator) -> Array:  # noqa: ARG002
        Z, strengths, Q = rotate(with_ones(X))
        with_noise = self.gamma < self.beta
        B = Z.T @ candidates
        if with_noise:
            B = Q @ B
        U = V = L = np.zeros(B.shape)
        mu = FIRST_PENALTY
        for _ in range(self.max_iterations):
            pull = B + mu * (U + V) + L
            W, fitted = update_sum(strengths, Q if with_noise else None, pull, self.lam + mu)
            previous = U
            U, trace_norm = update_classifier(W - V - L / mu, self.beta / mu)
            V = update_noise(W - U - L / mu, self.gamma / mu)
            error = candidates.sum() - 2 * (B * W).sum() + fitted + self.lam * (W**2).sum()
            self.objective_.append(
                float(error / 2 + self.beta * trace_norm + self.gamma * np.abs(V).sum())
            )
            gap, size = U + V - W, np.linalg.norm(W)
            settled = mu * np.linalg.norm(U - previous) <= SMALL_STEP * size
            if settled:
                mu = min(GROWTH * mu, LAST_PENALTY)
            L = L + mu * gap
            if settled and np.linalg.norm(gap) <= SMALL_GAP * size:
                break
        if not with_noise:
            U = Q @ U
        self.weight_, self.bias_ = U[:-1], U[-1]
        return self._probabilities(X) * candidates
