"""Readers, one per format: bytes in, matrices and names out.

Every reader gives `Parts`: what the file holds of a data set. Tables are read by table_files.py:
what their columns mean is for own.py to say.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from io import StringIO
from itertools import chain
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from wscpml import npy_files
from wscpml.arrays import Array, Matrix, compressed
from wscpml.datasets import mat_files
from wscpml.datasets.dataset import binary, few, in_full, refuse_twice
from wscpml.datasets.tables import not_utf_8, numbers
from wscpml.errors import UserError
from wscpml.limits import NAME, TABLE_COLUMN, ask, ask_for_columns, told_if_unreadable

SVMLIGHT = (".svmlight", ".libsvm", ".svm")
CELL = 60  # bytes that a word of a text takes while it is read
FORMATS = (".npy", ".npz", ".mat", ".arff", *SVMLIGHT)


@dataclass(frozen=True)
class Parts:
    """What one file holds of a data set."""

    features: Matrix = None  # (n, d), or None
    labels: Array | None = None  # 0/1 (n, q)
    truth: Array | None = None  # 0/1 (n, q)
    feature_names: list[str] | None = None
    label_names: list[str] | None = None
    first_column: int | None = None  # the number of the first, where that had to be guessed


def merged(parts: list[Parts]) -> Parts:
    """Files each of which holds what the others lack."""
    whole = Parts()
    for part in parts:
        whole = replace(whole, **{k: v for k, v in vars(part).items() if v is not None})
    return whole


def stacked(parts: list[Parts]) -> Parts:
    """Files that hold the rows of one set in turn."""
    features, labels = (np.vstack([getattr(p, k) for p in parts]) for k in ("features", "labels"))
    return replace(parts[0], features=features, labels=labels)


def read(path: Path, label_count: int | None = None) -> Parts:
    """Read a file of matrices."""
    if path.suffix == ".mat":
        return read_mat(path)
    if path.suffix == ".arff":
        return read_arff(path, label_count)
    if path.suffix in SVMLIGHT:
        return read_svmlight(path)
    return read_arrays(path)


def read_arrays(path: Path) -> Parts:
    """Read `.npy` (a matrix) or `.npz`: a scipy CSR, or `features`, `candidates` and `truth`."""
    with told_if_unreadable(path):
        if path.suffix == ".npy":
            return Parts(features=_two_dimensional(npy_files.read(path), path))
        arrays = npy_files.read_all(path)
        if "indptr" in arrays:
            return Parts(features=_compressed(arrays, path))
    known = {"features", "candidates", "truth"}
    if not arrays or set(arrays) - known:
        raise UserError(
            f"{path}: holds the arrays {few(sorted(arrays)) or 'none'}; "
            "it may hold features, candidates and truth, or be a scipy CSR matrix"
        )
    for array in arrays.values():
        _two_dimensional(array, path)
    return Parts(
        features=arrays.get("features"),
        labels=binary(arrays["candidates"], str(path)) if "candidates" in arrays else None,
        truth=binary(arrays["truth"], str(path)) if "truth" in arrays else None,
    )


def _compressed(arrays: dict[str, Array], path: Path) -> sparse.csr_array:
    """What scipy's save_npz wrote."""
    kind = arrays["format"].item()
    if kind not in (b"csr", b"csc"):
        raise ValueError(f"it is {kind!r}, not csr or csc")
    shape = arrays["shape"].tolist()
    ask_for_columns(max(shape), path)
    data, indices, indptr = (arrays[name] for name in ("data", "indices", "indptr"))
    return compressed(data, indices, indptr, shape, by_columns=kind == b"csc")


def read_mat(path: Path) -> Parts:
    """Read MATLAB 5 to 7: `data`, `target` (the truth), `partial_labels` or `candidate_labels`.

    Labels may be stored either way round: their instances are the side as long as the data.
    """
    with told_if_unreadable(path):
        found = mat_files.read(path)
    labels_name = "partial_labels" if "partial_labels" in found else "candidate_labels"
    names = [name for name in ("data", "target", labels_name) if name in found]
    if not names:
        raise UserError(
            f"{path}: holds {few(list(found)) or 'nothing'}; expected are data, target, and "
            "partial_labels or candidate_labels"
        )
    for name in names:
        matrix = found[name]
        if matrix is None:
            raise UserError(f"{path}: its {name} is not a matrix of numbers")
        if not sparse.issparse(matrix):
            _two_dimensional(matrix, path)
        ask_for_columns(max(matrix.shape), path)
    labels, truth, data = (found.get(name) for name in (labels_name, "target", "data"))
    reference = next((m.shape for m in (labels, truth) if m is not None), None)
    if data is not None and reference and data.shape[0] not in reference:
        data = data.T
    if data is not None and sparse.issparse(data):
        data = sparse.csr_array(data)
    n = None if data is None else data.shape[0]
    return Parts(
        features=data,
        labels=_instances_first(labels, n, path),
        truth=_instances_first(truth, n, path),
    )


def _instances_first(labels: Any, n: int | None, path: Path) -> Array | None:
    if labels is None:
        return None
    if n is not None and n not in labels.shape:
        raise UserError(f"{path}: labels have the shape {labels.shape}, the data {n} instances")
    return binary(labels if n in (None, labels.shape[0]) else labels.T, str(path))


def read_arff(path: Path, label_count: int | None = None) -> Parts:
    """Read dense or sparse ARFF.

    The labels are those that Mulan's XML of the same name lists, else the last `label_count`
    attributes, else what MEKA's `-C` in the relation's name says.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise not_utf_8(path, error.object[: error.start]) from None
    found = re.search(r"^@data[^\n]*\n?", text, re.IGNORECASE | re.MULTILINE)
    header = text[: found.start()].splitlines() if found else []
    names, defaults = _attributes(header, path)
    if not found or not names:
        raise UserError(f"{path}: is no ARFF file: it has no @data or no @attribute")
    labelled = _label_positions(header, names, path, label_count)
    values = _arff_values(text[found.end() :], names, defaults, path)
    chosen = set(labelled)
    others = [j for j in range(len(names)) if j not in chosen]
    features = values[:, others]
    return Parts(
        features=sparse.csr_array(features) if sparse.issparse(features) else features,
        labels=binary(values[:, labelled], str(path)) if labelled else None,
        feature_names=[names[j] for j in others],
        label_names=[names[j] for j in labelled] or None,
    )


ATTRIBUTE = re.compile(r"""@attribute\s++('[^']*+'|"[^"]*+"|\S++)\s++(.++)""", re.IGNORECASE)
MEKA = re.compile(r"-C\s++(-?\d{1,9})(?!\d)")


def _attributes(header: list[str], path: Path) -> tuple[list[str], list[str | None]]:
    """Names, and what a sparse row means by leaving a nominal attribute out: its first value."""
    names, defaults = list[str](), list[str | None]()
    for line in header:
        found = ATTRIBUTE.match(line.rstrip())
        if not found:
            continue
        name, kind = found[1].strip("'\""), found[2]
        if kind.startswith("{"):
            defaults.append(kind.partition(",")[0].strip("{} \t'\""))
        elif kind.lower() in ("numeric", "real", "integer"):
            defaults.append(None)
        else:
            raise UserError(
                f"{path}: attribute {name!r} is of type {kind}; only numbers and 0/1 are read"
            )
        names.append(name)
    ask(len(names) * NAME, path, f"it has {len(names):,} attributes")
    refuse_twice(names, "attribute", str(path))
    return names, defaults


def _label_positions(
    header: list[str], names: list[str], path: Path, label_count: int | None
) -> list[int]:
    description = path.with_suffix(".xml")
    if description.exists():
        listed = _listed_in(description)
        refuse_twice(listed, "label", str(description))
        places = {name: j for j, name in enumerate(names)}
        unknown = [name for name in listed if name not in places]
        if unknown:
            raise UserError(f"{description}: label {min(unknown)!r} is no attribute of {path.name}")
        return [places[name] for name in listed]
    relation = next((line for line in header if line[:9].lower() == "@relation"), "")
    meka = MEKA.search(relation)
    if label_count is None and meka:
        label_count = -int(meka[1])
    count = label_count or 0
    if abs(count) >= len(names):
        raise UserError(
            f"{path}: has {len(names)} attributes, so they cannot "
            f"{'begin' if count < 0 else 'end'} with {abs(count)} labels"
        )
    return list(range(-count)) if count < 0 else list(range(len(names) - count, len(names)))


def _listed_in(description: Path) -> list[str]:
    """The names in Mulan's XML; it has no entities of its own."""
    from xml.parsers import expat

    listed = list[str]()

    def entity(name: str, *_: object) -> None:
        raise ValueError(f"it declares the entity {name!r}")

    def element(_: str, attributes: dict[str, str]) -> None:
        if "name" in attributes:
            listed.append(attributes["name"])

    parser = expat.ParserCreate()
    parser.EntityDeclHandler, parser.StartElementHandler = entity, element
    with told_if_unreadable(description):
        parser.Parse(description.read_bytes(), True)
    return listed


def _arff_values(body: str, names: list[str], defaults: list[str | None], path: Path) -> Matrix:
    rows = [row for line in body.splitlines() if (row := line.strip()) and row[0] != "%"]
    if not rows:
        raise UserError(f"{path}: has no rows")
    if rows[0][0] == "{":
        return _sparse_values(rows, names, defaults, path)
    ask(len(names) * TABLE_COLUMN, path, f"it has {len(names):,} attributes")
    with told_if_unreadable(path):
        table = pd.read_csv(
            StringIO(body),
            header=None,
            comment="%",
            quotechar="'",
            na_values=["?"],
            low_memory=False,
        )
    if table.shape[1] != len(names):
        raise UserError(f"{path}: rows have {table.shape[1]} values for {len(names)} attributes")
    return numbers(table.set_axis(names, axis=1), str(path))


def _sparse_values(
    rows: list[str], names: list[str], defaults: list[str | None], path: Path
) -> sparse.csr_array:
    odd = [
        name for name, default in zip(names, defaults, strict=True) if default not in (None, "0")
    ]
    if odd:
        raise UserError(
            f"{path}: attribute {odd[0]!r} does not list 0 first, so a sparse row without it does "
            "not mean 0; write it as {0,1}"
        )
    open_end = next((i for i, row in enumerate(rows) if row[0] + row[-1] != "{}"), None)
    if open_end is not None:
        raise UserError(f"{path}: row {open_end + 1}: {rows[open_end][:40]!r} is not in braces")
    count = sum(row.count(",") + 1 for row in rows)
    ask(count * 3 * CELL, path, f"it has {count:,} cells")
    cells = [row[1:-1].replace("'", " ").split(",") if row[1:-1].strip() else [] for row in rows]
    per_row = [len(row) for row in cells]
    with told_if_unreadable(path):
        pairs = np.array([cell.split() for row in cells for cell in row], float).reshape(-1, 2)
        indptr = np.concatenate([[0], np.cumsum(per_row)])
        if len(pairs) != indptr[-1]:
            raise ValueError("a cell is not one index and one value")
        if not (abs(pairs[:, 0]) < 2**53).all():
            raise ValueError("an index is not a whole number")
        return compressed(pairs[:, 1], pairs[:, 0].astype(int), indptr, (len(rows), len(names)))


def read_svmlight(path: Path) -> Parts:
    """Read multi-label svmlight: `label,label index:value ...`, a row a line."""
    import pyarrow as pa
    from pyarrow import csv as arrow

    content = path.read_bytes()
    ask(len(content) + content.count(b":") * CELL, path, f"it has {content.count(b':'):,} cells")
    lines = (line.partition(b"#")[0].split() for line in content.splitlines())
    rows = [row if b":" not in row[0] else [b"", *row] for row in lines if row]
    cells = pa.py_buffer(b"\n".join(chain.from_iterable(row[1:] for row in rows)))
    with told_if_unreadable(path):
        found = arrow.read_csv(
            cells,
            arrow.ReadOptions(column_names=["index", "value"], use_threads=False),
            arrow.ParseOptions(delimiter=":", quote_char=False),
            arrow.ConvertOptions(
                column_types={"index": pa.int64(), "value": pa.float64()}, null_values=[]
            ),
        )
        labels = [list(map(float, row[0].split(b","))) if row[0] else [] for row in rows]
        if len(found) != sum(len(row) - 1 for row in rows):
            raise ValueError("a cell is not one index and one value")
    wrong = next((i for i, row in enumerate(labels) if not all(map(isfinite, row))), None)
    if wrong is not None:
        raise UserError(f"{path}: row {wrong + 1}: a label is not a finite number")
    features, first = _rows_of_cells(found, [len(row) - 1 for row in rows], path)
    values, found_labels = indicator(labels, float)
    matrix = in_full(found_labels, str(path))
    names = [str(int(value)) if value.is_integer() else str(value) for value in values]
    return Parts(features=features, labels=matrix, label_names=names, first_column=first)


def _rows_of_cells(cells: Any, per_row: list[int], path: Path) -> tuple[sparse.csr_array, int]:
    """A matrix of cells, and the number of its first column: 1 unless there is a 0."""
    index, value = (cells[name].to_numpy() for name in ("index", "value"))
    row = np.repeat(np.arange(len(per_row)), per_row)
    wrong = index < 0
    wrong[1:] |= (np.diff(index) <= 0) & (np.diff(row) == 0)
    if wrong.any():
        i = int(np.argmax(wrong))
        raise UserError(f"{path}: row {row[i] + 1}: column {index[i]} is out of order")
    if not np.isfinite(value).all():
        i = int(np.argmin(np.isfinite(value)))
        raise UserError(
            f"{path}: row {row[i] + 1}, column {index[i]}: {value[i]} is not a finite number; fill "
            "or leave out such values"
        )
    ask_for_columns(int(index.max()) + 1, path)
    first = int(index.min() > 0)
    index = index - first
    indptr = np.concatenate([[0], np.cumsum(per_row)])
    return compressed(value, index, indptr, (len(per_row), int(index.max()) + 1)), first


def indicator(
    rows: Sequence[Sequence[Any]], kind: type = object
) -> tuple[list[Any], sparse.csr_array]:
    """Lists of labels as their names in order, and a 0/1 matrix ``(n, q)``."""
    flat: Array = np.fromiter(chain.from_iterable(rows), kind)
    columns, names = pd.factorize(flat, sort=True)
    starts = np.concatenate([[0], np.cumsum(np.fromiter(map(len, rows), int, len(rows)))])
    labels = compressed(np.ones(len(flat), np.uint8), columns, starts, (len(rows), len(names)))
    labels.sum_duplicates()
    labels.data[:] = 1
    return names.tolist(), labels


def _two_dimensional(array: Array, path: Path) -> Array:
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        raise UserError(
            f"{path}: is an array of shape {array.shape} and type {array.dtype}, not a matrix of "
            "numbers"
        )
    return array
