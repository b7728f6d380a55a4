"""Lists of labels, however people write them: as text, as JSON, as lists; and odd labels."""

import ast
import fnmatch
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from wscpml.arrays import Array, Matrix
from wscpml.datasets.dataset import few, in_full, lean, no_label
from wscpml.datasets.readers import indicator
from wscpml.datasets.tables import short
from wscpml.errors import UserError
from wscpml.parameters import ParameterError

USUAL = ";"  # separator, and the one where no cell has another
SEPARATORS = "|,"  # that are recognised; / and the like are told
COMMON_SEPARATORS = ",|;/"
WITHOUT_SEPARATORS = "give a list of labels for each row"
LISTS = (list, tuple, set, frozenset, np.ndarray)
STRAY = 0.1  # of the cells with another mark: where `;` is in fewer, it stands between no labels
FEW_ROWS = 20  # of so few, odd labels are not worth telling
UNLIKE = 0.5  # more labels than this share of the rows are hardly labels


def columns(given: str | None, there: Sequence[str]) -> tuple[list[str], list[str]]:
    """The columns of tags, and names of none: a column, or several as rock,jazz or tag_*."""
    if given is None or given in there:
        return [given] if given else [], []
    found = {name: fnmatch.filter(there, name) for name in map(str.strip, given.split(","))}
    found |= {name: [name] for name in found if name in there}
    unknown = [name for name, fitting in found.items() if not fitting]
    return list(dict.fromkeys(chain(*found.values()))), unknown


@dataclass(frozen=True)
class Lists:
    """A column of lists of labels, each different cell once."""

    codes: Array  # (n,), which of the cells a row has, -1 for none
    cells: list[Any]  # as they are written
    labels: list[list[str]]  # of each cell
    separator: str
    remarks: list[str]
    source: str  # for messages

    def indicator(self) -> tuple[list[str], Matrix]:
        """Names, and a 0/1 matrix ``(n, q)``: sparse where it would be large."""
        names, cells = indicator([*self.labels, []])  # the last for nothing, -1
        matrix = cells[np.where(self.codes < 0, len(self.labels), self.codes)]
        if len(names) > UNLIKE * len(self.codes):  # hardly labels: refused if they are very many
            return names, in_full(matrix, self.source)
        return names, lean(matrix)

    def without(self, wrong: Collection[tuple[int, str]], names: Mapping[str, str]) -> list[Any]:
        """The cells of all rows without wrong pairs of row and label, written as they were.

        A label that has another name by `names` is written so, and once.
        """
        rewritten: list[Any] = []
        for i, code in enumerate(self.codes):
            labels = self.labels[code] if code >= 0 else []
            left = dict.fromkeys(names.get(label, label) for label in labels)
            kept = [label for label in left if (i, label) not in wrong]
            rewritten.append(self._written(kept, self.cells[code]) if code >= 0 else None)
        return rewritten

    def _written(self, labels: list[str], like: Any) -> Any:
        if not isinstance(like, str):
            return labels
        if _listed(like) is not None:
            return json.dumps(labels, ensure_ascii=False)
        blank = " " if f"{self.separator} " in like else ""
        return f"{self.separator}{blank}".join(labels)


def read_lists(
    column: "pd.Series[Any]",
    separator: str | None,
    source: str,
    named: Callable[[str], str] | None,
) -> Lists:
    """The labels of a column of lists.

    A cell is text with a separator, a JSON list, or a list; no separator is found by looking.
    What options are `named` is for remarks, None where there are none.
    """
    codes, cells = _different(column)
    counts = pd.Series(np.bincount(codes[codes >= 0], minlength=len(cells)))
    where = f"{source}: column {column.name!r}: "

    def refuse(k: int, what: str) -> UserError:
        row = int(np.argmax(codes == k)) + 1
        return UserError(f"{source}: row {row}, column {column.name!r}: {what}")

    known: dict[str, str] = {}  # each label once, whatever number of rows has it

    def taken(labels: Iterable[str]) -> list[str]:
        stripped = (label.strip() for label in labels)
        return [known.setdefault(label, label) for label in stripped if label]

    rows: list[Any] = [_listed(cell) for cell in cells]
    for k, (cell, found) in enumerate(zip(cells, rows, strict=True)):
        if found is None and not isinstance(cell, str):
            raise refuse(k, f"{short(cell)} is not a list of labels")
        if found and any(isinstance(each, (*LISTS, dict)) for each in found):
            raise refuse(k, "has a list within the list; a row has one list of labels")
        if found:
            rows[k] = taken(_label(each) for each in found if not pd.isna(each))
    written = [k for k, found in enumerate(rows) if found is None]
    texts = pd.Series([cells[k] for k in written], dtype=object)
    often = counts.iloc[written].reset_index(drop=True)
    separator, remarks = _separator(texts, often, separator, where, named)
    for k in written:
        rows[k] = taken(cells[k].split(separator))
    odd = texts[texts.str.strip().str[:1].isin(("[", "{"))] if len(texts) else texts
    if len(odd):
        remarks.append(
            f"{where}{int(often[odd.index].sum())} cells look like JSON and are no lists, such as "
            f"{odd.iloc[0][:40]!r}; they are cut at {separator!r}"
        )
    return Lists(codes, cells, rows, separator, remarks, source)


def _label(item: Any) -> str:
    """A label as text; whole numbers are so also where Arrow has floats, beside nothing."""
    return str(int(item) if isinstance(item, float | np.floating) and item.is_integer() else item)


def of_zero_and_one(column: "pd.Series[Any]") -> "pd.Series[Any] | None":
    """A column of 0 and 1, of -1 and 1, or of true and false as numbers; None if it is of others.

    Numbers may be text; nothing is NaN.
    """
    known = column.dropna()
    if not len(known) or known.map(lambda cell: isinstance(cell, LISTS)).astype(bool).any():
        return None
    words = known.astype(str).str.strip().str.lower().replace({"true": "1", "false": "0"})
    values = pd.to_numeric(words, errors="coerce")
    if not (values.isin([0, 1]).all() or values.isin([-1, 1]).all()):
        return None
    return values.astype(float).reindex(column.index)


def _different(column: "pd.Series[Any]") -> tuple[Array, list[Any]]:
    """Codes ``(n,)`` and cells, each text once; nothing is -1."""
    if pd.api.types.is_string_dtype(column):
        codes, texts = pd.factorize(column)
        return codes, list(texts)
    cells = list(column.astype(object))
    there = np.array([isinstance(cell, LISTS) or not pd.isna(cell) for cell in cells], bool)
    codes = np.where(there, np.cumsum(there) - 1, -1)
    return codes, [cell for cell, some in zip(cells, there, strict=True) if some]


def _listed(cell: Any) -> list[Any] | None:
    """The items of a list, also of one that is written as JSON or Python does; None if none."""
    if isinstance(cell, LISTS):
        return list(cell)
    if not isinstance(cell, str) or cell.strip()[:1] + cell.strip()[-1:] != "[]":
        return None
    for parse in (json.loads, ast.literal_eval):
        try:
            return list(parse(cell.strip()))
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            continue
    return None


def _separator(
    texts: "pd.Series[Any]",
    often: "pd.Series[Any]",
    given: str | None,
    where: str,
    named: Callable[[str], str] | None,
) -> tuple[str, list[str]]:
    """What stands between labels, and remarks: what is given, `;`, or what most cells have."""
    assumed = given or USUAL
    counts = {
        each: int(often[texts.str.contains(each, regex=False)].sum())
        for each in (*COMMON_SEPARATORS, assumed)
        if len(texts)
    }
    if not counts or given and counts[given]:
        return assumed, []
    likely, most = (max(of, key=lambda each: counts[each]) for of in (SEPARATORS, counts))

    def give(what: str) -> str:
        return f"give {what} as {named('separator')}" if named else WITHOUT_SEPARATORS

    if given is None and counts[USUAL] < STRAY * counts[likely]:
        return likely, [
            f"{where}{likely!r} is taken for what stands between labels, {counts[likely]} cells "
            f"have it; if it does not, {give('what does')}"
        ]
    if counts[most] > counts[assumed]:
        had = f"{counts[assumed]} cells have" if counts[assumed] else "no cell has"
        return assumed, [
            f"{where}{had} {assumed!r}, {counts[most]} have {most!r}; if that stands between "
            f"labels, {give('it')}"
        ]
    if counts[assumed]:
        return assumed, []
    told = [f"{where}no cell has {given!r}, so each cell is one label"] if given else []
    words = int(often[texts.str.strip().str.contains(r"\s", regex=True)].sum())
    if not given and words > often.sum() / 2:
        usual = short(texts.iloc[int(often.argmax())])
        way_out = f"give {named('separator')} ' '" if named else WITHOUT_SEPARATORS
        told = [
            f"{where}each cell is one label, such as {usual}; if blanks stand between labels, "
            f"{way_out}"
        ]
    return assumed, told


def plain(label: str) -> str:
    """What two spellings share that differ in case or blanks alone."""
    return " ".join(label.split()).casefold()


def variants(names: Sequence[str], counts: Array) -> list[list[int]]:
    """Places of labels that are one but for case and blanks, the most frequent spelling first."""
    alike: dict[str, list[int]] = {}
    for j in np.argsort(-counts.astype(np.int64), kind="stable"):
        alike.setdefault(plain(names[j]), []).append(int(j))
    return sorted(each for each in alike.values() if len(each) > 1)


def merged(
    names: list[str], matrices: Sequence[Array], groups: list[list[int]]
) -> tuple[list[str], list[Array]]:
    """Each group of labels as one, under the name of its first; votes, which are floats, add up."""
    if any(map(sparse.issparse, matrices)):
        return _merged_sparse(names, matrices, groups)
    matrices = [matrix.copy() for matrix in matrices]
    for first, *rest in groups:
        for matrix in matrices:
            together = matrix[:, [first, *rest]]
            votes = matrix.dtype.kind == "f"
            matrix[:, first] = together.sum(axis=1) if votes else together.max(axis=1)
    gone = {j for _, *rest in groups for j in rest}
    kept = [j for j in range(len(names)) if j not in gone]
    return [names[j] for j in kept], [matrix[:, kept] for matrix in matrices]


def _merged_sparse(
    names: list[str], matrices: Sequence[Matrix], groups: list[list[int]]
) -> tuple[list[str], list[Matrix]]:
    place = np.arange(len(names))
    for first, *rest in groups:
        place[rest] = first
    kept, place = np.unique(place, return_inverse=True)
    into = sparse.csr_array((np.ones(len(names), np.uint8), (np.arange(len(names)), place)))
    sums = [sparse.csr_array(matrix @ into) for matrix in matrices]
    found = [each if each.dtype.kind == "f" else each.minimum(1).tocsr() for each in sums]
    return [names[j] for j in kept], found


def odd_labels(
    names: Sequence[str], labels: Matrix, named: Callable[[str], str], merging: bool
) -> list[str]:
    """What a person may want to know of the labels ``(n, q)``: variants, and rare ones."""
    counts, n = labels.sum(axis=0), labels.shape[0]
    way_out = "they are merged" if merging else f"{named('merge_variants')} makes one of each"
    found = _odd_spelling(names, counts, way_out)
    once = [name for name, count in zip(names, counts, strict=True) if count == 1]
    if once and n >= FEW_ROWS:
        found.append(
            f"{len(once)} labels occur once, so that nothing can be learned of them: {few(once)}; "
            f"{named('min_count')} leaves rare ones unjudged"
        )
    if n >= FEW_ROWS and len(names) > UNLIKE * n:
        found.append(
            f"there are {len(names)} different labels in {n} rows: is it the right column, and "
            f"{named('separator')} what stands between them?"
        )
    return found


def _odd_spelling(names: Sequence[str], counts: Array, way_out: str) -> list[str]:
    groups = variants(names, counts)
    pairs = ["/".join(repr(names[j]) for j in group) for group in groups]
    told = f"{len(groups)} labels are written in several ways, {few(pairs)}: {way_out}"
    return [told] if groups else []


def as_table(y: Any, index: Any, door: str = "y") -> tuple[Any, list[str]]:
    """Labels as lists or as text with separators, as a table of 0 and 1; others as they are.

    One column of two different words is left to be two classes; -1 and 1 become 0 and 1, and what
    is neither is refused with its row and column. The `door` is what the argument is called. What
    a person may not have meant by lists is told beside.
    """
    cells = _cells(y)
    if cells is None:
        return _zero_one(y, door), []
    lists = read_lists(cells.rename(door), None, door, None)
    names, matrix = lists.indicator()
    odd = _odd_spelling(names, matrix.sum(axis=0), "write them alike to make one of each")
    remarks = [*lists.remarks, *(f"{door}: {line}" for line in odd)]
    rows = index if index is not None and not isinstance(y, pd.Series) else cells.index
    if len(rows) != len(cells):
        raise ParameterError(f"{door}: has labels of {len(cells)} rows, and there are {len(rows)}")
    return named_columns(matrix, rows, names), remarks


def in_rows(y: Any) -> Any:
    """Labels as they are; of a table of sparse columns a sparse matrix."""
    return sparse.csr_array(y.sparse.to_coo()) if _has_sparse_columns(y) else y


def _has_sparse_columns(y: Any) -> bool:
    return isinstance(y, pd.DataFrame) and all(
        isinstance(kind, pd.SparseDtype) for kind in y.dtypes
    )


def named_columns(labels: Matrix, rows: Any, names: list[str]) -> pd.DataFrame:
    """Labels as a table of 0 and 1, whose columns are sparse if they are."""
    if sparse.issparse(labels):
        return pd.DataFrame.sparse.from_spmatrix(labels, rows, names)  # type: ignore[attr-defined]
    return pd.DataFrame(labels, rows, names)


def _cells(y: Any) -> "pd.Series[Any] | None":
    """One cell of labels for each row, if that is what they are."""
    if isinstance(y, pd.Series):
        cells = y
    elif isinstance(y, list | tuple) or (isinstance(y, np.ndarray) and y.dtype == object):
        if isinstance(y, np.ndarray) and y.ndim != 1:
            return None
        cells = pd.Series(list(y), dtype=object)
    elif isinstance(y, np.ndarray) and y.ndim == 1 and y.dtype.kind in "UT":
        cells = pd.Series(y)
    else:
        return None
    known = cells.dropna().astype(object)
    if not len(known):
        return None
    if known.map(lambda cell: isinstance(cell, LISTS)).all():
        return None if isinstance(y, list | tuple) and _in_columns(list(known)) else cells
    if known.map(lambda cell: isinstance(cell, str)).all() and known.nunique() > 2:
        return cells
    return None


def _in_columns(rows: list[Any]) -> bool:
    """Whether lists are rows of a matrix rather than lists of labels.

    They are as long then, and of 0 and 1 alone, or have some number twice, as no list of labels.
    """
    if any(isinstance(row, set | frozenset) for row in rows) or len(set(map(len, rows))) > 1:
        return False
    if any(isinstance(each, (str, *LISTS)) for row in rows for each in row):
        return False
    marks = all(each in (-1, 0, 1) for row in rows for each in row)
    return marks or any(len(set(row)) < len(row) for row in rows)


def _zero_one(y: Any, door: str) -> Any:
    """A matrix of 0 and 1 as it is, one of -1 and 1 as that; what is neither is refused."""
    if isinstance(y, list | tuple) and len(y) and all(isinstance(row, LISTS) for row in y):
        found = np.asarray(y)
        values = _zero_one(found, door)
        return y if values is found else values
    values = y.to_numpy() if isinstance(y, pd.DataFrame) and not _has_sparse_columns(y) else y
    if not isinstance(values, np.ndarray) or values.ndim != 2 or not values.size:
        return y
    numeric = values.dtype.kind in "biuf"
    if values.dtype.kind in "biu" and values.min() >= 0 and values.max() <= 1:
        return y
    on, off, minus = (
        values == each if numeric else pd.DataFrame(values).isin([each]).to_numpy()
        for each in (1, 0, -1)
    )
    signed = minus.any() and not off.any()
    wrong = ~(on | (minus if signed else off))
    if wrong.any():
        row, column = np.argwhere(wrong)[0].tolist()
        refuse_label(y, row, column, door)
    if numeric and not signed:
        return y
    found = on.astype(np.uint8)
    return pd.DataFrame(found, y.index, y.columns) if isinstance(y, pd.DataFrame) else found


def refuse_label(y: Any, i: int, j: int, door: str) -> None:
    """Refuse the value in a row and column of a table or matrix ``(n, q)``."""
    table = isinstance(y, pd.DataFrame)
    row, column = (y.index[i], y.columns[j]) if table else (i, j)
    value: Any = y.iat[i, j] if table else y[i, j]
    told = no_label(np.nan if pd.isna(value) else value)
    raise ParameterError(f"{door}: row {row!r}, column {column!r}: {told}")
