"""Files of features in parts, so that they may be larger than memory."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from wscpml.arrays import row_blocks, to_dense
from wscpml.datasets import csv_files, own, readers, table_files
from wscpml.datasets.tables import of_one_kind, refuse_missing
from wscpml.errors import UserError
from wscpml.limits import told_if_unreadable

ROWS_AT_ONCE = 4096


def read(
    path: Path,
    features: list[str],
    id: str | None,
    words: Sequence[str] = (),
    tell: Callable[[str], object] = str,
) -> Iterator[tuple[int, pd.DataFrame]]:
    """Parts of a file, each with the number of its first row, from 1 on.

    They have the features and the id, and no other columns. A file without names has the features
    in their order. CSV and Parquet stay on disk, other formats are read as a whole. `words` are
    the columns that are not to be read as numbers. What a person may not have meant is given to
    `tell`.
    """
    own.refuse_unreadable(path)
    first = 1
    with told_if_unreadable(path):
        if path.is_dir() or table_files.is_pattern(path):
            parts = _table(path, features, id, words)
        elif path.suffix in (".csv", ".tsv"):
            parts = _csv(path, features, id, words)
        elif path.suffix == ".parquet":
            parts = _parquet(path, features, id)
        elif table_files.is_table(path):
            parts = _table(path, features, id, words)
        else:
            parts = _whole(path, features, tell)
        for part in parts:
            if id is not None:
                own.ids(part, id, path, own.on_command_line("id"), first)
            yield first, part
            first += len(part)
    if first == 1:
        raise UserError(f"{path}: has no rows")


def _csv(
    path: Path, features: list[str], id: str | None, words: Sequence[str]
) -> Iterator[pd.DataFrame]:
    wanted = _wanted(csv_files.names(path), features, id, path)
    text = [*words] if id is None else [*words, id]
    return csv_files.parts(path, wanted, text, ROWS_AT_ONCE)


def _parquet(path: Path, features: list[str], id: str | None) -> Iterator[pd.DataFrame]:
    from pyarrow.parquet import read_schema

    wanted = _wanted(read_schema(path).names, features, id, path)
    for table in table_files.parquet_tables(path, wanted, ROWS_AT_ONCE):
        found = table.to_pandas(ignore_metadata=True)  # an index is a column too
        yield table_files.with_class_names(found, table, path)


def _table(
    path: Path, features: list[str], id: str | None, words: Sequence[str]
) -> Iterator[pd.DataFrame]:
    table = table_files.read(path, [*words, *([] if id is None else [id])])
    if id in table:
        table[id] = of_one_kind(table[id])
    wanted = _wanted(list(map(str, table)), features, id, path)
    for rows in row_blocks(len(table), ROWS_AT_ONCE):
        yield table[rows][wanted]


def _wanted(names: list[str], features: list[str], id: str | None, path: Path) -> list[str]:
    refuse_missing(features, names, str(path))
    wanted = {*features, id}
    return [name for name in names if name in wanted]


def _whole(
    path: Path, features: list[str], tell: Callable[[str], object]
) -> Iterator[pd.DataFrame]:
    found = readers.read(path)
    X: Any = found.features
    if X is None:
        raise UserError(f"{path}: holds no features")
    if path.suffix in readers.SVMLIGHT and X.shape[1] < len(features):
        if found.first_column == 1:
            tell(f"{path}: no row has column 0, so that columns are taken to count from 1")
        X.resize((X.shape[0], len(features)))  # its last features are 0 in all rows
    if found.feature_names is None and X.shape[1] != len(features):
        raise UserError(f"{path}: has {X.shape[1]} features, the model takes {len(features)}")
    for rows in row_blocks(X.shape[0], ROWS_AT_ONCE):
        yield pd.DataFrame(to_dense(X[rows]), columns=found.feature_names or features)
