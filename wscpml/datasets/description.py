"""What was understood of a data set, in words."""

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from wscpml.arrays import Array, Matrix, to_dense, values_at
from wscpml.datasets.columns import missing
from wscpml.datasets.dataset import Dataset, few

if TYPE_CHECKING:
    import pandas as pd

MOST_LABELS = 30  # that are listed


def describe(data: Dataset) -> str:
    """Sizes, labels and oddities, a line each, and the frequency of every label."""
    n, d = data.features.shape
    lines = [
        ("instances", f"{n}, from {data.instance_ids[0]!r} to {data.instance_ids[-1]!r}"),
        ("features", f"{d}, from {data.feature_names[0]!r} to {data.feature_names[-1]!r}"),
        ("values not 0", f"{_filled(data.features):.1%}"),
        ("constant columns", _named(constant_columns(data))),
        ("duplicate rows", str(n - _distinct(data.features))),
        ("labels", str(len(data.label_names))),
        ("candidates a row", _per_row(data.candidates)),
        ("true labels a row", _per_row(data.known_truth)),
        ("rows without label", str(int((data.labels.sum(axis=1) == 0).sum()))),
    ]
    if data.votes is not None:
        votes = values_at(data.votes, *np.nonzero(data.votes))
        told = f"{votes.mean():.3g} on average, {votes.min():g} to {votes.max():g}"
        lines.append(("votes a candidate", told))
    width = max(map(len, data.label_names))
    counts = data.labels.sum(axis=0)
    kind = "truth" if data.candidates is None else "candidates"
    frequent = sorted(zip(counts, data.label_names, strict=True), reverse=True)
    table = [f"  {name:{width}}{count:8}{count / n:9.1%}" for count, name in frequent[:MOST_LABELS]]
    if len(frequent) > MOST_LABELS:
        table.append(f"  ... and {len(frequent) - MOST_LABELS} rarer ones")
    head = [f"{name:20}{value}" for name, value in lines]
    return "\n".join([*head, *_column_lines(data), f"labels by frequency ({kind}):", *table])


def columns(data: Dataset) -> list[dict[str, str | int]]:
    """Each column of a table, what it is taken for, and how it is encoded or why left out."""
    encoders = {each.column: each.how for each in data.encoding.encoders} if data.encoding else {}
    return [
        {
            "name": each.name,
            "role": each.role,
            "how": each.why or encoders.get(each.name, "itself"),
            "missing": 0 if data.raw is None else _missing(data.raw[each.name], each.role),
        }
        for each in data.columns
    ]


def _missing(column: "pd.Series[Any]", role: str) -> int:
    """How many cells have nothing; in a text or a category a word for nothing is a word."""
    return int((column.isna() if role in ("text", "category") else missing(column)).sum())


def _column_lines(data: Dataset) -> list[str]:
    """The columns, a line each; nothing where all are numbers and taken as they are."""
    if data.encoding is None:
        return []
    found = columns(data)
    width = max(len(each.name) for each in data.columns)
    return ["columns:", *(_column_line(each, width, len(data.instance_ids)) for each in found)]


def _column_line(column: dict[str, str | int], width: int, n: int) -> str:
    name, role, how, empty = column.values()
    share = f", {empty / n:.1%} missing" if empty else ""  # type: ignore[operator]
    told = "left out" if role == "ignore" else f"{role}{share}"
    return f"  {name:{width}}  {told}: {how}"


def _filled(X: Matrix) -> float:
    stored = X.count_nonzero() if sparse.issparse(X) else np.count_nonzero(X)
    return float(stored / (X.shape[0] * X.shape[1]))


def constant_columns(data: Dataset) -> list[str]:
    """The columns with one value; not what ours are made of, such as that of rare categories."""
    X = data.features
    constant = (to_dense(X.max(axis=0)) == to_dense(X.min(axis=0))).ravel()
    given = {each.name for each in data.columns} if data.encoding else None
    names = [data.feature_names[j] for j in np.flatnonzero(constant)]
    return names if given is None else [name for name in names if name in given]


def _distinct(X: Matrix) -> int:
    """Number of different rows, told by their bytes."""
    if sparse.issparse(X):
        ends = zip(X.indptr[:-1], X.indptr[1:], strict=True)
        return len({(X.indices[a:b].tobytes(), X.data[a:b].tobytes()) for a, b in ends})
    return len({row.tobytes() for row in X})


def _named(names: list[str]) -> str:
    return f"{len(names)}" + (f": {few(names)}" if names else "")


def _per_row(labels: Array | None) -> str:
    if labels is None:
        return "not given"
    counts = labels.sum(axis=1)
    return f"{counts.mean():.2f} on average, {counts.min()} to {counts.max()}"
