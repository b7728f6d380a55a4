"""Candidates that are probably wrong, and labels that are missing, as tables that say why."""

import numpy as np
import pandas as pd

from wscpml.arrays import EVEN_ODDS, Array

NEAREST = 3  # prototypes that are named to a person


def find(
    label_confidence: Array,
    candidates: Array,
    nearest: Array,
    label_names: list[str],
    instances: pd.Index,
    below: float = EVEN_ODDS,
) -> pd.DataFrame:
    """Candidates whose label confidence is below a bound, the most suspicious first, and why.

    Takes label confidence, candidates, and the labels of each row from the `nearest` prototype to
    the farthest, all ``(n, q)``. The columns are those of `WSCPML.find_label_issues`.
    """
    row, label = ranked(label_confidence, candidates, below)
    names = np.array(label_names, dtype=object)
    return pd.DataFrame(
        {
            "instance": instances[row],
            "label": names[label],
            "label_confidence": label_confidence[row, label],
            **_by_prototypes(row, label, nearest, names),
            "competing": [
                ", ".join(names[_likelier(label_confidence[i], j)])
                for i, j in zip(row.tolist(), label.tolist(), strict=True)
            ],
        }
    )


def find_missing(
    missing: Array,
    nearest: Array,
    label_names: list[str],
    instances: pd.Index,
    limit: int | None = None,
) -> pd.DataFrame:
    """Labels that instances probably lack, the likeliest first, and where they lie.

    Takes the probability that a label is missing, and the labels by their `nearest` prototype,
    both ``(n, q)``. There are `limit` rows at most, or as many as are estimated to be missing.
    """
    row, label = np.nonzero(missing > 0)
    count = round(float(missing.sum())) if limit is None else limit
    first = np.argsort(-missing[row, label], kind="stable")[:count]
    row, label = row[first], label[first]
    names = np.array(label_names, dtype=object)
    return pd.DataFrame(
        {
            "instance": instances[row],
            "label": names[label],
            "probability": missing[row, label],
            **_by_prototypes(row, label, nearest, names),
        }
    )


def _by_prototypes(row: Array, label: Array, nearest: Array, names: Array) -> dict[str, object]:
    """The nearest prototypes of some pairs' rows, and the rank of their labels' own."""
    places = np.empty_like(nearest)
    np.put_along_axis(places, nearest, np.arange(len(names))[None], axis=1)
    return {
        "nearest": [", ".join(each) for each in names[nearest[row, :NEAREST]]],
        "prototype_rank": places[row, label] + 1,
    }


def ranked(
    label_confidence: Array, candidates: Array, below: float = EVEN_ODDS
) -> tuple[Array, Array]:
    """Row and label of the candidates below a bound, the most suspicious first."""
    row, label = np.nonzero((candidates == 1) & (label_confidence < below))
    worst_first = np.argsort(label_confidence[row, label], kind="stable")
    return row[worst_first], label[worst_first]


def _likelier(row: Array, j: int) -> Array:
    """The labels of a row that are likelier than one of them, the likeliest first."""
    others = np.flatnonzero(row > row[j])
    return others[np.argsort(-row[others], kind="stable")]
