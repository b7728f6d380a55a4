"""PML-fp-style: a linear ranking of labels, weighted by confidences that feature prototypes guide.

A reconstruction: the abstract is all that could be read of the method. Minimises

    1/2 |W|^2 + ranking sum_i R_i + fidelity/2 |P - Y|^2 + prototype/2 sum_i |x_i - p_i T|^2 / d

in turns over weights W and confidences P, where 0 <= P <= Y and each row with candidates sums to
at least 1. R_i is the mean hinge loss of the row's pairs of labels, (j, k) with the weight
p_ij (1 - p_ik); T are the prototypes, the means of the rows weighted by P. One more label, the
threshold, is to rank below the labels that apply and above the others: it tells which ones are on.
"""

from typing import Any

import numpy as np
from scipy.special import expit

from wscpml.algorithm.prototypes import centroids
from wscpml.arrays import ROWS_AT_ONCE, Array, Matrix, squared_norms
from wscpml.methods.base import Method

GROWTH, SHRINKAGE = 1.2, 0.5  # of the rate, after a step that went down and one that did not


class PMLfp(Method):
    """Alternate over a linear ranking model and the confidences of the candidates.

    Parameters
    ----------
    ranking, fidelity, prototype
        Weights of the objective's terms.
    max_iterations, tolerance
        Of the alternation, which ends when the objective changes by less than this share.
    model_steps, momentum
        Gradient steps for W in each iteration.
    confidence_steps
        Projected gradient steps for P in each iteration.
    """

    TITLE = "PML-fp-style"
    SOURCE = "Xie and Huang, AAAI 2018; a reconstruction from the abstract"
    GRID = {
        "ranking": [1.0],
        "fidelity": [float(weight) for weight in range(1, 11)],
        "prototype": [1.0, 10.0, 100.0],
    }

    def __init__(
        self,
        ranking: float = 1.0,
        fidelity: float = 1.0,
        prototype: float = 1.0,
        max_iterations: int = 10,
        tolerance: float = 1e-3,
        model_steps: int = 30,
        momentum: float = 0.9,
        confidence_steps: int = 5,
        random_state: Any = None,
    ) -> None:
        self.ranking = ranking
        self.fidelity = fidelity
        self.prototype = prototype
        self.max_iterations = max_iterations
        self.tolerance = tolerance
        self.model_steps = model_steps
        self.momentum = momentum
        self.confidence_steps = confidence_steps
        self.random_state = random_state

    def _fit(self, X: Matrix, candidates: Array, rng: np.random.Generator) -> Array:  # noqa: ARG002
        P = candidates.astype(float)
        self.weight_ = np.zeros((X.shape[1] + 1, candidates.shape[1] + 1))
        self.centre_ = np.asarray(X.mean(axis=0)).ravel()
        spread = squared_norms(X).sum() - len(P) * (self.centre_**2).sum()
        rate = 1 / (1 + self.ranking * (spread + len(P)))
        for _ in range(self.max_iterations):
            self.weight_, decay, rate = learn_model(
                X,
                self.centre_,
                P,
                self.weight_,
                self.ranking,
                self.model_steps,
                self.momentum,
                rate,
            )
            P, values = learn_confidences(
                X,
                candidates,
                P,
                scores(X, self.centre_, self.weight_),
                (self.ranking, self.fidelity, self.prototype),
                self.confidence_steps,
            )
            self.objective_.append(decay + float(values.sum()))
            if settled(self.objective_, self.tolerance):
                break
        return P

    def _probabilities(self, X: Matrix) -> Array:
        ranked = scores(X, self.centre_, self.weight_)
        return expit(ranked[:, :-1] - ranked[:, -1:])


def settled(values: list[float], tolerance: float) -> bool:
    """Whether the last value is nearly the one before."""
    return len(values) > 1 and abs(values[-2] - values[-1]) < tolerance * abs(values[-2])


def scores(X: Matrix, centre: Array, weight: Array) -> Array:
    """Of labels and threshold, ``(n, q + 1)``, by weights ``(d + 1, q + 1)``, the bias last.

    Features count from their centre ``(d,)``: the bias is free, so that only the descent changes.
    """
    return X @ weight[:-1] + (weight[-1] - centre @ weight[:-1])


def rank_losses(ranked: Array, P: Array) -> tuple[Array, Array, Array]:
    """Mean hinge loss of the pairs of each row, and its slopes in the scores and in P.

    Shapes ``(n,)``, ``(n, q + 1)`` and ``(n, q)`` for scores ``(n, q + 1)``.
    """
    blocks = [
        _rank_losses(ranked[start : start + ROWS_AT_ONCE], P[start : start + ROWS_AT_ONCE])
        for start in range(0, len(P), ROWS_AT_ONCE)
    ]
    losses, in_scores, in_P = (np.concatenate(part) for part in zip(*blocks, strict=True))
    return losses, in_scores, in_P


def _rank_losses(ranked: Array, P: Array) -> tuple[Array, Array, Array]:
    threshold = np.ones((len(P), 1))
    win, lose = np.hstack([P, threshold]), np.hstack([1 - P, threshold])
    as_winner, as_loser, losers, winners = pair_sums(ranked, win, lose)
    as_winner -= lose  # a label is no pair with itself
    as_loser -= win
    all_win, all_lose = win.sum(axis=1, keepdims=True), lose.sum(axis=1, keepdims=True)
    pairs = all_win * all_lose - (win * lose).sum(axis=1, keepdims=True)
    losses = (win * as_winner).sum(axis=1, keepdims=True) / pairs
    more_pairs = all_lose - all_win - (lose - win)
    in_P = (as_winner - as_loser - losses * more_pairs) / pairs
    return losses[:, 0], (lose * winners - win * losers) / pairs, in_P[:, :-1]


def pair_sums(ranked: Array, win: Array, lose: Array) -> tuple[Array, Array, Array, Array]:
    """Sums over the pairs of each row whose hinge h_jk = 1 - f_j + f_k is positive, by sorting.

    Each ``(n, m)``: sum_k lose_k h_jk, sum_j win_j h_jk, and the same sums without h.
    """
    n, m = ranked.shape
    order = ranked.argsort(axis=1)
    f, win, lose = (np.take_along_axis(each, order, axis=1) for each in (ranked, win, lose))
    merged = np.hstack([f - 1, f]).argsort(axis=1, kind="stable")  # two runs, soon sorted
    own = 2 * m * np.arange(n)[:, None] + np.arange(m)
    first_loser, end_of_winners = (
        np.flatnonzero(run).reshape(n, m) - own for run in (merged < m, merged >= m)
    )

    def before(weights: Array, ends: Array) -> Array:
        running = np.zeros((n, m + 1))
        weights.cumsum(axis=1, out=running[:, 1:])
        return np.take_along_axis(running, ends, axis=1)

    def from_there(weights: Array) -> Array:
        return weights.sum(axis=1, keepdims=True) - before(weights, first_loser)

    losers, winners = from_there(lose), before(win, end_of_winners)
    as_winner = (1 - f) * losers + from_there(lose * f)
    as_loser = (1 + f) * winners - before(win * f, end_of_winners)

    def put_back(found: Array) -> Array:
        out = np.empty_like(found)
        np.put_along_axis(out, order, found, axis=1)
        return out

    return put_back(as_winner), put_back(as_loser), put_back(losers), put_back(winners)


def model_objective(
    X: Matrix, centre: Array, P: Array, weight: Array, ranking: float
) -> tuple[float, float, Array]:
    """Value in W, the part of it that is |W|^2 / 2, and a subgradient."""
    losses, in_scores, _ = rank_losses(scores(X, centre, weight), P)
    decay = float((weight[:-1] ** 2).sum()) / 2
    in_bias = in_scores.sum(axis=0)
    in_weight = ranking * (X.T @ in_scores - np.outer(centre, in_bias)) + weight[:-1]
    slope = np.vstack([in_weight, ranking * in_bias])
    return decay + ranking * float(losses.sum()), decay, slope


def learn_model(
    X: Matrix,
    centre: Array,
    P: Array,
    weight: Array,
    ranking: float,
    steps: int,
    momentum: float,
    rate: float,
) -> tuple[Array, float, float]:
    """Gradient steps with momentum: the weights, |W|^2 / 2, and the rate to go on with.

    A step that does not go down is not taken; it costs the momentum and half of the rate.
    """
    value, decay, slope = model_objective(X, centre, P, weight, ranking)
    velocity = np.zeros_like(weight)
    for _ in range(steps):
        velocity = momentum * velocity - rate * slope
        trial = model_objective(X, centre, P, weight + velocity, ranking)
        if trial[0] < value:
            weight = weight + velocity
            value, decay, slope = trial
            rate *= GROWTH
        else:
            velocity = np.zeros_like(weight)
            rate *= SHRINKAGE
    return weight, decay, rate


def learn_confidences(
    X: Matrix,
    candidates: Array,
    P: Array,
    ranked: Array,
    weights: tuple[float, float, float],
    steps: int,
) -> tuple[Array, Array]:
    """Projected gradient steps for P, and each row's value of the objective without |W|^2 / 2.

    Rows go on their own: one whose value would rise stays where it is, with half of its rate.
    The prototypes are those of the P before; they are means, which do not minimise their term,
    so that a new call may start from a higher value than the last one ended with.
    """
    ranking, fidelity, prototype = weights
    pull = prototype / X.shape[1]
    T = np.nan_to_num(centroids(X, P))
    across, among, norms = X @ T.T, T @ T.T, squared_norms(X)

    def objective(P: Array) -> tuple[Array, Array]:
        losses, _, in_P = rank_losses(ranked, P)
        near = P @ among
        distances = norms + (P * (near - 2 * across)).sum(axis=1)
        apart = P - candidates
        values = ranking * losses + (fidelity * (apart**2).sum(axis=1) + pull * distances) / 2
        return values, ranking * in_P + fidelity * apart + pull * (near - across)

    rates = np.full((len(P), 1), 1 / (fidelity + pull * np.linalg.norm(among, 2)))
    values, slopes = objective(P)
    for _ in range(steps):
        trial = project(P - rates * slopes, candidates)
        new_values, new_slopes = objective(trial)
        down = (new_values < values)[:, None]
        P = np.where(down, trial, P)
        slopes = np.where(down, new_slopes, slopes)
        values = np.minimum(values, new_values)
        rates = np.where(down, rates, SHRINKAGE * rates)
    return P, values


def project(V: Array, candidates: Array) -> Array:
    """The nearest P with 0 <= P <= Y and rows with candidates that sum to at least 1."""
    boxed = np.clip(V, 0, candidates)
    short = (boxed.sum(axis=1) < 1) & candidates.any(axis=1)
    boxed[short] = _on_simplex(V[short], candidates[short] > 0)
    return boxed


def _on_simplex(V: Array, allowed: Array) -> Array:
    """The nearest rows that sum to 1, 0 where not allowed: all raised alike, then cut at 0."""
    highest = np.where(allowed, V, -np.inf).max(axis=1, keepdims=True)
    V = np.where(allowed, V, highest - 2)  # so far below the highest that the cut takes it
    ordered = -np.sort(-V, axis=1)
    raised = (1 - ordered.cumsum(axis=1)) / np.arange(1, V.shape[1] + 1)
    kept = (ordered + raised > 0).sum(axis=1, keepdims=True)
    return np.clip(V + np.take_along_axis(raised, kept - 1, axis=1), 0, 1)
