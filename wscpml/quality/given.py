"""Judging by a model of one's own: candidates, and the probabilities that it gives to them.

The same estimate as in `judging`, by predictions that are given, and so without a second round.
Nothing of the size of all n rows and q labels is made beside the probabilities: what belongs to
one label is worked out for a few labels at once, what to all of them is summed over blocks of
rows, and what comes out is told of the candidates alone.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.special import xlogy
from tqdm import tqdm

from wscpml.arrays import ROWS_AT_ONCE, Array, Matrix, row_blocks
from wscpml.devices import one_blas_thread
from wscpml.parameters import ParameterError
from wscpml.quality import confusion, judging, noise_model
from wscpml.quality.confusion import Confused
from wscpml.quality.noise_model import PENALTIES, Bins, look_up

PAIRS_AT_ONCE = 2_000_000  # rows times labels that are worked on at once
PAIRS_CALIBRATED = 2_000_000  # on which predictions are calibrated, of evenly spaced rows


def label_confidence(candidates: Any, probabilities: Any) -> Any:
    """The probability that each candidate is true, by the probabilities that a model gives.

    Parameters
    ----------
    candidates : (n, q) of 0 and 1
        An array, a sparse matrix, or a table.
    probabilities : (n, q), from 0 to 1
        How likely each label is, by any model that was not fitted to the row, as in
        cross-validation. As a table it may have its rows and columns in another order.

    Returns
    -------
    (n, q)
        In the form of the candidates; 0 where a label is none. A sparse matrix has the same
        entries.
    """
    Y = _as_rows(candidates)
    rows, columns = (
        (candidates.index, candidates.columns)
        if isinstance(candidates, pd.DataFrame)
        else (None, None)
    )
    P = checked(aligned(probabilities, rows, columns), Y.shape, rows, columns)
    ones = Y if Y.data.all() else sparse.csr_array(Y.toarray())
    with one_blas_thread():
        confidence = judge(sparse.csr_array(ones, dtype=np.float64), P)
    found = Y.astype(np.float64)
    found.data[Y.data == 1] = confidence
    if sparse.issparse(candidates):
        made = sparse.csr_matrix if isinstance(candidates, sparse.spmatrix) else sparse.csr_array
        return made(found).asformat(candidates.format)
    if isinstance(candidates, pd.DataFrame):
        return pd.DataFrame(found.toarray(), candidates.index, candidates.columns)
    return found.toarray()


Names = Any  # a pandas index, or None where rows or columns have no names
DOOR = "probabilities"  # what the argument is called


def aligned(probabilities: Any, rows: Names, columns: Names, door: str = DOOR) -> Array:
    """Probabilities as an array, in the order of the rows and columns that candidates have.

    A table is matched by its names, where these have names too, else it is taken as it is.
    """
    if not isinstance(probabilities, pd.DataFrame):
        return np.asarray(probabilities)
    if rows is not None and not probabilities.index.equals(rows):
        _refuse_other_names(probabilities.index, rows, "row", door)
        probabilities = probabilities.loc[rows]
    if columns is not None and not probabilities.columns.equals(columns):
        _refuse_other_names(probabilities.columns, columns, "column", door)
        probabilities = probabilities[columns]
    return probabilities.to_numpy()


def _refuse_other_names(there: Names, wanted: Names, what: str, door: str) -> None:
    for names in (there, wanted):
        if names.has_duplicates:
            twice = names[names.duplicated()][0]
            raise ParameterError(f"{door}: {what} {twice!r} is there twice; name each one once")
    for names, others, problem in (
        (wanted, there, f"has no {what} {{!r}}, which the candidates have"),
        (there, wanted, f"has a {what} {{!r}}, which the candidates do not have"),
    ):
        lone = names.difference(others, sort=False)
        if len(lone):
            raise ParameterError(f"{door}: {problem.format(lone[0])}")


def checked(
    P: Array, shape: tuple[int, int], rows: Names, columns: Names, door: str = DOOR
) -> Array:
    """Probabilities ``(n, q)`` as floats; what are none is refused, with row and column."""
    if P.shape != shape:
        given, wanted = (" x ".join(map(str, each)) for each in (P.shape, shape))
        raise ParameterError(f"{door}: is {given}, and must be {wanted}, as the candidates are")
    if P.dtype.kind not in "fiub":
        raise ParameterError(f"{door}: must hold numbers alone, got {P.dtype}")
    for block in row_blocks(len(P), ROWS_AT_ONCE):
        wrong = np.argwhere(~((P[block] >= 0) & (P[block] <= 1)))
        if len(wrong):
            i, j = int(wrong[0, 0]) + block.start, int(wrong[0, 1])
            row, column = i if rows is None else rows[i], j if columns is None else columns[j]
            raise ParameterError(
                f"{door}: row {row!r}, column {column!r}: must be from 0 to 1, got {P[i, j]:g}"
            )
    return P if P.dtype in (np.float32, np.float64) else P.astype(np.float32)


def _as_rows(candidates: Any) -> Matrix:
    """Candidates as a CSR array, which keeps the entries of a sparse matrix, zeros among them."""
    given = candidates if sparse.issparse(candidates) else np.asarray(candidates)
    if given.ndim != 2:
        raise ParameterError(f"candidates: must have rows and columns, got shape {given.shape}")
    if given.dtype.kind not in "fiub":
        raise ParameterError(f"candidates: must be 0 or 1, got {given.dtype}")
    Y = sparse.csr_array(given, copy=True)
    Y.sum_duplicates()
    if not np.isin(Y.data, (0, 1)).all():
        raise ParameterError("candidates: must be 0 or 1")
    return Y


def judge(Y: Matrix, P: Array) -> Array:
    """The label confidence of the candidates, in the order of the entries of a CSR array of ones.

    Probabilities P are float32 or float64 ``(n, q)``, for all labels of Y.
    """
    counts = np.bincount(Y.indices, minlength=Y.shape[1])
    live = np.flatnonzero(counts >= judging.FEWEST)
    confidence = np.full(Y.nnz, judging.ABSTAIN)
    if not len(live):
        return confidence
    judged = counts[Y.indices] >= judging.FEWEST
    confidence[judged] = _judge_labels(_Given(sparse.csr_array(Y[:, live]), P, live))
    confidence[~judged] = max(confidence[judged].mean(), judging.ABSTAIN)
    return confidence


@dataclass(frozen=True)
class _Given:
    """Candidates ``(n, k)`` of the k labels that can be judged, and probabilities of all labels."""

    Y: Matrix
    P: Array  # (n, q)
    live: Array  # (k,), where those labels are in P

    def blocks(self) -> Iterator[tuple[slice, Array, Array]]:
        """Rows, their candidates and probabilities, a block at a time."""
        for rows in row_blocks(len(self.P), ROWS_AT_ONCE):
            yield rows, self.Y[rows].toarray(), self.P[rows][:, self.live]

    def dispersion(self) -> float:
        """What `noise_model.dispersion` is."""
        beyond, expected = np.empty(len(self.P)), 0.0
        for rows, Y, P in self.blocks():
            beyond[rows] = (Y - P).sum(axis=1)
            expected += float((P * (1.0 - P)).sum(dtype=np.float64))
        return float(beyond.var() / max(expected / len(self.P), 1e-12))

    def alike(self) -> tuple[list[list[int]], Array]:
        """What `noise_model.alike` is."""
        counts = self.Y.sum(axis=0)
        products = (self.Y.T @ self.Y).toarray() - np.outer(counts, counts) / len(self.P)
        return noise_model.grouped(np.sqrt(products.diagonal()), products)

    def confused(self) -> list[Confused]:
        """What `confusion.confused` is."""
        products = np.zeros((len(self.live), len(self.live)))
        for _, Y, P in self.blocks():
            products += (Y - P).T @ (Y - P)
        by_label = self.Y.tocsc()

        def column(label: int) -> tuple[Array, Array]:
            return self.P[:, self.live[label]], by_label[:, [label]].toarray()[:, 0]

        both = (self.Y.T @ self.Y).toarray()
        return confusion.by_columns(products, both, len(self.P), column)


class _Scores:
    """What `noise_model.with_others` is, some labels at a time."""

    def __init__(self, given: _Given, first: Array, by_label: Array) -> None:
        self.given, self.by_label = given, by_label
        if by_label.any():
            self._learn(first)

    def _learn(self, first: Array) -> None:
        """Find the best penalty of each label: one inverse each, see `noise_model.by_others`."""
        n = len(self.given.P)
        self.ones, self.back = np.unique(first, return_inverse=True)
        k = len(self.ones)
        gram = np.zeros((k, k))
        for _, Y, P in self.given.blocks():
            R = (Y - P)[:, self.ones]
            gram += R.T @ R
        least = gram.diagonal() / n
        self.size = np.maximum(np.sqrt(least), 1e-9)
        gram /= np.outer(self.size, self.size)
        self.penalty = np.full(k, -1)  # none: the other labels say nothing
        self.inverse, self.of_row = np.zeros((k, k)), np.empty((n, len(PENALTIES)))
        for place, penalty in enumerate(tqdm(PENALTIES, "penalties", disable=None, leave=False)):
            inverse = np.linalg.inv(gram + penalty * np.eye(k))
            error = np.zeros(k)
            for rows, Y, P in self.given.blocks():
                Z = (Y - P)[:, self.ones] / self.size
                along = Z @ inverse
                of_row = np.einsum("ij,ij->i", along, Z)
                self.of_row[rows, place] = of_row
                left_out = noise_model.residual_left_out(
                    along, of_row[:, None], inverse.diagonal(), self.size
                )
                error += (left_out**2).sum(axis=0)
            better = error / n < least
            least = np.where(better, error / n, least)
            self.penalty[better], self.inverse[:, better] = place, inverse[:, better]

    def of(self, labels: slice) -> Array:
        """The scores ``(n, b)`` of some of the labels."""
        Y, P, live = self.given.Y, self.given.P, self.given.live
        own = P[:, live[labels]].astype(np.float64)
        if not self.by_label.any():
            return own
        places = self.back[labels]
        weights = self.inverse[:, places] / self.size[:, None]
        of_given, of_all = np.zeros((Y.shape[1], len(places))), np.zeros((P.shape[1], len(places)))
        of_given[self.ones], of_all[live[self.ones]] = weights, weights
        along = Y @ of_given - P @ of_all.astype(P.dtype)
        helped = self.penalty[places] >= 0
        itself = np.where(helped, self.inverse[places, places], 1)
        left_out = noise_model.residual_left_out(
            along, self.of_row[:, self.penalty[places]], itself, self.size[places]
        )
        R = _columns(self.given.Y, self.ones[places]) - P[:, live[self.ones[places]]]
        return own + self.by_label[labels] * np.where(helped, R - left_out, 0)


def _columns(Y: Matrix, chosen: Any) -> Array:
    return Y[:, chosen].toarray()


def _judge_labels(given: _Given) -> Array:
    """The label confidence of the candidates of labels that can be judged, in CSR order."""
    Y, (n, k) = given.Y, given.Y.shape
    groups, first = given.alike()
    dispersion = given.dispersion()
    free = noise_model.freedom(dispersion)
    pairs = given.confused() if free else []
    by_label = noise_model.heard(free, pairs, k)
    every = _seen(given, _Scores(given, first, by_label))
    floors = every.bins
    if groups and free:
        floors = _seen(given, _Scores(given, np.arange(k), by_label)).bins
    share = Y.sum(axis=0) / n
    weights = share / share.mean()
    model = noise_model.by_bins(every.bins, floors, weights, dispersion, groups, first, pairs)
    model = model.shared(weights)
    tables = model.curve_tables(every.low, every.width)
    sample = Y[:: every.step].toarray()
    right = judging.calibrate(every.sample, sample, weights)
    weight = own_weight(right(every.sample), look_up(every.places, tables[0]), sample, every.step)
    pooled, by_features = right(every.scores), right(every.predictions)
    own, of_own = (look_up(every.place, table, every.label) for table in tables)
    tied = judging.saturation(by_features) if groups else 0.0
    rank = judging.frequency_rank(share)[every.label]
    confidence = judging.confident(
        model, weights, pooled, by_features, own, of_own, rank, tied, every.label, weight=weight
    )
    confidence = confidence[every.back]
    numbered = sparse.csr_array((np.arange(Y.nnz), Y.indices, Y.indptr), (n, k))
    for row, label, left in confusion.kept(pairs):
        confidence[numbered[row][:, [label]].toarray()[:, 0]] *= left
    return confidence


def own_weight(pooled: Array, own: Array, Y: Array, step: int) -> float:
    """What labels' own curves count beside the one for all labels: a half at most.

    They have two parameters a label more, and so have to explain the candidates Y better than that
    alone would (Akaike). Takes the chances by both, for one in `step` rows, all ``(n, q)``.
    """
    likelihood = [
        float((xlogy(Y, p) + xlogy(1 - Y, 1 - p)).sum() * step)
        for p in (
            np.clip(each, judging.NEVER_SURE, 1 - judging.NEVER_SURE) for each in (pooled, own)
        )
    ]
    labels = Y.shape[1]
    return float(np.clip((likelihood[1] - likelihood[0]) / labels - 0.5, 0, 1)) / 2


@dataclass(frozen=True)
class _Seen:
    """What a walk over the scores of k labels keeps; of m candidates, label by label."""

    bins: Bins
    low: Array  # (k,), the least standard score of each label
    width: Array  # (k,), and how far it is to the greatest
    label: Array  # (m,)
    place: Array  # (m,), of the candidate between them
    scores: Array  # (m,)
    predictions: Array  # (m,)
    back: Array  # (m,), where the candidates of a CSR array are among them
    sample: Array  # scores of evenly spaced rows
    places: Array  # and where they are
    step: int  # from one of these rows to the next


def _seen(given: _Given, scores: _Scores) -> _Seen:
    """Walk over the labels, a few at a time."""
    n, k = given.Y.shape
    step = -(-n * k // PAIRS_CALIBRATED)
    numbered = sparse.csr_array((np.arange(given.Y.nnz), given.Y.indices, given.Y.indptr), (n, k))
    by_label = numbered.tocsc()
    label = np.repeat(np.arange(k), np.diff(by_label.indptr))
    place, found, predictions = (np.empty(len(label)) for _ in range(3))
    low, width = np.empty(k), np.empty(k)
    sample, sample_place = (np.empty((-(-n // step), k)) for _ in range(2))
    bins = []
    blocks = row_blocks(k, max(1, PAIRS_AT_ONCE // n))
    for labels in tqdm(blocks, "labels", disable=None, leave=False):
        S = scores.of(labels)
        sample[:, labels] = S[::step]
        these = slice(by_label.indptr[labels.start], by_label.indptr[labels.stop])
        at = by_label.indices[these], label[these] - labels.start
        found[these] = S[at]
        predictions[these] = given.P[at[0], given.live[label[these]]]
        Z = noise_model.standard(S)
        del S
        bins.append(noise_model.binned(Z, _columns(given.Y, labels)))
        places, low[labels], width[labels] = noise_model.placed(Z)
        place[these] = places[at]
        sample_place[:, labels] = places[::step]
    size = bins[0][0]
    on, means = (np.concatenate([each[part] for each in bins], axis=1) for part in (1, 2))
    back = np.empty(len(label), dtype=int)
    back[by_label.data] = np.arange(len(label))
    return _Seen(
        (size, on, means),
        low,
        width,
        label,
        place,
        found,
        predictions,
        back,
        sample,
        sample_place,
        step,
    )
