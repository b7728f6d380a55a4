"""A forest that speaks for rows that its trees have not seen, at a price that does not grow with q.

Splits are chosen by the targets, or where labels are many by a few random sums of them. A leaf then
has the mean targets of its rows, nearly all of which are 0 and not stored.
"""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from wscpml.arrays import Array, Matrix, row_blocks
from wscpml.memory import give_back
from wscpml.progress import counted

TRIED, MOST_TRIED = 0.2, 100  # features that a split looks at: a share of them, but not more
PAIRS_PER_TREE = 250_000  # rows times targets that a tree is grown on at most
MANY, SUMS = 64, 16  # of more targets, random sums that splits are chosen by
PAIRS_AT_ONCE = 2_000_000  # predictions that are made at once
TREES_AT_ONCE = 20  # that are grown before a bar moves, and their splits alone are kept


@dataclass(frozen=True)
class Forest:
    """Trees of random splits, and what their leaves say of k targets."""

    trees: list[Any]
    starts: Array  # (trees,), the number of each tree's first node
    means: sparse.csr_array  # (nodes, k), float32

    def leaves(self, X: Matrix) -> Array:
        """The node of each tree that rows are in, ``(n, trees)``."""
        X, found = _as_trees_take_it(X), np.empty((X.shape[0], len(self.trees)), np.int32)
        for place, (tree, start) in enumerate(zip(self.trees, self.starts, strict=True)):
            found[:, place] = tree.apply(X) + start
        return found

    def predict(self, X: Matrix) -> Array:
        """Predictions ``(n, k)``, for rows that no tree was grown on."""
        leaves = self.leaves(X)
        return self.votes(leaves, np.ones(leaves.shape, bool))

    def votes(self, leaves: Array, speak: Array) -> Array:
        """The mean of those trees that speak for each row, both ``(n, trees)``."""
        (n, trees), k = leaves.shape, self.means.shape[1]
        found = np.empty((n, k))
        for rows in row_blocks(n, max(1, PAIRS_AT_ONCE // max(trees, k))):
            counts = speak[rows].sum(axis=1)
            ends = np.append(0, np.cumsum(counts))
            chosen = leaves[rows][speak[rows]]
            shape = (len(counts), self.means.shape[0])
            ones = np.ones(len(chosen), np.float32)
            sums = sparse.csr_array((ones, chosen, ends), shape) @ self.means
            found[rows] = sums.toarray() / np.maximum(counts, 1)[:, None]
        return found


def grow(
    X: Matrix, targets: Array, seed: int, trees: int, leaf: int, shown: bool = False
) -> tuple[Forest, Array]:
    """A forest grown on rows ``(n, d)`` and targets ``(n, k)``, and its predictions of them.

    Leaves have so many rows at least. A row is predicted by the trees that were grown without it.
    If `shown`, a bar tells how far it is; the trees are the same.
    """
    from sklearn.ensemble import ExtraTreesRegressor

    X, (n, k) = _as_trees_take_it(X), targets.shape
    summed = targets
    if k > MANY:
        signs = np.random.default_rng(seed).choice([-1.0, 1.0], (k, SUMS))
        summed = sparse.csr_array(targets) @ signs
    few = PAIRS_PER_TREE / (n * min(k, MANY))
    forest = ExtraTreesRegressor(
        min_samples_leaf=leaf,
        max_features=max(1, min(round(TRIED * X.shape[1]), MOST_TRIED)),
        max_samples=few if few < 1 else None,
        bootstrap=True,
        random_state=seed,
        n_jobs=-1,
        warm_start=True,
    )
    parts, summed = [], summed.squeeze()
    for some in counted(row_blocks(trees, TREES_AT_ONCE), "growing trees", shown):
        forest.n_estimators = some.stop
        with warnings.catch_warnings():
            # scikit-learn's threads empty and refill one list of filters, and warn where they find
            # it empty: nothing may be in it that makes an error of that
            warnings.resetwarnings()
            warnings.simplefilter("ignore")
            forest.fit(X, summed)
        for each in forest.estimators_[some]:
            each.tree_ = _splits_alone(each.tree_)
            parts.append(each.tree_)
    counts = np.array([part.node_count for part in parts])
    starts = np.cumsum(counts) - counts
    leaves = Forest(parts, starts, sparse.csr_array((0, k), dtype=np.float32)).leaves(X)
    drawn = np.zeros(leaves.shape, np.uint8)
    for place, rows in enumerate(forest.estimators_samples_):
        drawn[:, place] = np.bincount(rows, minlength=n)
    values = sparse.csr_array(targets)
    means = [
        _means(leaves[:, some], drawn[:, some], starts[some], counts[some], values)
        for some in row_blocks(trees, TREES_AT_ONCE)
    ]
    del forest, values
    found = Forest(parts, starts, sparse.vstack(means, "csr"))
    del means
    give_back()
    return found, found.votes(leaves, drawn == 0)


def _means(
    leaves: Array, drawn: Array, starts: Array, counts: Array, values: sparse.csr_array
) -> sparse.csr_array:
    """The mean values of the rows in each node of some trees, that are drawn so many times."""
    row, tree = np.nonzero(drawn)
    often = drawn[row, tree].astype(float)
    node = leaves[row, tree] - starts[0]
    members = sparse.csr_array((often, (node, row)), (int(counts.sum()), len(leaves)))
    size = members.sum(axis=1)
    means = sparse.csr_array(members @ values)
    means.data /= np.repeat(size, np.diff(means.indptr))
    return means.astype(np.float32)


def _splits_alone(tree: Any) -> Any:
    """A tree that tells the leaves of rows and no values, which are most of its memory."""
    from sklearn.tree._tree import Tree

    bare = Tree(tree.n_features, np.ones(1, np.intp), 1)
    bare.__setstate__(tree.__getstate__() | {"values": np.zeros((tree.node_count, 1, 1))})
    return bare


def _as_trees_take_it(X: Matrix) -> Matrix:
    return (sparse.csr_matrix(X) if sparse.issparse(X) else X[:]).astype(np.float32)
