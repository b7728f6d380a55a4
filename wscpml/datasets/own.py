"""A person's own files: which column or array is what."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from wscpml.arrays import Array, Matrix
from wscpml.datasets import readers
from wscpml.datasets.dataset import Dataset, binary
from wscpml.errors import UserError


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

    @property
    def name(self) -> str:
        """How messages call the data set."""
        return str(self.features)


@dataclass(frozen=True)
class Labels:
    """Labels as a file has them: a matrix with its names, and ids if the file has them."""

    matrix: Array
    names: list[str] | None
    ids: list[Any] | None


def load(sources: Sources) -> Dataset:
    """Read a data set from a person's own files."""
    features, feature_names, ids, parts = _features(sources)
    n = features.shape[0]
    candidates = _labels(sources.candidates or sources.features, sources, parts, "labels")
    truth = None
    if sources.truth or (parts and parts.truth is not None):
        truth = _labels(sources.truth or sources.features, sources, parts, "truth")
    matrices = [_aligned(labels, ids, n, sources) for labels in (candidates, truth) if labels]
    label_names = candidates.names or _numbered("label", candidates.matrix.shape[1])
    if truth and truth.names and truth.names != label_names:
        label_names, matrices = _same_columns(label_names, matrices, truth.names)
    return Dataset(
        features=features,
        truth=matrices[1] if truth else None,
        candidates=matrices[0],
        feature_names=feature_names or _numbered("x", features.shape[1]),
        label_names=label_names,
        instance_ids=list(range(n)) if ids is None else ids,
    )


def _numbered(stem: str, count: int) -> list[str]:
    return [f"{stem}{i + 1}" for i in range(count)]


def _existing(path: Path) -> Path:
    if path.suffix not in readers.FORMATS:
        known = ", ".join(readers.FORMATS)
        raise UserError(f"{path}: {path.suffix or 'no'} extension is not known; known are {known}")
    if not path.is_file():
        raise UserError(f"{path}: no such file")
    if path.stat().st_size == 0:
        raise UserError(f"{path}: is empty")
    return path


def _features(
    sources: Sources,
) -> tuple[Matrix, list[str] | None, list[Any] | None, readers.Parts | None]:
    path = _existing(sources.features)
    if path.suffix not in readers.TABLES:
        parts = readers.read(path, sources.label_count)
        if parts.features is None:
            raise UserError(f"{path}: holds no features")
        return parts.features, parts.feature_names, None, parts
    table = readers.read_table(path)
    ids = _ids(table, sources.id, path, needed=True)
    columns = table.drop(columns=[c for c in (sources.id, sources.tags) if c in table])
    if sources.candidates in (None, sources.features) and sources.tags not in table:
        raise UserError(
            f"{path}: dataset.candidates is no other file and dataset.tags no column of this one; "
            f"its columns are {', '.join(map(str, table.columns[:10]))}"
        )
    return readers.numbers(columns, str(path)), list(map(str, columns)), ids, None


def _ids(table: pd.DataFrame, column: str | None, path: Path, needed: bool) -> list[Any] | None:
    if column is None:
        return None
    if column not in table:
        if needed:
            raise UserError(
                f"{path}: dataset.id: has no column {column!r}; its columns are "
                f"{', '.join(map(str, table.columns[:10]))}"
            )
        return None
    missing = table[column].isna()
    if missing.any():
        raise UserError(f"{path}: row {int(np.argmax(missing)) + 1}, column {column!r}: is empty")
    ids = table[column].tolist()
    return ids if all(isinstance(key, int) for key in ids) else [str(key) for key in ids]


def _labels(path: Path, sources: Sources, parts: readers.Parts | None, kind: str) -> Labels:
    """Labels from a table's lists, long rows or 0/1 columns, or from a matrix of another format."""
    _existing(path)
    if path.suffix not in readers.TABLES:
        found = (
            parts if path == sources.features and parts else readers.read(path, sources.label_count)
        )
        matrix = getattr(found, kind)
        if matrix is None and path != sources.features:  # a file of its own: its one matrix
            matrix = next(
                (m for m in (found.labels, found.truth, found.features) if m is not None), None
            )
        if matrix is None:
            raise UserError(f"{path}: holds no {'candidates' if kind == 'labels' else 'truth'}")
        return Labels(binary(matrix, str(path)), found.label_names, None)
    table = readers.read_table(path)
    if sources.tags in table:
        texts = table[sources.tags].fillna("").astype(str)
        rows = [
            [t for tag in text.split(sources.separator) if (t := tag.strip())] for text in texts
        ]
        names, matrix = readers.indicator(rows)
        return Labels(matrix, names, _ids(table, sources.id, path, needed=False))
    if sources.id is not None and "label" in table and sources.id in table:
        return _long_rows(table, sources.id, path)
    ids = _ids(table, sources.id, path, needed=False)
    columns = table.drop(columns=[sources.id]) if ids is not None else table
    values = readers.numbers(columns, str(path))
    return Labels(binary(values, str(path)), list(map(str, columns)), ids)


def _long_rows(table: pd.DataFrame, id_column: str, path: Path) -> Labels:
    """A row per instance and label; a weight of 0 or less means that the label is not there."""
    ids = _ids(table, id_column, path, needed=True)
    labels = table["label"]
    if labels.isna().any():
        raise UserError(
            f"{path}: row {int(np.argmax(labels.isna())) + 1}, column 'label': is empty"
        )
    if "weight" in table:
        there = readers.numbers(table[["weight"]], str(path))[:, 0] > 0
    else:
        there = np.ones(len(table), bool)
    codes, unique_ids = pd.factorize(pd.Series(ids, dtype=object))
    label_codes, names = pd.factorize(labels.astype(str), sort=True)
    matrix = np.zeros((len(unique_ids), len(names)), np.uint8)
    matrix[codes[there], label_codes[there]] = 1
    return Labels(matrix, names.tolist(), unique_ids.tolist())


def _aligned(labels: Labels, ids: list[Any] | None, n: int, sources: Sources) -> Array:
    """The label rows in the order of the features."""
    if labels.ids is None or ids is None:
        if len(labels.matrix) != n:
            raise UserError(
                f"{sources.name}: has {n} instances, the labels {len(labels.matrix)}; give both "
                "files the same rows, or name a column that both have as dataset.id"
            )
        return labels.matrix
    if labels.ids == ids:
        return labels.matrix
    position = {key: i for i, key in enumerate(ids)}
    unknown = [key for key in labels.ids if key not in position]
    if unknown:
        raise UserError(
            f"{sources.name}: instance {unknown[0]!r} has labels but no features "
            f"({len(unknown)} such instances)"
        )
    if len(set(labels.ids)) < len(labels.ids):
        twice = next(key for key in labels.ids if labels.ids.count(key) > 1)
        raise UserError(f"{sources.name}: instance {twice!r} has two rows of labels")
    aligned = np.zeros((n, labels.matrix.shape[1]), np.uint8)
    aligned[[position[key] for key in labels.ids]] = labels.matrix
    return aligned


def _same_columns(
    names: list[str], matrices: Sequence[Array], truth_names: list[str]
) -> tuple[list[str], list[Array]]:
    """Candidates and truth over all labels that either names."""
    every = names + [name for name in truth_names if name not in names]
    widened = []
    for matrix, own in zip(matrices, (names, truth_names), strict=True):
        wide = np.zeros((len(matrix), len(every)), np.uint8)
        wide[:, [every.index(name) for name in own]] = matrix
        widened.append(wide)
    return every, widened
