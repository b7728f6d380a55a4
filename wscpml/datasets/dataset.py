"""What a data set is, whatever file it came from, and what may be wrong with it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from wscpml.arrays import DENSE_FROM, Array, Matrix, compact, known_rows, to_dense, values_at
from wscpml.errors import HALF, UserError
from wscpml.limits import ask

if TYPE_CHECKING:
    import pandas as pd

    from wscpml.datasets.columns import Column
    from wscpml.datasets.encoding import Encoding


LARGE = 20_000_000  # rows times labels from which they are kept sparse


@dataclass(frozen=True)
class Unjudged:
    """Labels that are too rare to say anything of: passed through, not among the data set's."""

    label_names: list[str]
    candidates: Matrix  # 0/1 (n, r)

    def told(self, option: str) -> list[str]:
        """What there is of them, in words."""
        if not self.label_names:
            return []
        return [
            f"{option}: {len(self.label_names)} labels are too rare to be judged and stay as they "
            f"are: {few(self.label_names)}"
        ]


@dataclass(frozen=True)
class Dataset:
    """n instances with d features and q labels."""

    features: Matrix  # (n, d)
    truth: Matrix | None  # 0/1 (n, q), -1 in rows of which it is not known; None if of no row
    candidates: Matrix | None  # 0/1 (n, q), None where noise is still to be injected
    feature_names: list[str]
    label_names: list[str]
    instance_ids: list[Any]
    remarks: Sequence[str] = ()  # what a person may not expect of how it was read
    columns: "Sequence[Column]" = ()  # of a table: what each was taken for
    encoding: "Encoding | None" = None  # that made features of columns other than plain numbers
    raw: "pd.DataFrame | None" = None  # the rows as they were before it
    unjudged: "Unjudged | None" = None
    shown: "pd.DataFrame | None" = None  # n rows of text: what a person knows an instance by
    votes: Matrix | None = None  # (n, q), what taggers say for each candidate, above 0; else 0

    @property
    def labels(self) -> Matrix:
        """The candidates, or the truth where there are none yet."""
        found = self.truth if self.candidates is None else self.candidates
        assert found is not None
        return found

    @property
    def compact_features(self) -> Matrix:
        """The features to learn from: sparse if nearly empty, unless columns were encoded."""
        return compact(self.features) if self.encoding is None else self.features

    @property
    def known_truth(self) -> Matrix | None:
        """The rows of the truth that are known."""
        return None if self.truth is None else self.truth[known_rows(self.truth)]


def check(data: Dataset, source: str) -> list[str]:
    """Refuse what the method cannot take; returns warnings of what a person may not have meant.

    Labels are known to be 0/1 here: `binary` makes them so.
    """
    n, d = data.features.shape
    if not n or not d:
        raise UserError(f"{source}: has {n} instances and {d} features; there must be some of both")
    if not data.label_names:
        raise UserError(f"{source}: no instance has any label")
    for name, labels in (("truth", data.truth), ("candidates", data.candidates)):
        if labels is not None and labels.shape != (n, len(data.label_names)):
            raise UserError(
                f"{source}: {name} of shape {labels.shape} do not fit {n} instances "
                f"and {len(data.label_names)} labels"
            )
    _refuse_non_finite(data, source)
    _refuse_halves(data.feature_names, "feature", source)
    _refuse_halves(data.instance_ids, "instance", source)
    rare = data.unjudged.label_names if data.unjudged else []
    _refuse_halves([*data.label_names, *rare], "label", source)
    refuse_twice(data.feature_names, "feature", source)
    refuse_twice(data.instance_ids, "instance", source)
    refuse_twice(data.label_names, "label", source)
    if "instance" in data.label_names:
        raise UserError(
            f"{source}: a label cannot be called 'instance', as our tables' id column is"
        )
    if data.truth is not None and data.candidates is not None:
        row, label = np.nonzero(data.truth)
        true, given = (values_at(each, row, label) == 1 for each in (data.truth, data.candidates))
        outside = np.flatnonzero(true & ~given)
        if len(outside):
            i, j = min(zip(row[outside].tolist(), label[outside].tolist(), strict=True))
            raise UserError(
                f"{source}: {_row(data, i)}: {data.label_names[j]!r} is true but no candidate "
                f"({len(outside)} such); candidates must contain the truth"
            )
    return [*data.remarks, *(f"{source}: {line}" for line in _oddities(data))]


def _refuse_halves(names: Sequence[Any], what: str, source: str) -> None:
    """JSON and Python in a cell can name half of a character, which no file can hold."""
    texts = [name for name in names if isinstance(name, str)]
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        odd = next(name for name in texts if HALF.search(name))
        raise UserError(f"{source}: {what} {odd!r} has half of a character; rename it") from None


def binary(labels: Matrix, source: str, names: Sequence[str] | None = None) -> Array:
    """Labels as 0/1 uint8, from 0/1 or -1/1 of any type; columns' names are for the message."""
    ask_for_labels(labels.shape[0], labels.shape[1], source)
    dense = np.asarray(to_dense(labels))
    if dense.dtype == np.uint8 and dense.max(initial=0) <= 1:
        return dense
    positive, negative = dense == 1, dense == 0
    if (dense == -1).any() and not negative.any():
        negative = dense == -1
    wrong = ~(positive | negative)
    if wrong.any():
        i, j = np.argwhere(wrong)[0]
        column = f"column {names[j]!r}" if names else f"label column {j + 1}"
        raise UserError(f"{source}: row {i + 1}, {column}: {no_label(dense[i, j])}")
    return positive.astype(np.uint8)


def no_label(value: Any) -> str:
    """What is wrong with a value that should say whether a label is given, and the way out."""
    if value is None or value != value:
        return "is empty; write 1 where the label is given, and 0 where it is not"
    value = value.item() if isinstance(value, np.generic) else value
    told = f"{value:g}" if isinstance(value, float) else repr(value)
    return f"{told} is not 0 or 1 (or -1 or 1); mend that value"


def lean(labels: Matrix) -> Matrix:
    """The same labels: sparse if there are very many and most of them 0, else as a plain array."""
    size = labels.shape[0] * labels.shape[1]
    filled = labels.nnz if sparse.issparse(labels) else np.count_nonzero(labels)
    if size > LARGE and filled < DENSE_FROM * size:
        found = sparse.csr_array(labels, copy=True)
        found.sum_duplicates()
        found.eliminate_zeros()  # what is stored is a label
        return found
    return to_dense(labels)


def in_full(labels: Matrix, source: str) -> Array:
    """The same labels as a plain array; more than there is memory for is refused."""
    ask_for_labels(labels.shape[0], labels.shape[1], source)
    return to_dense(labels)


def ask_for_labels(n: int, q: int, source: str) -> None:
    """Refuse labels that there is no memory for."""
    ask(n * q, source, f"{n:,} instances have {q:,} different labels")


def refuse_twice(names: list[Any], what: str, source: str) -> None:
    """Refuse a name that two have, and tell which."""
    seen: dict[Any, int] = {}
    for position, name in enumerate(names, start=1):
        if seen.setdefault(name, position) != position:
            places = f"{seen[name]} and {position}"
            raise UserError(
                f"{source}: {what} {name!r} is there twice, as numbers {places}; rename one"
            )


def few(names: list[str]) -> str:
    """The first few of many names."""
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")


def _row(data: Dataset, i: int) -> str:
    return f"row {i + 1} (instance {data.instance_ids[i]!r})"


def _refuse_non_finite(data: Dataset, source: str) -> None:
    X = data.features
    stored = np.isfinite(X.data if sparse.issparse(X) else X)
    if stored.all():
        return
    if sparse.issparse(X):
        place = int(np.argmin(stored))
        i, j = int(np.searchsorted(X.indptr, place, side="right")) - 1, int(X.indices[place])
    else:
        i, j = np.argwhere(~stored)[0]
    raise UserError(
        f"{source}: {_row(data, i)}, column {data.feature_names[j]!r}: {X[i, j]} is not a finite "
        "number; fill or leave out such values"
    )


def _oddities(data: Dataset) -> list[str]:
    found = []
    used = data.labels.sum(axis=0)
    unused = [name for name, some in zip(data.label_names, used, strict=True) if not some]
    if unused:
        found.append(
            f"{len(unused)} labels are never used and will be predicted absent: {few(unused)}"
        )
    n = data.labels.shape[0]
    if n > 1 and data.labels.sum(axis=0).max() <= 1:
        found.append("no label occurs more than once, so nothing can be learned about any")
    empty = data.labels.sum(axis=1) == 0
    if empty.any():
        found.append(f"{empty.sum()} instances have no label and count as pure negatives")
    if data.candidates is not None and data.truth is not None:
        known = known_rows(data.truth)
        untrue = ~empty & known & (data.truth.sum(axis=1) == 0)
        if untrue.any():
            found.append(f"{untrue.sum()} instances have candidates but no true label")
        unknown = n - int(known.sum())
        if unknown:
            found.append(
                f"the true labels of {unknown} of {n} instances are not listed and count as "
                "unknown; a row of weight 0 says that an instance has none"
            )
    return found
