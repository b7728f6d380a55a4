"""The candidates that are probably wrong, as a table that says why."""

import numpy as np
import pandas as pd

from wscpml.arrays import ROWS_AT_ONCE, Array, Matrix, row_blocks, squared_distances

NEAREST = 3  # prototypes that are named to a person
EVEN = 0.5  # a candidate below is more likely false than true


def find(
    confidence: Array,
    candidates: Array,
    order: Array,
    label_names: list[str],
    instances: pd.Index,
    below: float = EVEN,
) -> pd.DataFrame:
    """Candidates whose confidence is below a bound, the most suspicious first, and why.

    Takes confidence and candidates ``(n, q)``, and the labels of each row in the `order` of their
    prototypes, which `by_distance` gives. The columns are those of `WSCPML.find_label_issues`.
    """
    row, label = ranked(confidence, candidates, below)
    names = np.array(label_names, dtype=object)
    places = np.empty_like(order)
    np.put_along_axis(places, order, np.arange(len(names))[None], axis=1)
    return pd.DataFrame(
        {
            "instance": instances[row],
            "label": names[label],
            "confidence": confidence[row, label],
            "nearest": [", ".join(each) for each in names[order[row, :NEAREST]]],
            "prototype_rank": places[row, label] + 1,
            "competing": [
                ", ".join(names[_likelier(confidence[i], j)])
                for i, j in zip(row.tolist(), label.tolist(), strict=True)
            ],
        }
    )


def ranked(confidence: Array, candidates: Array, below: float = EVEN) -> tuple[Array, Array]:
    """Row and label of the candidates below a bound, the most suspicious first."""
    row, label = np.nonzero((candidates == 1) & (confidence < below))
    worst_first = np.argsort(confidence[row, label], kind="stable")
    return row[worst_first], label[worst_first]


def by_distance(scaled: Matrix, prototypes: Array) -> Array:
    """The labels of each row from the nearest prototype to the farthest, ``(n, q)``."""
    order = np.empty((scaled.shape[0], len(prototypes)), np.int32)
    for rows in row_blocks(len(order), ROWS_AT_ONCE):
        order[rows] = squared_distances(scaled[rows], prototypes).argsort(axis=1, kind="stable")
    return order


def _likelier(row: Array, j: int) -> Array:
    """The labels of a row that are likelier than one of them, the likeliest first."""
    others = np.flatnonzero(row > row[j])
    return others[np.argsort(-row[others], kind="stable")]
