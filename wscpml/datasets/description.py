"""What was understood of a data set, in words."""

import numpy as np
from scipy import sparse

from wscpml.arrays import Array, Matrix, to_dense, values_at
from wscpml.datasets.dataset import Dataset, few

MOST_LABELS = 30  # that are listed


def describe(data: Dataset) -> str:
    """Sizes, labels and oddities, a line each, and the frequency of every label."""
    n, d = data.features.shape
    lines = [
        ("instances", f"{n}, from {data.instance_ids[0]!r} to {data.instance_ids[-1]!r}"),
        ("features", f"{d}, from {data.feature_names[0]!r} to {data.feature_names[-1]!r}"),
        ("values not 0", f"{_filled(data.features):.1%}"),
        ("constant columns", _named(data.feature_names, _constant(data.features))),
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


def columns(data: Dataset) -> list[dict[str, str]]:
    """Each column of a table, what it is taken for, and how it is encoded or why left out."""
    encoders = {each.column: each.how for each in data.encoding.encoders} if data.encoding else {}
    return [
        {
            "name": each.name,
            "role": each.role,
            "how": each.why or encoders.get(each.name, "itself"),
        }
        for each in data.columns
    ]


def _column_lines(data: Dataset) -> list[str]:
    """The columns, a line each; nothing where all are numbers and taken as they are."""
    if data.encoding is None:
        return []
    found = columns(data)
    width = max(len(each["name"]) for each in found)
    told = [
        f"  {each['name']:{width}}  "
        + (
            f"left out: {each['how']}"
            if each["role"] == "ignore"
            else f"{each['role']}: {each['how']}"
        )
        for each in found
    ]
    return ["columns:", *told]


def _filled(X: Matrix) -> float:
    stored = X.count_nonzero() if sparse.issparse(X) else np.count_nonzero(X)
    return float(stored / (X.shape[0] * X.shape[1]))


def _constant(X: Matrix) -> Array:
    return (to_dense(X.max(axis=0)) == to_dense(X.min(axis=0))).ravel()


def _distinct(X: Matrix) -> int:
    """Number of different rows, told by their bytes."""
    if sparse.issparse(X):
        ends = zip(X.indptr[:-1], X.indptr[1:], strict=True)
        return len({(X.indices[a:b].tobytes(), X.data[a:b].tobytes()) for a, b in ends})
    return len({row.tobytes() for row in X})


def _named(names: list[str], chosen: Array) -> str:
    found = [name for name, some in zip(names, chosen, strict=True) if some]
    return f"{len(found)}" + (f": {few(found)}" if found else "")


def _per_row(labels: Array | None) -> str:
    if labels is None:
        return "not given"
    counts = labels.sum(axis=1)
    return f"{counts.mean():.2f} on average, {counts.min()} to {counts.max()}"
