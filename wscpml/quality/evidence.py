"""Where instances and labels lie: what a person is shown as the reason for a judgement."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.linalg import eigh

from wscpml.arrays import ROWS_AT_ONCE, Array, Matrix, row_blocks, squared_distances, to_dense

MOST_FITTED = 1000  # rows that the axes of the map are fitted on


NEAREST = 3  # prototypes that are named to a person


@dataclass(frozen=True)
class Evidence:
    """The prototypes of q labels, as seen from n instances."""

    nearest: Array  # (n, 3), the labels of the nearest prototypes, the nearest first
    ranks: sparse.csr_array  # (n, q), of some pairs: the label's place by distance, from 1 on
    positions: Array  # (n, 2), of the instances on a map
    prototypes: Array  # (q, 2), of the labels on the same map; NaN for a label without any


def gather(scaled: Matrix, prototypes: Array, pairs: Matrix) -> Evidence:
    """The evidence of scaled rows ``(n, d)`` and prototypes ``(q, d)``.

    Ranks are told of the `pairs` that are not 0 in a matrix ``(n, q)``.
    """
    return Evidence(*by_distance(scaled, prototypes, pairs), *positions(scaled, prototypes))


def by_distance(scaled: Matrix, prototypes: Array, pairs: Matrix) -> tuple[Array, sparse.csr_array]:
    """The labels of the nearest prototypes of each row ``(n, 3)``, and the ranks of some pairs.

    Of prototypes that are equally near, that of the first label counts as the nearest; those that
    are not known are the farthest.
    """
    ranks = sparse.csr_array(pairs, dtype=np.int32, copy=True)
    ranks.eliminate_zeros()
    ranks.sort_indices()
    nearest = np.empty((scaled.shape[0], min(NEAREST, len(prototypes))), np.int32)
    for rows in row_blocks(len(nearest), ROWS_AT_ONCE):
        distances = squared_distances(scaled[rows], prototypes)
        distances[np.isnan(distances)] = np.finfo(distances.dtype).max
        starts = ranks.indptr[rows.start : rows.stop + 1]
        labels = ranks.indices[starts[0] : starts[-1]]
        ranks.data[starts[0] : starts[-1]] = _ranks(distances, starts - starts[0], labels)
        for place in range(nearest.shape[1]):
            first = distances.argmin(axis=1)
            nearest[rows, place] = first
            distances[np.arange(len(first)), first] = np.inf
    return nearest, ranks


def _ranks(distances: Array, starts: Array, labels: Array) -> Array:
    """The places of some labels ``(m,)``, row by row, among all by their distances ``(k, q)``."""
    found = np.empty(len(labels), np.int32)
    counts = np.diff(starts)
    for turn in range(counts.max(initial=0)):  # one label of every row that has so many
        chosen = np.flatnonzero(counts > turn)
        pair, every = starts[chosen] + turn, distances[chosen]
        own = every[np.arange(len(chosen)), labels[pair]][:, None]
        nearer = np.count_nonzero(every < own, axis=1)
        tied = np.flatnonzero(np.count_nonzero(every <= own, axis=1) > nearer + 1)
        before = np.arange(distances.shape[1]) < labels[pair[tied], None]
        nearer[tied] += ((every[tied] == own[tied]) & before).sum(axis=1)
        found[pair] = nearer + 1
    return found


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
