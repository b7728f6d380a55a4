"""Where instances and labels lie: what a person is shown as the reason for a judgement."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from wscpml.arrays import ROWS_AT_ONCE, Array, Matrix, row_blocks, squared_distances, to_dense

MOST_FITTED = 1000  # rows that the axes of the map are fitted on


@dataclass(frozen=True)
class Evidence:
    """The prototypes of q labels, as seen from n instances."""

    nearest: Array  # (n, q), the labels of each row from the nearest prototype to the farthest
    positions: Array  # (n, 2), of the instances on a map
    prototypes: Array  # (q, 2), of the labels on the same map; NaN for a label without any


def gather(scaled: Matrix, prototypes: Array) -> Evidence:
    """The evidence of scaled rows ``(n, d)`` and prototypes ``(q, d)``."""
    return Evidence(by_distance(scaled, prototypes), *positions(scaled, prototypes))


def by_distance(scaled: Matrix, prototypes: Array) -> Array:
    """The labels of each row from the nearest prototype to the farthest, ``(n, q)``."""
    order = np.empty((scaled.shape[0], len(prototypes)), np.int32)
    for rows in row_blocks(len(order), ROWS_AT_ONCE):
        order[rows] = squared_distances(scaled[rows], prototypes).argsort(axis=1, kind="stable")
    return order


def positions(scaled: Matrix, prototypes: Array) -> tuple[Array, Array]:
    """Rows ``(n, d)`` and prototypes ``(q, d)`` on the two principal axes of the rows.

    The axes are those of all rows, or of evenly spaced ones of very many.
    """
    sample = scaled[:: -(-scaled.shape[0] // MOST_FITTED)]
    m, d = sample.shape
    mean = np.asarray(sample.mean(axis=0)).ravel()
    if d <= m:
        square = to_dense(sample.T @ sample) - m * np.outer(mean, mean)
    else:  # between rows, which are fewer
        square = to_dense(sample @ sample.T)
        square = square - square.mean(axis=0)
        square -= square.mean(axis=1, keepdims=True)
    size = len(square)
    _, strongest = eigh(square, subset_by_index=[max(size - 2, 0), size - 1])
    axes = np.zeros((d, 2))
    axes[:, : strongest.shape[1]] = (strongest if d <= m else sample.T @ strongest)[:, ::-1]
    axes *= np.sign(axes[abs(axes).argmax(axis=0), [0, 1]])
    lengths = np.linalg.norm(axes, axis=0)
    axes = np.divide(axes, lengths, out=np.zeros_like(axes), where=lengths > 0)
    blocks = row_blocks(scaled.shape[0], ROWS_AT_ONCE)
    placed = np.vstack([scaled[rows] @ axes for rows in blocks]) - mean @ axes
    return placed, (prototypes - mean) @ axes
