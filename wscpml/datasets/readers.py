"""Readers, one per format: bytes in, matrices and names out.

Every reader gives `Parts`: what the file holds of a data set. Tables are read by table_files.py:
what their columns mean is for own.py to say.
"""

import re
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from io import BytesIO, StringIO
from itertools import chain
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
from scipy import sparse

from wscpml.arrays import Array, Matrix
from wscpml.datasets.dataset import binary, refuse_twice
from wscpml.datasets.tables import numbers
from wscpml.errors import UserError

SVMLIGHT = (".svmlight", ".libsvm", ".svm")
FORMATS = (".npy", ".npz", ".mat", ".arff", *SVMLIGHT)


@dataclass(frozen=True)
class Parts:
    """What one file holds of a data set."""

    features: Matrix = None  # (n, d), or None
    labels: Array | None = None  # 0/1 (n, q)
    truth: Array | None = None  # 0/1 (n, q)
    feature_names: list[str] | None = None
    label_names: list[str] | None = None


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
    try:
        with path.open("rb") as file:
            found: Any = np.load(file)
            if path.suffix == ".npy":
                return Parts(features=_two_dimensional(found, path))
            if "indptr" in found:
                return Parts(features=_compressed(dict(found)))
            arrays = dict(found)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise _unreadable(path, error) from None
    known = {"features", "candidates", "truth"}
    if not arrays or set(arrays) - known:
        raise UserError(
            f"{path}: holds the arrays {', '.join(sorted(arrays)) or 'none'}; "
            "it may hold features, candidates and truth, or be a scipy CSR matrix"
        )
    for array in arrays.values():
        _two_dimensional(array, path)
    return Parts(
        features=arrays.get("features"),
        labels=binary(arrays["candidates"], str(path)) if "candidates" in arrays else None,
        truth=binary(arrays["truth"], str(path)) if "truth" in arrays else None,
    )


def _compressed(arrays: dict[str, Array]) -> sparse.csr_array:
    """What scipy's save_npz wrote; each of its arrays is read once."""
    kind = sparse.csc_array if arrays["format"].item() == b"csc" else sparse.csr_array
    parts = (arrays["data"], arrays["indices"], arrays["indptr"])
    return sparse.csr_array(kind(parts, shape=arrays["shape"]))


def read_mat(path: Path) -> Parts:
    """Read MATLAB v5: `data`, `target` (the truth), `partial_labels` or `candidate_labels`.

    Labels may be stored either way round: their instances are the side as long as the data.
    """
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    try:
        stored = loadmat(BytesIO(path.read_bytes()), spmatrix=False)
    except NotImplementedError:
        raise UserError(f"{path}: is MATLAB v7.3; save it with `-v7` in MATLAB") from None
    except (OSError, ValueError, TypeError, EOFError, zlib.error, MatReadError) as error:
        raise _unreadable(path, error) from None
    found = {name: value for name, value in stored.items() if not name.startswith("__")}
    labels = found.get("partial_labels", found.get("candidate_labels"))
    truth, data = found.get("target"), found.get("data")
    if data is None and truth is None and labels is None:
        raise UserError(
            f"{path}: holds {', '.join(found) or 'nothing'}; expected are data, target, and "
            "partial_labels or candidate_labels"
        )
    for matrix in (data, truth, labels):
        if matrix is not None and not sparse.issparse(matrix):
            _two_dimensional(matrix, path)
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
        raise UserError(
            f"{path}: is not UTF-8 text (byte {error.start}); save it as UTF-8"
        ) from None
    header, marker, body = _split_at_data(text)
    names, defaults = _attributes(header, path)
    if not marker or not names:
        raise UserError(f"{path}: is no ARFF file: it has no @data or no @attribute")
    labelled = _label_positions(header, names, path, label_count)
    values = _arff_values(body, names, defaults, path)
    others = [j for j in range(len(names)) if j not in set(labelled)]
    features = values[:, others]
    return Parts(
        features=sparse.csr_array(features) if sparse.issparse(features) else features,
        labels=binary(values[:, labelled], str(path)) if labelled else None,
        feature_names=[names[j] for j in others],
        label_names=[names[j] for j in labelled] or None,
    )


def _split_at_data(text: str) -> tuple[str, str, str]:
    found = re.search(r"^@data[^\n]*\n?", text, re.IGNORECASE | re.MULTILINE)
    if not found:
        return text, "", ""
    return text[: found.start()], found.group(), text[found.end() :]


def _attributes(header: str, path: Path) -> tuple[list[str], list[str | None]]:
    """Names, and what a sparse row means by leaving a nominal attribute out: its first value."""
    pattern = r"^@attribute\s+('[^']*'|\"[^\"]*\"|\S+)\s+(.+?)\s*$"
    names, defaults = [], []
    for name, kind in re.findall(pattern, header, re.IGNORECASE | re.MULTILINE):
        name = name.strip("'\"")
        if kind.startswith("{"):
            defaults.append(kind.strip("{} \t").split(",")[0].strip(" '\""))
        elif kind.lower() in ("numeric", "real", "integer"):
            defaults.append(None)
        else:
            raise UserError(
                f"{path}: attribute {name!r} is of type {kind}; only numbers and 0/1 are read"
            )
        names.append(name)
    refuse_twice(names, "attribute", str(path))
    return names, defaults


def _label_positions(
    header: str, names: list[str], path: Path, label_count: int | None
) -> list[int]:
    description = path.with_suffix(".xml")
    if description.exists():
        try:
            listed = [
                e.get("name", "")
                for e in ElementTree.parse(description).iter()
                if "name" in e.attrib
            ]
        except ElementTree.ParseError as error:
            raise _unreadable(description, error) from None
        unknown = set(listed) - set(names)
        if unknown:
            raise UserError(f"{description}: label {min(unknown)!r} is no attribute of {path.name}")
        return [names.index(name) for name in listed]
    meka = re.search(r"^@relation.*?-C\s+(-?\d+)", header, re.IGNORECASE | re.MULTILINE)
    if label_count is None and meka:
        first = int(meka.group(1))
        return list(range(first)) if first > 0 else list(range(len(names) + first, len(names)))
    if label_count is not None and label_count >= len(names):
        raise UserError(
            f"{path}: has {len(names)} attributes, so they cannot end with {label_count} labels"
        )
    return list(range(len(names) - (label_count or 0), len(names)))


def _arff_values(body: str, names: list[str], defaults: list[str | None], path: Path) -> Matrix:
    rows = [row for line in body.splitlines() if (row := line.strip()) and row[0] != "%"]
    if not rows:
        raise UserError(f"{path}: has no rows")
    if rows[0][0] == "{":
        return _sparse_values(rows, names, defaults, path)
    try:
        table = pd.read_csv(
            StringIO(body),
            header=None,
            comment="%",
            quotechar="'",
            na_values=["?"],
            low_memory=False,
        )
    except ValueError as error:
        raise _unreadable(path, error) from None
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
    cells = [row[1:-1].replace("'", " ").split(",") if row[1:-1].strip() else [] for row in rows]
    per_row = [len(row) for row in cells]
    try:
        pairs = np.array([cell.split() for row in cells for cell in row], float).reshape(-1, 2)
        indptr = np.concatenate([[0], np.cumsum(per_row)])
        if len(pairs) != indptr[-1]:
            raise ValueError("a cell is not one index and one value")
        indices = pairs[:, 0].astype(int)
        found = sparse.csr_array((pairs[:, 1], indices, indptr), shape=(len(rows), len(names)))
        found.check_format()
    except ValueError as error:
        raise _unreadable(path, error) from None
    return found


def read_svmlight(path: Path) -> Parts:
    """Read multi-label svmlight: `label,label index:value ...`, a row a line."""
    import pyarrow as pa
    from pyarrow import csv as arrow

    lines = (line.partition(b"#")[0].split() for line in path.read_bytes().splitlines())
    rows = [row if b":" not in row[0] else [b"", *row] for row in lines if row]
    cells = pa.py_buffer(b"\n".join(chain.from_iterable(row[1:] for row in rows)))
    try:
        found = arrow.read_csv(
            cells,
            arrow.ReadOptions(column_names=["index", "value"], use_threads=False),
            arrow.ParseOptions(delimiter=":", quote_char=False),
            arrow.ConvertOptions(
                column_types={"index": pa.int64(), "value": pa.float64()}, null_values=[]
            ),
        )
        labels = [list(map(float, row[0].split(b","))) if row[0] else [] for row in rows]
    except ValueError as error:  # ArrowInvalid is one
        raise _unreadable(path, error) from None
    features = _rows_of_cells(found, [len(row) - 1 for row in rows], path)
    values, matrix = indicator(labels, float)
    names = [str(int(value)) if value.is_integer() else str(value) for value in values]
    return Parts(features=features, labels=matrix, label_names=names)


def _rows_of_cells(cells: Any, per_row: list[int], path: Path) -> sparse.csr_array:
    """A matrix of cells; columns count from 1 unless there is a 0."""
    index, value = (cells[name].to_numpy() for name in ("index", "value"))
    row = np.repeat(np.arange(len(per_row)), per_row)
    wrong = index < 0
    wrong[1:] |= (np.diff(index) <= 0) & (np.diff(row) == 0)
    if wrong.any():
        i = int(np.argmax(wrong))
        raise UserError(f"{path}: row {row[i] + 1}: column {index[i]} is out of order")
    index = index - (index.min() > 0)
    indptr = np.concatenate([[0], np.cumsum(per_row)])
    return sparse.csr_array((value, index, indptr), shape=(len(per_row), index.max() + 1))


def indicator(rows: Sequence[Sequence[Any]], kind: type = object) -> tuple[list[Any], Array]:
    """Lists of labels as their names in order, and a 0/1 matrix ``(n, q)``."""
    flat: Array = np.fromiter(chain.from_iterable(rows), kind)
    columns, names = pd.factorize(flat, sort=True)
    labels = np.zeros((len(rows), len(names)), np.uint8)
    per_row = np.fromiter(map(len, rows), int, len(rows))
    labels[np.repeat(np.arange(len(rows)), per_row), columns] = 1
    return names.tolist(), labels


def _two_dimensional(array: Array, path: Path) -> Array:
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        raise UserError(
            f"{path}: is an array of shape {array.shape} and type {array.dtype}, not a matrix of "
            "numbers"
        )
    return array


def _unreadable(path: Path, error: Exception) -> UserError:
    reason = str(error).partition("\n")[0].strip()
    return UserError(f"{path}: cannot be read as {path.suffix[1:]} ({reason})")
