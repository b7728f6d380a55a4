"""PML-LENFN: labels enhanced by near and far rows, then a linear and a sigmoid model that agree.

The objective over W (d, q), U (q, q) and V (d, q), with H = sigmoid(X V) and a constant feature:

    |X W - J|^2 + |X W - H U|^2
        + ridge |W|^2 + relations tr(W L W^T) + output_ridge |U|^2 + hidden_ridge |V|^2
"""

from typing import Any

import numpy as np
from scipy.special import expit

from wscpml.arrays import Array, Matrix
from wscpml.methods.base import Method
from wscpml.methods.linear import TopScores, rotate, with_ones
from wscpml.methods.neighbours import distance_blocks

SMALLEST_WIDTH = 1e-300  # of the kernel, where every row has an equal one
SETTLING = 5  # iterations before it may stop


def enhanced_labels(
    X: Matrix, candidates: Array, own_share: float, far_share: float, band: float
) -> Array:
    """J: a row's candidates weighted by themselves, its near rows and its far rows, ``(n, q)``.

    A row is near itself. Near (far) is a similarity within the share `band` of the row's range
    of similarities from its top (bottom).
    """
    labels = candidates.astype(float)
    width = 2 * mean_nearest_distance(X) ** 2
    near, far = np.empty_like(labels), np.empty_like(labels)
    for block, squared in distance_blocks(X):
        similarity = np.exp(-np.sqrt(squared) / max(width, SMALLEST_WIDTH))
        lowest = similarity.min(axis=1, keepdims=True)
        margin = band * (1 - lowest)  # a row's similarity to itself is 1
        near[block] = _means(similarity >= 1 - margin, labels)
        far[block] = 1 - _means(similarity <= lowest + margin, labels)
    return labels * (own_share * labels + (1 - own_share - far_share) * near + far_share * far)


def mean_nearest_distance(X: Matrix) -> float:
    """Mean over the rows of the distance to the nearest other row; infinite for one row."""
    nearest = np.empty(X.shape[0])
    for block, squared in distance_blocks(X):
        np.fill_diagonal(squared[:, block], np.inf)
        nearest[block] = squared.min(axis=1)
    return float(np.sqrt(nearest).mean())


def _means(chosen: Array, labels: Array) -> Array:
    """Mean of the chosen rows ``(m, n)`` of the labels."""
    return chosen.astype(float) @ labels / chosen.sum(axis=1, keepdims=True)


def label_laplacian(labels: Array) -> Array:
    """L = diag(C 1) - C with C_ij = J_i . J_j / J_i . J_i, ``(q, q)``, not symmetric."""
    together = labels.T @ labels
    own = together.diagonal()[:, None]
    C = np.divide(together, own, out=np.zeros_like(together), where=own > 0)
    return np.diag(C.sum(axis=1)) - C


class LinearStep:
    """Minimise over W, where 2 X'X W + W B = X'(J + H U); X'X and B are factored once.

    B = ridge I + relations (L + L') / 2. L is not quite positive, so a ridge near 0 may leave
    just a stationary point.
    """

    def __init__(self, X: Matrix, laplacian: Array, ridge: float, relations: float) -> None:
        self.Z, self.strengths, self.Q = rotate(X)
        penalty = ridge * np.eye(len(laplacian)) + relations * (laplacian + laplacian.T) / 2
        self.penalties, self.mixes = np.linalg.eigh(penalty)

    def __call__(self, targets: Array) -> Array:
        """The weights ``(d, q)`` for both targets' sum ``(n, q)``."""
        turned = self.Z.T @ (targets @ self.mixes)
        turned /= 2 * self.strengths[:, None] + self.penalties
        return self.Q @ (turned @ self.mixes.T)


def update_output(H: Array, scores: Array, output_ridge: float) -> Array:
    """Minimise over U: ridge regression of the linear scores X W on H."""
    return np.linalg.solve(H.T @ H + output_ridge * np.eye(H.shape[1]), H.T @ scores)


def hidden_gradient(
    X: Matrix, H: Array, U: Array, V: Array, scores: Array, hidden_ridge: float
) -> Array:
    """Half the gradient of the objective in V, ``(d, q)``."""
    return X.T @ (H * (1 - H) * ((H @ U - scores) @ U.T)) + hidden_ridge * V


class PMLLENFN(TopScores, Method):
    """Near and far rows enhance the labels; a linear model learns them with a sigmoid one.

    The authors' code leaves its first sample out of every near and far set; here it is in them.

    Parameters
    ----------
    own_share, far_share, band
        Weights of a row's own candidates and of its far rows in the enhanced labels (its near
        rows have the rest), and how much of the range of similarities counts as near or far.
    ridge, relations, output_ridge, hidden_ridge
        Weights of the objective's penalties.
    step
        Of the one gradient step on V in each iteration; a fixed one, so the objective may rise.
    max_iterations, tolerance
        It stops once the objective falls by less than this share, after five iterations.
    """

    TITLE = "PML-LENFN"
    SOURCE = "Chen et al., ACM MM 2024; from the authors' code"
    GRID = {  # the values that its authors have used
        "ridge": [1e-5, 10.0],
        "output_ridge": [1e-5, 0.01],
        "hidden_ridge": [1e-5, 10.0],
    }

    def __init__(
        self,
        own_share: float = 0.7,
        far_share: float = 0.1,
        band: float = 0.2,
        ridge: float = 10.0,
        relations: float = 1.0,
        output_ridge: float = 0.01,
        hidden_ridge: float = 10.0,
        step: float = 1e-3,
        max_iterations: int = 200,
        tolerance: float = 1e-3,
        random_state: Any = None,
    ) -> None:
        self.own_share = own_share
        self.far_share = far_share
        self.band = band
        self.ridge = ridge
        self.relations = relations
        self.output_ridge = output_ridge
        self.hidden_ridge = hidden_ridge
        self.step = step
        self.max_iterations = max_iterations
        self.tolerance = tolerance
        self.random_state = random_state

    def _fit(self, X: Matrix, candidates: Array, rng: np.random.Generator) -> Array:
        J = enhanced_labels(X, candidates, self.own_share, self.far_share, self.band)
        X, q = with_ones(X), J.shape[1]
        laplacian = label_laplacian(J)
        linear_step = LinearStep(X, laplacian, self.ridge, self.relations)
        U, V = rng.normal(size=(q, q)), rng.normal(size=(X.shape[1], q))
        H = expit(X @ V)
        for iteration in range(1, self.max_iterations + 1):
            W = linear_step(J + H @ U)
            scores = X @ W
            U = update_output(H, scores, self.output_ridge)
            V = V - self.step * hidden_gradient(X, H, U, V, scores, self.hidden_ridge)
            H = expit(X @ V)
            value = self._objective(J, laplacian, scores, W, H, U, V)
            self.objective_.append(value)
            previous = self.objective_[-2] if iteration > SETTLING else np.inf
            if previous - value < self.tolerance * abs(previous):
                break
        self.weight_, self.bias_ = W[:-1], W[-1]
        return J

    def _objective(
        self, J: Array, laplacian: Array, scores: Array, W: Array, H: Array, U: Array, V: Array
    ) -> float:
        fit = ((scores - J) ** 2).sum() + ((scores - H @ U) ** 2).sum()
        linear = self.ridge * (W**2).sum() + self.relations * ((W @ laplacian) * W).sum()
        sigmoid = self.output_ridge * (U**2).sum() + self.hidden_ridge * (V**2).sum()
        return float(fit + linear + sigmoid)
