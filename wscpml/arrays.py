"""What the mathematics of several stages shares."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Array = NDArray[Any]
Matrix: TypeAlias = Any  # an Array, or a scipy CSR array

DENSE_FROM = 0.1  # share of values other than 0
WEAKEST = 1e-10  # of the strongest direction; what is weaker is rounding
EVEN_ODDS = 0.5  # a probability from here on is a label
ROWS_AT_ONCE = 1024  # of sparse rows, whose products are dense
PAIRS_AT_ONCE = 2_000_000  # rows times labels that are worked on at once
NEAR_ONE = np.nextafter(1.0, 0.0)


def squared_distances(X: Matrix, points: Matrix) -> Array:
    """Squared Euclidean distances ``(n, k)`` of rows ``X`` to ``points`` ``(k, d)``."""
    if sparse.issparse(X):
        distances = np.empty((X.shape[0], points.shape[0]))
        across = (-2 * points).T.tocsr() if sparse.issparse(points) else -2 * points.T
        for start in range(0, X.shape[0], ROWS_AT_ONCE):
            product = X[start : start + ROWS_AT_ONCE] @ across
            distances[start : start + ROWS_AT_ONCE] = to_dense(product)
    else:
        # What all points share would cancel, and take the digits with it.
        known = points[~np.isnan(points).any(axis=1)]
        centre = known.sum(axis=0) / max(len(known), 1)
        X, points = X - centre, points - centre
        distances = X @ (-2 * points.T)
    distances += squared_norms(X)[:, None]
    distances += squared_norms(points)
    return np.maximum(distances, 0, out=distances)


def squared_norms(X: Matrix) -> Array:
    """Squared Euclidean norm of each row, ``(n,)``."""
    if sparse.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", X, X)


def to_dense(X: Matrix) -> Array:
    """The same matrix as a plain array."""
    return X.toarray() if sparse.issparse(X) else X


def values_at(matrix: Matrix, row: Array, column: Array) -> Array:
    """The values of a dense or sparse matrix at some places ``(m,)``."""
    return np.asarray(to_dense(matrix[row, column]))


def row_blocks(n: int, size: int) -> list[slice]:
    """The rows 0 ... n - 1 in blocks of `size`."""
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def pair_blocks(n: int, q: int) -> list[slice]:
    """The rows 0 ... n - 1 of q values each, in blocks of what is worked on at once."""
    return row_blocks(n, max(1, PAIRS_AT_ONCE // q))


class Rows:
    """Some rows of a matrix, which may be a memory map: taken, and changed, when asked for."""

    def __init__(
        self, matrix: Array, chosen: Array, change: Callable[[Array], Array] | None = None
    ) -> None:
        self.matrix, self.chosen, self.change = matrix, chosen, change
        self.shape = (len(chosen), matrix.shape[1])

    def __getitem__(self, rows: Any) -> Array:
        taken = self.matrix[self.chosen[rows]]
        return taken if self.change is None else self.change(taken)

    def changed(self, change: Callable[[Array], Array]) -> "Rows":
        """The same rows, each block of them changed when it is taken."""
        return Rows(self.matrix, self.chosen, change)


def weighted_mean(X: Array, weights: Array) -> Array:
    """Mean of the rows by their weights ``(n,)``, in float64; X may be a memory map."""
    blocks = row_blocks(len(X), ROWS_AT_ONCE)
    return sum(weights[rows] @ X[rows] for rows in blocks) / max(weights.sum(), 1)


def strong_directions(
    square: Array, energy: float = 1.0, least: float = 0.0
) -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors that carry a share of a matrix's trace, the strongest first.

    None is kept that is only rounding beside the strongest, or beside `least`.
    """
    values, vectors = np.linalg.eigh(square)
    values, vectors = values[::-1], vectors[:, ::-1]
    strong = int((values > max(values[0], least) * WEAKEST).sum())
    carried = np.cumsum(values[:strong])
    kept = min(strong, int(np.searchsorted(carried, energy * carried[-1])) + 1) if strong else 0
    return values[:kept], vectors[:, :kept]


def to_unit_interval(scores: Array) -> Array:
    """Scores of a regression on 0 and 1 as values in (0, 1), in the same order.

    0.5 stays, with a slope of 1; unlike a cut at 0 and 1 it makes no ties.
    """
    return 0.5 + 0.5 * np.tanh(2 * (scores - 0.5))


def from_unit_interval(probabilities: Array) -> Array:
    """The scores that `to_unit_interval` took, as far as their digits go."""
    return 0.5 + 0.5 * np.arctanh(np.clip(2 * probabilities - 1, -NEAR_ONE, NEAR_ONE))


def nearly_empty(X: Matrix) -> bool:
    """Whether so few values are other than 0 that a matrix had better be sparse."""
    filled = X.nnz if sparse.issparse(X) else np.count_nonzero(X)
    return bool(filled < DENSE_FROM * X.shape[0] * X.shape[1])


def compact(X: Matrix) -> Matrix:
    """The same matrix in float64: sparse if it is nearly empty, else dense."""
    if nearly_empty(X):
        return sparse.csr_array(X, dtype=np.float64)
    return to_dense(X).astype(np.float64, copy=False)


def pack(name: str, X: Matrix) -> dict[str, Array]:
    """A dense or sparse matrix as named arrays, ready for a file."""
    if not sparse.issparse(X):
        return {name: X}
    return {f"{name}.{part}": getattr(X, part) for part in ("data", "indices", "indptr")} | {
        f"{name}.shape": np.array(X.shape)
    }


def unpack(name: str, arrays: dict[str, Array]) -> Matrix:
    """Take a matrix that `pack` made out of the named arrays."""
    if name in arrays:
        return arrays.pop(name)
    data, indices, indptr, shape = (
        arrays.pop(f"{name}.{part}") for part in ("data", "indices", "indptr", "shape")
    )
    return compressed(data, indices, indptr, shape.tolist())


def compressed(
    data: Array, indices: Array, indptr: Array, shape: Sequence[Any], by_columns: bool = False
) -> sparse.csr_array:
    """A sparse matrix from its parts, those of CSR, or of CSC if it is stored by columns.

    Parts that are none are a ValueError: SciPy's compiled code trusts them.
    """
    if len(shape) != 2 or not all(isinstance(side, int) and side >= 0 for side in shape):
        raise ValueError(f"its shape {shape} is not that of a matrix")
    if data.dtype.kind not in "biuf" or {indices.dtype.kind, indptr.dtype.kind} - {"i", "u"}:
        raise ValueError("its sparse parts are not numbers and indices")
    if {data.ndim, indices.ndim, indptr.ndim} != {1} or len(data) != len(indices):
        raise ValueError("its sparse parts do not fit each other")
    rows, columns = reversed(shape) if by_columns else shape
    if len(indptr) != rows + 1 or indptr[0] != 0 or indptr[-1] != len(indices):
        raise ValueError("its sparse rows do not fit its values")
    if (indptr[1:] < indptr[:-1]).any():
        raise ValueError("its sparse rows end before they begin")
    if len(indices) and not (indices.min() >= 0 and indices.max() < columns):
        raise ValueError(f"its sparse indices are not below {columns}")
    kind = sparse.csc_array if by_columns else sparse.csr_array
    return sparse.csr_array(kind((data, indices, indptr), shape=tuple(shape)))


def label_counts(labels: Matrix) -> Array:
    """The sum of each column, ``(q,)``: with the same bytes whether they are dense or sparse."""
    if sparse.issparse(labels):
        return np.bincount(labels.tocsr().indices, labels.tocsr().data, labels.shape[1])
    return labels.sum(axis=0)


def known_rows(truth: Matrix) -> Array:
    """Which rows of true labels are known, a boolean ``(n,)``: the others are -1."""
    if sparse.issparse(truth):
        return np.asarray((truth < 0).sum(axis=1) == 0)
    return truth.min(axis=1, initial=0) >= 0
