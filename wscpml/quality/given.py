"""Judging by a model of one's own: candidates, and the probabilities that it gives to them.

The same estimate as in `judging`, by predictions that are given, and so without a second round.
Nothing of the size of all n rows and q labels is made beside the probabilities: what is learned is
learned from evenly spaced rows of very many, then rows are judged in blocks, and what comes out is
told of the candidates alone.
"""

import warnings
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype
from scipy import sparse
from scipy.special import xlogy
from tqdm import tqdm

from wscpml.algorithm.network import start_rows
from wscpml.arrays import ROWS_AT_ONCE, Array, Matrix, pair_blocks, row_blocks, to_dense
from wscpml.datasets import tags
from wscpml.datasets.tables import short
from wscpml.devices import one_blas_thread
from wscpml.parameters import ParameterError
from wscpml.quality import confusion, judging, noise_model
from wscpml.quality.noise_model import look_up

PAIRS_LEARNED = 5_000_000  # that are learned from at most
BY_CHANCE, REPEATED = 2.0, 0.95  # deviations, and correlation, of probabilities that are odd


def label_confidence(candidates: Any, probabilities: Any) -> Any:
    """The probability that each candidate is true, by the probabilities that a model gives.

    Parameters
    ----------
    candidates : (n, q) of 0 and 1
        An array, a sparse matrix, or a table; or of each row a list of labels, or text such as
        "rock;jazz", if the probabilities are a table.
    probabilities : (n, q), from 0 to 1
        How likely each label is, by any model that was not fitted to the row, as in
        cross-validation. As a table it may have its rows and columns in another order.

    Returns
    -------
    (n, q)
        In the form of the candidates, a table where they are lists; 0 where a label is none. A
        sparse matrix has the same entries.
    """
    candidates, probabilities = _in_columns(candidates, probabilities)
    Y = _as_rows(candidates)
    rows, columns = (
        (candidates.index, candidates.columns)
        if isinstance(candidates, pd.DataFrame)
        else (None, None)
    )
    P = checked(aligned(probabilities, rows, columns), Y.shape, rows, columns)
    for line in odd(P, Y):
        warnings.warn(line, stacklevel=2)
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
LACKS = "has no {} {!r}, which the candidates have"


def aligned(probabilities: Any, rows: Names, columns: Names, door: str = DOOR) -> Matrix:
    """Probabilities as a matrix, in the order of the rows and columns that candidates have.

    A table is matched by its names, where these have names too, else it is taken as it is.
    """
    if not isinstance(probabilities, pd.DataFrame):
        return probabilities if sparse.issparse(probabilities) else np.asarray(probabilities)
    if rows is not None and not probabilities.index.equals(rows):
        _refuse_other_names(probabilities.index, rows, "row", door)
        probabilities = probabilities.loc[rows]
    if columns is not None and not probabilities.columns.equals(columns):
        _refuse_other_names(probabilities.columns, columns, "column", door)
        probabilities = probabilities[columns]
    found = tags.in_rows(probabilities)
    if sparse.issparse(found):
        return found
    kinds = found.dtypes
    if all(map(is_numeric_dtype, kinds)) and not all(isinstance(kind, np.dtype) for kind in kinds):
        return found.to_numpy(np.float64, na_value=np.nan)
    return found.to_numpy()


def _refuse_other_names(there: Names, wanted: Names, what: str, door: str) -> None:
    for names in (there, wanted):
        if names.has_duplicates:
            twice = names[names.duplicated()][0]
            raise ParameterError(f"{door}: {what} {twice!r} is there twice; name each one once")
    for names, others, problem in (
        (wanted, there, LACKS),
        (there, wanted, "has a {} {!r}, which the candidates do not have"),
    ):
        lone = names.difference(others, sort=False)
        if len(lone):
            raise ParameterError(f"{door}: {problem.format(what, lone[0])}")


def checked(
    P: Array, shape: tuple[int, int], rows: Names, columns: Names, door: str = DOOR
) -> Array:
    """Probabilities ``(n, q)`` as floats; what are none is refused, with row and column."""
    if P.shape != shape:
        given, wanted = (" x ".join(map(str, each)) for each in (P.shape, shape))
        raise ParameterError(f"{door}: is {given}, and must be {wanted}, as the candidates are")
    P = cells = to_dense(P)
    if P.dtype.kind not in "fiub":
        P = pd.DataFrame(cells).apply(pd.to_numeric, errors="coerce").to_numpy(np.float64)
    for block in row_blocks(len(P), ROWS_AT_ONCE):
        wrong = np.argwhere(~((P[block] >= 0) & (P[block] <= 1)))
        if len(wrong):
            i, j = int(wrong[0, 0]) + block.start, int(wrong[0, 1])
            row, column = i if rows is None else rows[i], j if columns is None else columns[j]
            got = f"{P[i, j]:g}" if P is cells else short(cells[i : i + 1, j].tolist()[0])
            raise ParameterError(
                f"{door}: row {row!r}, column {column!r}: must be from 0 to 1, got {got}"
            )
    return P if P.dtype in (np.float32, np.float64) else P.astype(np.float32)


def odd(P: Array, Y: Matrix) -> list[str]:
    """What a person may not have meant by probabilities P of candidates Y, both ``(n, q)``."""
    rows = _learned_from(*P.shape)
    said, known = (to_dense(M[rows]).astype(np.float64) for M in (P, Y))
    counts = known.sum(axis=0)
    said -= said.mean(axis=0)
    known -= known.mean(axis=0)
    size = np.sqrt((said**2).sum(axis=0) * (known**2).sum(axis=0))
    differ = (size > 0) & (counts >= judging.FEWEST)
    if not differ.any():
        return []
    like = float(((said * known).sum(axis=0)[differ] / size[differ]).mean())
    if like < BY_CHANCE / np.sqrt(len(rows) * differ.sum()):
        return [
            f"{DOOR}: tell candidates from other labels no better than chance does; are they of "
            "these rows, in this order?"
        ]
    if like > REPEATED:
        return [
            f"{DOOR}: nearly repeat the candidates; a model must not have been fitted to the rows "
            "that it is asked about"
        ]
    return []


def _learned_from(n: int, q: int) -> Array:
    """The rows that are learned from: all, or evenly spaced ones of very many rows and labels."""
    rows = start_rows(n)
    return rows[:: -(-len(rows) * q // PAIRS_LEARNED)]


def _in_columns(candidates: Any, probabilities: Any) -> tuple[Any, Any]:
    """Candidates that may be lists as columns of 0 and 1, one for each of the probabilities."""
    rows = probabilities.index if isinstance(probabilities, pd.DataFrame) else None
    table, _ = tags.as_table(candidates, rows, "candidates")
    if not isinstance(table, pd.DataFrame) or isinstance(candidates, pd.DataFrame):
        return table, probabilities
    if not isinstance(probabilities, pd.DataFrame):
        raise ParameterError(
            "candidates: are lists; give probabilities as a table, with a column of each label"
        )
    probabilities = probabilities.set_axis(probabilities.columns.map(str), axis=1)
    lacking = table.columns.difference(probabilities.columns, sort=False)
    if len(lacking):
        raise ParameterError(f"{DOOR}: {LACKS.format('column', lacking[0])}")
    return table.reindex(columns=probabilities.columns, fill_value=0), probabilities


def _as_rows(candidates: Any) -> Matrix:
    """Candidates as a CSR array, which keeps the entries of a sparse matrix, zeros among them."""
    given = candidates if sparse.issparse(candidates) else np.asarray(candidates)
    if given.ndim != 2:
        raise ParameterError(f"candidates: must have rows and columns, got shape {given.shape}")
    if not given.shape[0]:
        raise ParameterError("candidates: have no rows")
    Y = sparse.csr_array(given, copy=True)
    Y.sum_duplicates()
    wrong = np.flatnonzero(~np.isin(Y.data, (0, 1)))
    if len(wrong):
        row = int(np.searchsorted(Y.indptr, wrong[0], "right")) - 1
        tags.refuse_label(Y, row, int(Y.indices[wrong[0]]), "candidates")
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
    confidence[judged] = _judge_labels(sparse.csr_array(Y[:, live]), P, live)
    confidence[~judged] = max(confidence[judged].mean(), judging.ABSTAIN)
    return confidence


def _judge_labels(Y: Matrix, P: Array, live: Array) -> Array:
    """The label confidence of the candidates ``(n, k)`` of labels that can be judged, in CSR order.

    It is learned from all rows, or from evenly spaced ones of very many.
    """
    n, k = Y.shape
    sample = _learned_from(n, k)
    known, predicted = Y[sample].toarray(), P[sample][:, live]
    seen = noise_model.fit(predicted, known, cautious=True)
    weights = noise_model.weights_of(known)
    model = seen.model.shared(weights)
    some = slice(None, None, -(-known.size // judging.PAIRS_CALIBRATED))
    scores, observed = seen.scores[some], known[some]
    right = judging.calibrate(scores, observed, weights)
    at = known.nonzero()
    tables = model.curve_tables(seen.span.low, seen.span.width)
    own = look_up(seen.span.place(scores), tables[0])
    learned = judging.Learned(
        model,
        weights,
        right,
        seen.span,
        tables,
        judging.frequency_rank(known.mean(axis=0)),
        judging.saturation(right(predicted[at])) if model.groups else 0.0,
        own_weight=own_weight(right(scores), own, observed, n / len(observed)),
    )
    confidence = np.empty(Y.nnz)
    for rows in tqdm(pair_blocks(n, k), "judging", disable=None, leave=False):
        block = Y[rows]
        row, label = block.nonzero()
        of_rows, ours = block.toarray(), P[rows][:, live]
        scores = noise_model.scored(seen.others, model.taggers, ours, of_rows)
        learned_from = np.searchsorted(sample, (rows.start, rows.stop))
        inside = slice(*learned_from)
        scores[sample[inside] - rows.start] = seen.scores[inside]
        found, _ = learned.first(ours[row, label], scores[row, label], label)
        found = learned.by_row(found, ours, of_rows)
        found *= confusion.left(model.confused, ours, of_rows)[row, label]
        confidence[Y.indptr[rows.start] : Y.indptr[rows.stop]] = found
    return confidence


def own_weight(pooled: Array, own: Array, Y: Array, step: float) -> float:
    """What labels' own curves count beside the one for all labels: a half at most.

    They have two parameters a label more, by which the log likelihood of the candidates Y rises by
    1 a label, by chance alone; at twice that (Akaike) they count in full. Takes the chances by
    both, for one in `step` rows, all ``(n, q)``.
    """
    likelihood = [
        float((xlogy(Y, p) + xlogy(1 - Y, 1 - p)).sum() * step)
        for p in (
            np.clip(each, judging.NEVER_SURE, 1 - judging.NEVER_SURE) for each in (pooled, own)
        )
    ]
    labels = Y.shape[1]
    return float(np.clip((likelihood[1] - likelihood[0]) / labels - 1, 0, 1)) / 2
