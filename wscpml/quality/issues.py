"""The candidates that are probably wrong, as a table that says why."""

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
    places = np.empty_like(nearest)
    np.put_along_axis(places, nearest, np.arange(len(names))[None], axis=1)
    return pd.DataFrame(
        {
            "instance": instances[row],
            "label": names[label],
            "label_confidence": label_confidence[row, label],
            "nearest": [", ".join(each) for each in names[nearest[row, :NEAREST]]],
            "prototype_rank": places[row, label] + 1,
            "competing": [
                ", ".join(names[_likelier(label_confidence[i], j)])
                for i, j in zip(row.tolist(), label.tolist(), strict=True)
            ],
        }
    )


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
