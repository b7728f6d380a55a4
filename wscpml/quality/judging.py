"""Judging labels: how likely each candidate is to be true, by the candidates alone.

Two predictors say how likely each label is to be a candidate of a row, P, without having seen the
row's own labels: kernel ridge regression leaves the row out, and of a forest only those trees
speak that were grown without it. Where a false label is a candidate with chance rho,
P = p + (1 - p) rho with p the chance that the label is true, so a candidate is true with
probability p / P. Rho shows where P is lowest: hardly any of those labels are true, and rho is the
share of them that are candidates all the same.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from wscpml.algorithm.composition import TrainingRows, closed_form
from wscpml.arrays import Array, Matrix

TREES, LEAF = 400, 3
TRIED, MOST_TRIED = 0.2, 100  # features that a split looks at: a share of them, but not more
PAIRS_PER_TREE = 250_000  # rows times labels that a tree is grown on at most
BINS = 40  # of equally many pairs, in which predictions are set right
SLOPE = 0.05  # what is left of the predictions' own order where bins do not differ
LOWEST = 0.2  # share of the pairs, those least likely to be candidates, that show rho
TENTHS = 10  # bins of confidence, in which it is compared with the truth
NEVER_SURE = 0.002  # probabilities are at least so far from 0 and 1


@dataclass(frozen=True)
class JudgedLabels:
    """What is known of the candidates of n rows and q labels."""

    label_confidence: (
        Array  # (n, q), the probability that a candidate is true; 0 off the candidates
    )
    chance: float  # that a label which is not true is a candidate
    noise_rates: Array  # (q,), the share of each label's candidates that are false; NaN without any


def judge(rows: TrainingRows, candidates: Array, rng: np.random.Generator) -> JudgedLabels:
    """Judge every candidate ``(n, q)`` of the training rows.

    The probabilities are refined once, by predictions of what the first round takes to be true.
    """
    Y, seed = candidates.astype(np.float64), int(rng.integers(2**31))
    predicted = predict_unseen(rows, candidates, Y, seed)
    chance = chance_of_noise(predicted, Y)
    true = (calibrate(predicted, Y) - chance) / (1 - chance)
    again = predict_unseen(rows, candidates, Y * posterior(true, chance), seed)
    confidence = Y * posterior((true + again) / 2, chance)
    return JudgedLabels(confidence, chance, noise_rates(confidence, candidates))


def predict_unseen(rows: TrainingRows, candidates: Array, targets: Array, seed: int) -> Array:
    """Predictions of targets ``(n, q)`` by ridge and forest, neither of which has seen the row."""
    ours = leave_one_out(rows, candidates, targets)
    return (ours + out_of_bag(rows.scaled, targets, seed)) / 2


def chance_of_noise(predicted: Array, Y: Array) -> float:
    """The chance rho that a false label is a candidate: the share of them where P is lowest."""
    lowest = Y[predicted <= np.quantile(predicted, LOWEST)]
    return float(min((lowest.sum() + 0.5) / (lowest.size + 1), 1 - NEVER_SURE))


def posterior(true: Array, chance: float) -> Array:
    """Probability that a candidate is true, from the estimated one that its label is, seen or not.

    An estimate near 0 or below becomes small but positive, in the same order.
    """
    small = NEVER_SURE / (2 - np.minimum(true / NEVER_SURE, 1))
    true = np.where(true < NEVER_SURE, small, np.minimum(true, 1))
    return true / (true + (1 - true) * chance)


def noise_rates(label_confidence: Array, candidates: Array) -> Array:
    """The estimated share of each label's candidates that are false, ``(q,)``; NaN without any."""
    counts = candidates.sum(axis=0)
    return 1 - np.divide(
        label_confidence.sum(axis=0), counts, out=np.full(len(counts), np.nan), where=counts > 0
    )


def identification(true: Array, label_confidence: Array) -> dict[str, float | None]:
    """How well label confidences tell which candidates are false, by the truth of each.

    It is 1 or 0; candidates whose truth is not known, -1, are left out.

    ROC AUC; average precision of the false ones; share of false ones among the 5 % that are
    suspected most; and how far confidences are from the shares that are true, on average.
    """
    from sklearn.metrics import average_precision_score, roc_auc_score

    known = true >= 0
    true, label_confidence = true[known], label_confidence[known]
    if set(np.unique(true)) != {0, 1}:
        return dict.fromkeys(["auc", "average_precision", "precision_top_5", "calibration_error"])
    worst = np.argsort(label_confidence, kind="stable")[: max(1, round(0.05 * len(true)))]
    bins = np.minimum((label_confidence * TENTHS).astype(int), TENTHS - 1)
    gaps = np.bincount(bins, true - label_confidence, TENTHS)
    return {
        "auc": float(roc_auc_score(true, label_confidence)),
        "average_precision": float(average_precision_score(1 - true, -label_confidence)),
        "precision_top_5": float(1 - true[worst].mean()),
        "calibration_error": float(abs(gaps).sum() / len(true)),
    }


def leave_one_out(rows: TrainingRows, candidates: Array, targets: Array) -> Array:
    """Predictions ``(n, q)`` of kernel ridge regression for rows that it is not fitted to."""
    chosen = rows.of_axes
    found = closed_form(rows, candidates, targets, chosen)
    if len(chosen) == len(targets):
        return found.left_out
    predicted = rows.mapped @ found.head.weight + found.head.bias
    predicted[chosen] = found.left_out
    return predicted


def out_of_bag(X: Matrix, targets: Array, seed: int) -> Array:
    """Predictions ``(n, q)`` of a forest, for each row by the trees that were grown without it."""
    from sklearn.ensemble import ExtraTreesRegressor

    X = (sparse.csr_matrix(X) if sparse.issparse(X) else X[:]).astype(np.float32)
    few = PAIRS_PER_TREE / targets.size
    forest = ExtraTreesRegressor(
        TREES,
        min_samples_leaf=LEAF,
        max_features=max(1, min(round(TRIED * X.shape[1]), MOST_TRIED)),
        max_samples=few if few < 1 else None,
        bootstrap=True,
        oob_score=True,
        random_state=seed,
        n_jobs=-1,
    )
    return forest.fit(X, targets.squeeze()).oob_prediction_.reshape(targets.shape)


def calibrate(predicted: Array, observed: Array) -> Array:
    """Predictions as probabilities: in every bin as many as were observed; never out of order."""
    from sklearn.isotonic import isotonic_regression

    order = np.argsort(predicted, axis=None)
    bins = np.array_split(order, min(BINS, order.size))
    x, y = (np.array([each.ravel()[b].mean() for b in bins]) for each in (predicted, observed))
    y = (1 - SLOPE) * isotonic_regression(y) + SLOPE * x
    x, y = (np.concatenate([v[:1] - 1, v, v[-1:] + 1]) for v in (x, y))  # a slope of 1 beyond
    return np.clip(np.interp(predicted, x, y), NEVER_SURE, 1 - NEVER_SURE)
