"""Candidates that are probably wrong, and labels that are missing, as tables that say why."""

import numpy as np
import pandas as pd
from scipy import sparse

from wscpml.arrays import EVEN_ODDS, Array, Matrix, values_at
from wscpml.quality.evidence import Evidence


def find(
    label_confidence: Matrix,
    candidates: Matrix,
    evidence: Evidence,
    label_names: list[str],
    instances: pd.Index,
    below: float = EVEN_ODDS,
    limit: int | None = None,
) -> pd.DataFrame:
    """Candidates whose label confidence is below a bound, the most suspicious first, and why.

    Takes label confidence and candidates, both ``(n, q)``, and where they lie. There are `limit`
    rows at most. The columns are those of `WSCPML.find_label_issues`.
    """
    row, label = (each[:limit] for each in ranked(label_confidence, candidates, below))
    names = np.array(label_names, dtype=object)
    rows = sparse.csr_array(label_confidence)
    return pd.DataFrame(
        {
            "instance": instances[row],
            "label": names[label],
            "label_confidence": values_at(label_confidence, row, label),
            **_by_prototypes(row, label, evidence, names),
            "competing": [
                ", ".join(names[_likelier(rows, i, j)])
                for i, j in zip(row.tolist(), label.tolist(), strict=True)
            ],
        }
    )


def find_missing(
    missing: Matrix,
    evidence: Evidence,
    label_names: list[str],
    instances: pd.Index,
    limit: int,
) -> pd.DataFrame:
    """Labels that instances probably lack, the likeliest first, and where they lie.

    Takes the probability that a label is missing, ``(n, q)``, and where such labels lie. There are
    `limit` rows at most.
    """
    row, label = np.nonzero(missing)
    first = np.argsort(-values_at(missing, row, label), kind="stable")[:limit]
    row, label = row[first], label[first]
    names = np.array(label_names, dtype=object)
    return pd.DataFrame(
        {
            "instance": instances[row],
            "label": names[label],
            "probability": values_at(missing, row, label),
            **_by_prototypes(row, label, evidence, names),
        }
    )


def _by_prototypes(row: Array, label: Array, evidence: Evidence, names: Array) -> dict[str, object]:
    """The nearest prototypes of some pairs' rows, and the rank of their labels' own."""
    return {
        "nearest": [", ".join(each) for each in names[evidence.nearest[row]]],
        "prototype_rank": values_at(evidence.ranks, row, label).astype(int),
    }


def ranked(
    label_confidence: Matrix, candidates: Matrix, below: float = EVEN_ODDS
) -> tuple[Array, Array]:
    """Row and label of the candidates below a bound, the most suspicious first."""
    row, label = np.nonzero(candidates)
    confidence = values_at(label_confidence, row, label)
    suspicious = np.flatnonzero(confidence < below)
    worst_first = suspicious[np.argsort(confidence[suspicious], kind="stable")]
    return row[worst_first], label[worst_first]


def _likelier(label_confidence: sparse.csr_array, i: int, j: int) -> Array:
    """The labels of a row that are likelier than one of them, the likeliest first."""
    there = slice(*label_confidence.indptr[i : i + 2])
    labels, values = label_confidence.indices[there], label_confidence.data[there]
    likelier = values > values[labels == j].sum()  # none: 0
    return labels[likelier][np.argsort(-values[likelier], kind="stable")]
