"""The five metrics as the field's own code computes them, and noise identification.

Rows without true labels, or with all of them, cannot be ranked and are left out of ranking loss,
one-error and average precision. Among equal scores the higher label index ranks first, except
that a tie is a full error in ranking loss and no error in one-error. Coverage counts all rows
and is divided by the number of labels. Rows of which the truth is not known, -1, are left out of
everything. A metric without any row to measure is None.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from wscpml.arrays import Array, known_rows


def evaluate(truth: Array, scores: Array, labels: Array) -> dict[str, float | None]:
    """All five metrics of scores and predicted labels against the truth, all ``(n, q)``."""
    from sklearn.metrics import hamming_loss, label_ranking_loss

    known = known_rows(truth)
    truth, scores, labels = truth[known], scores[known], labels[known]
    ranked = rankable(truth)
    T, S = truth[ranked], scores[ranked]
    some, any_row = len(T) > 0, len(truth) > 0
    return {
        "average_precision": average_precision(T, S) if some else None,
        "ranking_loss": float(label_ranking_loss(T, S)) if some else None,
        "one_error": one_error(T, S) if some else None,
        "coverage": coverage(truth, scores) if any_row else None,
        "hamming_loss": float(hamming_loss(truth, labels)) if any_row else None,
    }


def rankable(labels: Array) -> Array:
    """Which rows have some of the labels, but not all, a boolean ``(n,)``."""
    return (labels.min(axis=1) == 0) & (labels.max(axis=1) == 1)


def _truth_by_rank(truth: Array, scores: Array) -> Array:
    """The truth with each row's labels ordered from the best score to the worst."""
    order = np.argsort(-scores[:, ::-1], axis=1, kind="stable")
    return np.take_along_axis(truth[:, ::-1], order, axis=1)


def average_precision(truth: Array, scores: Array) -> float:
    """Mean over a row's true labels of the share of true labels at or above its rank."""
    ranked = _truth_by_rank(truth, scores)
    precision = ranked.cumsum(axis=1) / np.arange(1, truth.shape[1] + 1)
    return float(((precision * ranked).sum(axis=1) / ranked.sum(axis=1)).mean())


def one_error(truth: Array, scores: Array) -> float:
    """Share of rows none of whose best-scored labels is true."""
    best = scores == scores.max(axis=1, keepdims=True)
    return float(1 - (best & (truth == 1)).any(axis=1).mean())


def coverage(truth: Array, scores: Array) -> float:
    """How far down the ranking all true labels are found, less one, as a share of the labels."""
    q = truth.shape[1]
    worst_rank = (_truth_by_rank(truth, scores) * np.arange(1, q + 1)).max(axis=1)
    return float((worst_rank.mean() - 1) / q)


def label_average_precision(truth: Array, scores: Array) -> Array:
    """Average precision of each label over the rows, ``(q,)``; NaN for a label with no true row."""
    from sklearn.metrics import average_precision_score

    rows = known_rows(truth)
    truth, scores = truth[rows], scores[rows]
    measured = np.full(truth.shape[1], np.nan)
    some = truth.any(axis=0)
    if some.any():
        measured[some] = average_precision_score(truth[:, some], scores[:, some], average=None)
    return measured


def noise_auc(true: Array, score: Array) -> float | None:
    """ROC AUC of a score over the candidates: how well it tells true ones from false ones."""
    from sklearn.metrics import roc_auc_score

    known = true >= 0
    true, score = true[known], score[known]
    return float(roc_auc_score(true, score)) if set(true) == {0, 1} else None


def candidate_histogram(
    true: Array, quantities: Mapping[str, Array], bins: int = 50
) -> pd.DataFrame:
    """Shares of the true, false and unknown candidates in equal bins from 0 to 1, per quantity.

    `true` (1, 0, or -1 for unknown) and each quantity have one value per candidate; what is above
    1 counts as 1.
    """
    edges = np.linspace(0, 1, bins + 1)
    table = {"value": (edges[:-1] + edges[1:]) / 2}
    for name, values in quantities.items():
        for kind, code in (("true", 1), ("false", 0), ("unknown", -1)):
            chosen = true == code
            counts, _ = np.histogram(np.minimum(values[chosen], 1), edges)
            table[f"{name}_{kind}"] = counts / max(chosen.sum(), 1)
    return pd.DataFrame(table)
