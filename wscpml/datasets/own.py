"""A person's own files: which column or array is what."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from wscpml.arrays import Array, Matrix, known_rows
from wscpml.datasets import readers
from wscpml.datasets.dataset import Dataset, binary
from wscpml.datasets.tables import numbers
from wscpml.errors import UserError

COMMON_SEPARATORS = ",|;/"
DECIMAL = re.compile(r"-?\d+(\.\d+)?")
UNNAMED = ("column 1", "Unnamed: 0")  # what we and pandas call a first column without a name
NO_LABELS, UNKNOWN = np.uint8(0), np.int8(-1)  # what long rows mean by leaving an instance out


def in_python(option: str) -> str:
    """What a call of ours names an option."""
    return f"{option}="


def in_params(option: str) -> str:
    """What params.yaml names an option."""
    return f"dataset.{option}"


def on_command_line(option: str) -> str:
    """What the command `wscpml` names an option."""
    places = {"features": "FILE", "candidates": "CANDIDATES"}
    return places.get(option, f"--{option.replace('_', '-')}")


@dataclass(frozen=True)
class Sources:
    """Where the parts of a data set are, and how to read them."""

    features: Path
    candidates: Path | None = None  # None: in the same file as the features
    truth: Path | None = None
    id: str | None = None  # column that names the instances
    tags: str | None = None  # column that holds lists of labels
    separator: str = ";"  # between the labels of such a list
    label_count: int | None = None  # of the last attributes of an ARFF file
    show: Sequence[str] = ()  # columns to show to a person, which are no features
    named: Callable[[str], str] = in_python  # what messages call an option


@dataclass(frozen=True)
class Features:
    """Features as a file has them."""

    matrix: Matrix
    names: list[str] | None
    ids: list[str] | None


@dataclass(frozen=True)
class Labels:
    """Labels as a file has them."""

    path: Path
    matrix: Array
    names: list[str] | None
    ids: list[str] | None
    may_lack_instances: bool = False  # long rows say nothing of an instance without labels


def load(sources: Sources) -> Dataset:
    """Read a data set from a person's own files."""
    if not sources.separator:
        raise UserError(f"{sources.named('separator')}: must not be empty")
    files = _Files(sources)
    for name in sources.show:
        files.shown_in(name)
    features = files.features()
    n = features.matrix.shape[0]
    candidates = files.labels(sources.candidates or sources.features, "labels")
    truth = None
    if sources.truth or files.holds_truth():
        truth = files.labels(sources.truth or sources.features, "truth")
    if features.ids is None and len(candidates.matrix) == n:
        features = replace(features, ids=candidates.ids)
    shown = {name: files.shown_column(name, features) for name in sources.show}
    label_names = candidates.names or _numbered("label", candidates.matrix.shape[1])
    matrices = [_aligned(candidates, features, sources, NO_LABELS)]
    if truth:
        matrices.append(_aligned(truth, features, sources, UNKNOWN))
    if truth and truth.names and truth.names != label_names:
        label_names, matrices = _same_columns(label_names, matrices, truth.names)
    return Dataset(
        features=features.matrix,
        truth=matrices[1] if truth else None,
        candidates=matrices[0],
        feature_names=features.names or _numbered("x", features.matrix.shape[1]),
        label_names=label_names,
        instance_ids=np.arange(n).tolist() if features.ids is None else _whole(features.ids),
        remarks=files.remarks,
        shown=pd.DataFrame(shown) if shown else None,
    )


class _Files:
    """The files of a data set, each read once."""

    def __init__(self, sources: Sources) -> None:
        self.sources = sources
        self.read: dict[Path, Any] = {}
        self.remarks: list[str] = []

    def content(self, path: Path) -> Any:
        """A table, or the Parts of another format."""
        if path not in self.read:
            refuse_unreadable(path)
            if path.suffix in readers.TABLES:
                named = (self.sources.id, self.sources.tags, "label", *self.sources.show)
                text = [name for name in named if name]
                table = readers.read_table(path, text)
                self.read[path] = self.without_row_numbers(table, path)
            else:
                self.read[path] = readers.read(path, self.sources.label_count)
        return self.read[path]

    def without_row_numbers(self, table: pd.DataFrame, path: Path) -> pd.DataFrame:
        """A table without the column that pandas writes an index to, unless it is the ids."""
        first, n = table.columns[0], len(table)
        if first not in UNNAMED or first == self.sources.id or not n:
            return table
        if not any(np.array_equal(table[first], range(k, n + k)) for k in (0, 1)):
            return table
        self.remarks.append(
            f"{path}: its first column has no name and just counts the rows, so it is left out; "
            "give it a name to keep it"
        )
        return table.drop(columns=first)

    def ids(self, table: pd.DataFrame, path: Path) -> list[str] | None:
        """The ids of a table's rows; whole numbers may be written as floats."""
        if self.sources.id is None:
            return None
        found = ids(table, self.sources.id, path, self.sources.named("id"))
        decimal = next((key for key in found if "." in key), None)
        if decimal is None or not all(map(DECIMAL.fullmatch, found)):
            return found
        remark = (
            f"{path}: column {self.sources.id!r}: ids are decimal numbers, such as {decimal}, and "
            "1.0 counts as 1; write whole numbers or text"
        )
        if remark not in self.remarks:
            self.remarks.append(remark)
        return [re.sub(r"\.0+$", "", key) for key in found]

    def numbers(self, table: pd.DataFrame, path: Path) -> Array:
        named = self.sources.named
        options = f"{named('id')}, {named('tags')} or {named('show')}"
        way_out = f"leave the column out, or name it as {options}"
        return numbers(table, str(path), way_out=way_out)

    def remark_other_separator(self, column: "pd.Series[Any]", path: Path) -> None:
        """Tell of lists that seem to be cut by something else than the separator."""
        separator = self.sources.separator
        if not pd.api.types.is_string_dtype(column):
            return
        cells = column.dropna().str
        counts = {each: int(cells.contains(each, regex=False).sum()) for each in COMMON_SEPARATORS}
        most = max(counts, key=lambda each: counts[each])
        if counts[most] and not cells.contains(separator, regex=False).any():
            self.remarks.append(
                f"{path}: column {column.name!r}: no cell has {separator!r}, {counts[most]} have "
                f"{most!r}; if that stands between labels, give it as "
                f"{self.sources.named('separator')}"
            )

    def holds_truth(self) -> bool:
        return getattr(self.content(self.sources.features), "truth", None) is not None

    def features(self) -> Features:
        path, sources = self.sources.features, self.sources
        found = self.content(path)
        if isinstance(found, readers.Parts):
            if found.features is None:
                raise UserError(f"{path}: holds no features")
            return Features(found.features, found.feature_names, None)
        if sources.candidates in (None, path) and sources.tags not in found:
            raise UserError(
                f"{path}: {sources.named('candidates')} is no other file and "
                f"{sources.named('tags')} no column of this one; its columns are {_columns(found)}"
            )
        ids = self.ids(found, path)
        rest = (sources.id, sources.tags, *sources.show)
        numeric = found.drop(columns=[name for name in rest if name in found])
        return Features(self.numbers(numeric, path), list(map(str, numeric)), ids)

    def labels(self, path: Path, kind: str) -> Labels:
        """Labels from a table's lists, long rows or 0/1 columns, or from a matrix."""
        found, sources = self.content(path), self.sources
        if isinstance(found, readers.Parts):
            return _matrix_labels(found, path, kind, path == sources.features)
        ids = self.ids(found, path)
        if sources.tags in found:
            self.remark_other_separator(found[sources.tags], path)
            names, matrix = _lists(found[sources.tags], sources.separator, path)
            return Labels(path, matrix, names, ids)
        if ids is not None and "label" in found:
            return _long_rows(found, ids, path)
        rest = (sources.id, *sources.show)
        columns = found.drop(columns=[name for name in rest if name in found])
        matrix = binary(self.numbers(columns, path), str(path))
        return Labels(path, matrix, list(map(str, columns)), ids)

    def shown_in(self, name: str) -> Path:
        """The file that has a column to show: that of the features, or else of the candidates."""
        paths = [path for path in (self.sources.features, self.sources.candidates) if path]
        tables = [(path, self.content(path)) for path in paths]
        named = {path: table for path, table in tables if isinstance(table, pd.DataFrame)}
        found = [path for path, table in named.items() if name in table]
        if not found:
            columns = ", ".join(map(_columns, named.values())) or "not named"
            raise UserError(
                f"{paths[0]}: {self.sources.named('show')}: has no column {name!r}; its columns "
                f"are {columns}"
            )
        return found[0]

    def shown_column(self, name: str, features: Features) -> list[str]:
        """A column to show, a cell for each row of the features, by the ids if both files have."""
        path, n = self.shown_in(name), features.matrix.shape[0]
        table = self.content(path)
        cells = table[name].map(str, na_action="ignore").astype(object).fillna("").tolist()
        ids = self.ids(table, path)
        if path != self.sources.features and ids is not None and features.ids is not None:
            of_each = dict(zip(reversed(ids), reversed(cells), strict=True))  # the first counts
            return [of_each.get(key, "") for key in features.ids]
        if len(cells) != n:
            raise UserError(
                f"{path}: {self.sources.named('show')}: column {name!r} has {len(cells)} rows, and "
                f"there are {n} instances"
            )
        return cells


def _numbered(stem: str, count: int) -> list[str]:
    return [f"{stem}{i + 1}" for i in range(count)]


def _columns(table: pd.DataFrame) -> str:
    return ", ".join(map(str, table.columns[:10]))


def refuse_unreadable(path: Path) -> None:
    """Refuse a file that is not there, is empty or of a kind that is not known."""
    if path.suffix not in readers.FORMATS:
        known = ", ".join(readers.FORMATS)
        raise UserError(f"{path}: extension {path.suffix!r} is not known; known are {known}")
    if not path.is_file():
        raise UserError(f"{path}: no such file")
    if path.stat().st_size == 0:
        raise UserError(f"{path}: is empty")


def ids(table: pd.DataFrame, column: str, path: Path, option: str, first: int = 1) -> list[str]:
    """A column of ids as text, so that those of different files can be compared.

    What the column's `option` is called and the number of the `first` row are for messages.
    """
    if column not in table:
        raise UserError(
            f"{path}: {option}: has no column {column!r}; its columns are {_columns(table)}"
        )
    _refuse_empty(table, column, path, first)
    return [str(key).removesuffix(" 00:00:00") for key in table[column]]


def _whole(ids: list[str]) -> list[Any]:
    """Ids as whole numbers where that is what all of them are."""
    if all(key.isdecimal() and key == str(int(key)) for key in ids):
        return [int(key) for key in ids]
    return ids


def _refuse_empty(table: pd.DataFrame, column: str, path: Path, first: int = 1) -> None:
    missing = table[column].isna().to_numpy()
    if missing.any():
        row = first + int(np.argmax(missing))
        raise UserError(f"{path}: row {row}, column {column!r}: is empty")


def _lists(column: "pd.Series[Any]", separator: str, path: Path) -> tuple[list[str], Array]:
    """Names and 0/1 matrix of a column of lists: text cut at a separator, or Parquet's lists."""
    if pd.api.types.is_string_dtype(column):
        codes, texts = pd.factorize(column)  # each text is cut once; a missing one is the last, -1
        names, matrix = readers.indicator([*(_cleaned(t.split(separator)) for t in texts), []])
        return names, matrix[codes]
    rows = []
    for i, cell in enumerate(column.astype(object), start=1):
        if isinstance(cell, str):
            rows.append(_cleaned(cell.split(separator)))
        elif isinstance(cell, (list, tuple, np.ndarray)):
            rows.append(_cleaned(map(str, cell)))
        elif pd.isna(cell):
            rows.append([])
        else:
            raise UserError(
                f"{path}: row {i}, column {column.name!r}: {cell!r} is not a list of labels"
            )
    return readers.indicator(rows)


def _cleaned(labels: Iterable[str]) -> list[str]:
    return [label for label in map(str.strip, labels) if label]


def _long_rows(table: pd.DataFrame, ids: list[str], path: Path) -> Labels:
    """A row per instance and label; a weight of 0 or less means that the label is not there."""
    if not len(table):
        raise UserError(f"{path}: has no rows")
    _refuse_empty(table, "label", path)
    there = np.ones(len(table), bool)
    if "weight" in table:
        _refuse_empty(table, "weight", path)
        there = numbers(table[["weight"]], str(path))[:, 0] > 0
    rows, unique_ids = pd.factorize(pd.Series(ids, dtype=object))
    columns, names = pd.factorize(table["label"].astype(str).str.strip(), sort=True)
    matrix = np.zeros((len(unique_ids), len(names)), np.uint8)
    matrix[rows[there], columns[there]] = 1
    return Labels(path, matrix, names.tolist(), unique_ids.tolist(), may_lack_instances=True)


def _matrix_labels(found: readers.Parts, path: Path, kind: str, with_features: bool) -> Labels:
    """The labels among a file's matrices; a file of its own may have just one matrix."""
    matrix, names = getattr(found, kind), found.label_names
    if matrix is None and not with_features:
        matrix = next((m for m in (found.labels, found.truth) if m is not None), None)
        if matrix is None:
            matrix, names = found.features, found.feature_names
    if matrix is None:
        raise UserError(f"{path}: holds no {'candidates' if kind == 'labels' else 'truth'}")
    return Labels(path, binary(matrix, str(path)), names, None)


def _aligned(labels: Labels, features: Features, sources: Sources, absent: np.generic) -> Array:
    """The label rows in the order of the features; an instance without a row is `absent`."""
    n, ids = features.matrix.shape[0], features.ids
    if labels.ids is None or ids is None:
        if len(labels.matrix) != n:
            raise UserError(
                f"{labels.path}: has labels of {len(labels.matrix)} instances, "
                f"{sources.features} features of {n}; give both the same rows, or a column that "
                f"both have as {sources.named('id')}"
            )
        return labels.matrix
    if labels.ids == ids:
        return labels.matrix
    position = {key: i for i, key in enumerate(ids)}
    unknown = [key for key in labels.ids if key not in position]
    if unknown:
        raise UserError(
            f"{labels.path}: instance {unknown[0]!r} has labels but no features "
            f"({len(unknown)} such instances)"
        )
    if len(set(labels.ids)) < len(labels.ids):
        twice = next(key for key in labels.ids if labels.ids.count(key) > 1)
        raise UserError(f"{labels.path}: instance {twice!r} has two rows of labels")
    if len(labels.ids) < len(ids) and not labels.may_lack_instances:
        known = set(labels.ids)
        lacking = next(key for key in ids if key not in known)
        raise UserError(
            f"{labels.path}: instance {lacking!r} has features but no row of labels "
            f"({len(ids) - len(known)} such instances)"
        )
    aligned = np.full((n, labels.matrix.shape[1]), absent)
    aligned[[position[key] for key in labels.ids]] = labels.matrix
    return aligned


def _same_columns(
    names: list[str], matrices: Sequence[Array], truth_names: list[str]
) -> tuple[list[str], list[Array]]:
    """Candidates and truth over all labels that either names."""
    every = names + [name for name in truth_names if name not in names]
    widened = []
    for matrix, own in zip(matrices, (names, truth_names), strict=True):
        wide = np.zeros((len(matrix), len(every)), matrix.dtype)
        wide[:, [every.index(name) for name in own]] = matrix
        wide[~known_rows(matrix)] = UNKNOWN
        widened.append(wide)
    return every, widened
