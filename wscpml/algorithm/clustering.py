"""Stage 3: weakly-supervised clustering, A = Pi * F (Eqs. 6-10, 12-19).

The paper derives the membership step from a Lagrangian that is linear in Pi, so its printed rule
is a heuristic, and the alternation has no guarantee to descend; the objective is recorded so
that everyone can see what it does. Pi, F and B are 0 off the candidates; a row without
candidates takes no part.

Rows go through in blocks: while a block is in the cache it gives its distances, its new F and Pi,
and its part of the next prototypes, so an iteration reads X once, from memory or from disk. Values
are float32, sums over blocks float64. Where few labels are candidates, a block works on the
candidate pairs alone.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy import sparse

from wscpml.algorithm.prototypes import memberships
from wscpml.arrays import Array, Matrix, row_blocks, squared_norms, to_dense, weighted_mean
from wscpml.devices import Parallel, csr_tensor, found_device, in_parallel, to_tensor

if TYPE_CHECKING:
    import torch
    from torch import Tensor

SMALLEST_DISTANCE = 1e-12  # d of Eq. 18 for a row that lies on its prototype
TINY = 1e-30  # keeps float32 clear of 0 / 0 and of the slow numbers next to 0
PAIRS_BELOW = 0.2  # share of candidates; `python -m benchmarks.engine` measures where they cross
BLOCK, PAIRS_BLOCK = 1 << 22, 1 << 21  # values of X or F that a block holds at most
CHUNK = 1 << 17  # values of F that are worked on at a time, all labels of some rows
AT_A_TIME = 4  # the number of blocks is a multiple of this, so that no core waits for long
STRIPS = 16  # parts of the rows that are summed on their own; a constant, so that sums are too


@dataclass(frozen=True)
class Clustering:
    """What the clustering found, and its course."""

    pseudo_labels: sparse.csr_array  # F (n, q), stored where there are candidates
    memberships: sparse.csr_array  # Pi (n, q), the same
    prototypes: Array  # O (q, d), NaN for a label without candidates
    course: pd.DataFrame  # iteration, objective, change
    converged: bool

    def to_arrays(self) -> dict[str, Array]:
        """All of it as named arrays, but for the candidates that it was found of."""
        return {
            "pseudo_labels": self.pseudo_labels.data,
            "memberships": self.memberships.data,
            "prototypes": self.prototypes,
            "course": self.course.to_numpy(np.float64),
            "converged": np.array(self.converged),
        }

    @classmethod
    def from_arrays(cls, candidates: Matrix, arrays: Mapping[str, Array]) -> "Clustering":
        """What `to_arrays` took apart, with these candidates ``(n, q)``."""
        pattern = sparse.csr_array(candidates)
        F, pi = (_with_values(pattern, arrays[name]) for name in ("pseudo_labels", "memberships"))
        course = _course(arrays["course"][:, 1:].tolist())
        return cls(F, pi, arrays["prototypes"], course, bool(arrays["converged"]))


def update_pseudo_labels(
    distances: "Tensor", B: "Tensor", pi: "Tensor", alpha: float, beta: float
) -> "Tensor":
    """Minimise over F (Eqs. 13-17), element by element.

    Divided by 2 alpha pi, Eq. 15 is f^2 - c f - t = 0 with c = 1 - D / (2 alpha) and
    t = beta B / (2 alpha pi). Its positive root is 2 t / (|c| + sqrt(c^2 + 4 t)), plus c where
    c > 0: no term cancels another, and nothing branches. With pi = 0 and B > 0 only the barrier is
    left and f = 1; with pi = B = 0 (so too off the candidates) nothing is, and f = 0.
    """
    import torch

    share = B / pi.clamp_min(TINY)  # t, but for its factor
    c = torch.rsub(distances, 1, alpha=1 / (2 * alpha))
    root = (c * c).add_(TINY).add_(share, alpha=2 * beta / alpha).sqrt_().add_(c.abs())
    F = c.clamp_min_(0).addcdiv_(share, root, value=beta / alpha)
    highest = (pi + B).sign_()
    return torch.minimum(F, highest, out=F)


def membership_costs(distances: "Tensor", pseudo_labels: "Tensor", alpha: float) -> "Tensor":
    """d of Eq. 18 for candidates; elsewhere f is 0, and d does not matter."""
    lacking = pseudo_labels - 1
    costs = (pseudo_labels * distances).addcmul_(lacking, lacking, value=alpha)
    return costs.clamp_min_(SMALLEST_DISTANCE)


def update_memberships(
    costs: "Tensor",
    pseudo_labels: "Tensor",
    rule: str,
    row_sums: "Callable[[Tensor], Tensor]",
) -> "Tensor":
    """Share each row between its labels, by one of two rules.

    `paper` is Eq. 19 as printed: rows of Pi sum to 1. `constrained` takes the normaliser that
    the constraint of Eq. 18 asks for: rows of Pi * F sum to 1. `row_sums` gives every value the
    sum over its row.
    """
    pull = pseudo_labels / costs
    total = row_sums(pull if rule == "paper" else pull * pseudo_labels)
    return pull.div_(total.masked_fill(total <= 0, 1))


def objective(
    costs: "Tensor", B: "Tensor", pi: "Tensor", pseudo_labels: "Tensor", beta: float
) -> float:
    """Value of the main objective, Eq. 10."""
    supervision = _inner(B, pseudo_labels.clamp_min(TINY).log_())
    return _inner(costs, pi) - beta * supervision


def _inner(one: "Tensor", other: "Tensor") -> float:
    return float(one.ravel().dot(other.ravel()))


class _Block:
    """Some rows with F, Pi and B of all their labels, each ``(b, q)``."""

    def __init__(
        self,
        X: Matrix,
        candidates: Matrix,
        B: Matrix,
        found: Sequence[Array],
        rows: slice,
        centre: Array,
        tensor: "Callable[[Array], Tensor]",
    ) -> None:
        self.X, self.rows, self.tensor = X, rows, tensor
        if sparse.issparse(X):
            self.sparse_rows = _csr(X[rows], tensor), _csr(X[rows].T, tensor)
            self.norms = tensor(squared_norms(X[rows]))
        else:
            self.norms = tensor(squared_norms(X[rows] - centre))
        self._start(candidates, B, found)

    def _start(self, candidates: Matrix, B: Matrix, _: Sequence[Array]) -> None:
        self.B = self.tensor(B[self.rows])
        self.F = self.tensor(candidates[self.rows]).clone()
        self.pi = self.tensor(memberships(candidates[self.rows]))

    def load(self) -> "tuple[Tensor, Tensor]":
        """The rows and their transpose; dense ones are read anew each time."""
        if sparse.issparse(self.X):
            return self.sparse_rows
        rows = self.tensor(self.X[self.rows])
        return rows, rows.T

    def products(self, rows: "Tensor", points: "Tensor") -> "Tensor":
        """x_i . o_j for every value of the block."""
        return rows @ points.T

    @property
    def chunks(self) -> list[slice]:
        """The block's values in parts so small that all that is made of one stays in the cache."""
        return row_blocks(len(self.F), max(1, CHUNK // self.F.shape[1]))

    def across(self, of_labels: "Tensor", chunk: slice) -> "Tensor":
        """For every value of a chunk, the norm of its row plus what its label has."""
        return self.norms[chunk, None] + of_labels

    def row_sums(self, values: "Tensor") -> "Tensor":
        """For every value of the block, the sum over its row."""
        return values.sum(dim=1, keepdim=True)

    def label_sums(self, values: "Tensor") -> "Tensor":
        """Sum over each label, ``(q,)``."""
        return values.sum(dim=0)

    def gathered(self, weights: "Tensor", transposed: "Tensor") -> "Tensor":
        """The weighted sum of the rows for each label, ``(q, d)``."""
        if sparse.issparse(self.X):
            return (transposed @ weights).T
        return weights.T @ transposed.T

    def of_candidates(self, values: "Tensor", candidates: sparse.csr_array) -> Array:
        """The values of the candidates, row by row."""
        return values.cpu().numpy()[_places(candidates[self.rows])]


class _Pairs(_Block):
    """Some rows with F, Pi and B of their candidates alone, each ``(pairs,)``, row by row."""

    def _start(
        self, candidates: sparse.csr_array, B: sparse.csr_array, found: Sequence[Array]
    ) -> None:
        import torch

        ends = candidates.indptr[self.rows.start : self.rows.stop + 1]
        pairs = slice(ends[0], ends[-1])
        label, counts = candidates.indices[pairs], np.diff(ends)
        by_label = np.argsort(label, kind="stable")
        starts = np.searchsorted(label[by_label], np.arange(candidates.shape[1] + 1))
        self.shape = len(counts), candidates.shape[1]
        self.B, self.F, self.pi = (
            self.tensor(values[pairs]) for values in (B.data, *found)
        )  # in the same memory, as labels are
        self.F.fill_(1)
        self.pi.copy_(torch.from_numpy(np.repeat(1 / np.maximum(counts, 1), counts)))
        self.label, self.ends, self.by_label, self.starts = (
            to_tensor(array, self.B.device, torch.int32)
            for array in (label, ends - ends[0], by_label, starts)
        )

    @property
    def row(self) -> "Tensor":
        """The row of each pair; made anew each time, which takes less than the memory is worth."""
        import torch

        return torch.repeat_interleave(self.ends.diff())

    def products(self, rows: "Tensor", points: "Tensor") -> "Tensor":
        import torch

        if rows.layout == torch.sparse_csr:
            return (rows @ points.T)[self.row, self.label]
        pattern = csr_tensor(self.ends, self.label, self.B, self.shape)
        return torch.sparse.sampled_addmm(pattern, rows, points.T, beta=0).values()

    @property
    def chunks(self) -> list[slice]:
        return [slice(None)]

    def across(self, of_labels: "Tensor", _: slice) -> "Tensor":
        return self.norms.index_select(0, self.row).add_(of_labels.index_select(0, self.label))

    def row_sums(self, values: "Tensor") -> "Tensor":
        row = self.row
        return values.new_zeros(self.shape[0]).index_add_(0, row, values).index_select(0, row)

    def label_sums(self, values: "Tensor") -> "Tensor":
        return values.new_zeros(self.shape[1]).index_add_(0, self.label, values)

    def gathered(self, weights: "Tensor", transposed: "Tensor") -> "Tensor":
        import torch

        if transposed.layout == torch.sparse_csr:
            spread = weights.new_zeros(self.shape)
            spread[self.row, self.label] = weights
            return super().gathered(spread, transposed)
        row, weights = (values.index_select(0, self.by_label) for values in (self.row, weights))
        return csr_tensor(self.starts, row, weights, self.shape[::-1]) @ transposed.T

    def of_candidates(self, values: "Tensor", _: sparse.csr_array) -> Array:
        return values.cpu().numpy()


class _Sums:
    """What blocks add up, in float64."""

    def __init__(self, q: int, d: int, where: "torch.device") -> None:
        import torch

        self.weighted = torch.zeros(q, d, dtype=torch.float64, device=where)  # rows, by pi f
        self.total = torch.zeros(q, dtype=torch.float64, device=where)  # pi f
        self.objective = self.change = self.norm = 0.0

    def take(self, block: _Block, weights: "Tensor", transposed: "Tensor") -> None:
        """Add a block's part of the next prototypes (Eq. 12), with pi f for weights."""
        self.weighted += block.gathered(weights, transposed)
        self.total += block.label_sums(weights)

    def __iadd__(self, other: "_Sums") -> "_Sums":
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)
        return self


def cluster(
    X: Matrix,
    candidates: Matrix,
    weak_supervision: Matrix,
    alpha: float,
    beta: float,
    rule: str,
    max_iterations: int,
    tolerance: float,
    device: str = "cpu",
    progress: Callable[[Iterable[int]], Iterable[int]] = iter,
) -> Clustering:
    """Alternate over O, F and Pi from F = Y, Pi = U until F changes by less than `tolerance`.

    `X` ``(n, d)`` may be a memory map; candidates and weak supervision B ``(n, q)`` may be dense or
    sparse.
    """
    where = found_device(device)
    pattern = sparse.csr_array(candidates)
    course: list[tuple[float, float]] = []
    with in_parallel(where) as run:
        passes = _Passes(X, candidates, weak_supervision, pattern, alpha, beta, rule, where)
        sums = passes.over_blocks(run, passes.begin)
        for _ in progress(range(max_iterations)):
            prototypes = sums.weighted / sums.total[:, None]  # Eq. 12; NaN for a label without any
            passes.move_to(prototypes)
            norm = sums.norm
            sums = passes.over_blocks(run, passes.iterate)
            change = (sums.change / max(norm, 1e-300)) ** 0.5
            course.append((sums.objective, change))
            if change < tolerance:
                break
    F, pi = passes.found()
    converged = change < tolerance
    return Clustering(F, pi, prototypes.cpu().numpy(), _course(course), converged)


def _course(found: Sequence[Sequence[float]]) -> pd.DataFrame:
    """Objective and change after each iteration, as a table."""
    table = pd.DataFrame(found, columns=["objective", "change"])
    table.insert(0, "iteration", table.index + 1)
    return table


class _Passes:
    """Passes over all rows, in blocks: each gives its sums, and leaves new F and Pi behind."""

    def __init__(
        self,
        X: Matrix,
        candidates: Matrix,
        weak_supervision: Matrix,
        pattern: sparse.csr_array,
        alpha: float,
        beta: float,
        rule: str,
        where: "torch.device",
    ) -> None:
        import torch

        self.alpha, self.beta, self.rule, self.where, self.pattern = (
            alpha,
            beta,
            rule,
            where,
            pattern,
        )
        # The constrained rule makes pi grow as f falls, beyond what float32 can hold.
        self.dtype = torch.float32 if rule == "paper" else torch.float64
        self.q, self.d = candidates.shape[1], X.shape[1]
        self.centre = self._centre(X)
        values = np.float32 if rule == "paper" else np.float64
        self.room = [np.empty(pattern.nnz, values) for _ in ("F", "Pi")]
        self.blocks = self._blocks(X, candidates, weak_supervision)
        strips = row_blocks(len(self.blocks), -(-len(self.blocks) // STRIPS))
        self.strips = [self.blocks[part] for part in strips]

    def _centre(self, X: Matrix) -> Array:
        """The mean of the rows that take part; 0 for sparse ones."""
        if sparse.issparse(X):
            return np.zeros(X.shape[1])
        return weighted_mean(X, (np.diff(self.pattern.indptr) > 0).astype(float))

    def _blocks(self, X: Matrix, candidates: Matrix, weak_supervision: Matrix) -> list[_Block]:
        """All rows in blocks; of their candidates alone where few labels are candidates."""
        (n, q), narrow = candidates.shape, not sparse.issparse(X)
        if self.pattern.nnz < PAIRS_BELOW * n * q:
            kind: type[_Block] = _Pairs
            size = PAIRS_BLOCK // (self.d if narrow else q)
            Y, B = self.pattern, _like(self.pattern, weak_supervision)
        else:
            kind, size = _Block, BLOCK // max(self.d if narrow else 1, q)
            Y, B = to_dense(candidates), to_dense(weak_supervision)
        tensor = partial(to_tensor, where=self.where, dtype=self.dtype)
        rows_at_once = -(-n // (AT_A_TIME * -(-n // (AT_A_TIME * max(64, size)))))
        return [
            kind(X, Y, B, self.room, rows, self.centre, tensor)
            for rows in row_blocks(n, rows_at_once)
        ]

    def over_blocks(self, run: Parallel, work: Callable[[_Block, _Sums], None]) -> _Sums:
        """Do some work on every block; strips of them side by side, in an order that is fixed."""

        def along(strip: Iterable[_Block]) -> _Sums:
            sums = _Sums(self.q, self.d, self.where)
            for block in strip:
                work(block, sums)
            return sums

        whole = _Sums(self.q, self.d, self.where)
        for sums in run(along, self.strips):
            whole += sums
        return whole

    def begin(self, block: _Block, sums: _Sums) -> None:
        """What the first prototypes are made of."""
        sums.take(block, block.pi * block.F, block.load()[1])
        sums.norm += _inner(block.F, block.F)

    def move_to(self, prototypes: "Tensor") -> None:
        """Take new prototypes O ``(q, d)``, for the distances of the next pass."""
        # |x - o|^2 = |x - m|^2 + (o - m)(o + m) - 2 x (o - m), with m the middle of all rows:
        # what rows and prototypes share would cancel, and take the digits with it.
        middle = prototypes.new_tensor(self.centre)
        off = prototypes.nan_to_num(0) - middle
        self.apart = off.to(self.dtype)
        self.offsets = (off * (off + 2 * middle)).sum(dim=1).to(self.dtype)

    def iterate(self, block: _Block, sums: _Sums) -> None:
        """New F and Pi of a block, and its part of the sums."""
        import torch

        rows, transposed = block.load()
        values = block.products(rows, self.apart)
        for chunk in block.chunks:
            B, F, pi = block.B[chunk], block.F[chunk], block.pi[chunk]
            distances = block.across(self.offsets, chunk).sub_(values[chunk], alpha=2).clamp_min_(0)
            found = update_pseudo_labels(distances, B, pi, self.alpha, self.beta)
            costs = membership_costs(distances, found, self.alpha)
            pi.copy_(update_memberships(costs, found, self.rule, block.row_sums))
            change = F.sub_(found)
            sums.change += _inner(change, change)
            F.copy_(found)
            sums.norm += _inner(F, F)
            sums.objective += objective(costs, B, pi, F, self.beta)
            torch.mul(pi, F, out=values[chunk])
        sums.take(block, values, transposed)

    def found(self) -> list[sparse.csr_array]:
        """F and Pi of all rows."""
        for block in self.blocks:
            first, last = (self.pattern.indptr[row] for row in (block.rows.start, block.rows.stop))
            for whole, values in zip(self.room, (block.F, block.pi), strict=True):
                whole[first:last] = block.of_candidates(values, self.pattern)
        return [_with_values(self.pattern, values) for values in self.room]


def _places(pattern: sparse.csr_array) -> tuple[Array, Array]:
    """Row and column of each stored value, row by row."""
    return np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr)), pattern.indices


def _like(pattern: sparse.csr_array, values: Matrix) -> sparse.csr_array:
    """The values of a matrix where a pattern has something, zeros included."""
    if sparse.issparse(values) and values.nnz == pattern.nnz:
        return sparse.csr_array(values)
    return _with_values(pattern, to_dense(values)[_places(pattern)])


def _with_values(pattern: sparse.csr_array, values: Array) -> sparse.csr_array:
    return sparse.csr_array((values, pattern.indices, pattern.indptr), shape=pattern.shape)


def _csr(X: Matrix, tensor: "Callable[[Array], Tensor]") -> "Tensor":
    import torch

    X = sparse.csr_array(X)
    values = tensor(X.data)
    ends, columns = (torch.from_numpy(a.astype(np.int32)) for a in (X.indptr, X.indices))
    return csr_tensor(ends.to(values.device), columns.to(values.device), values, X.shape)
