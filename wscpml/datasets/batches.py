"""Files of features in parts, so that they may be larger than memory."""

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from wscpml.arrays import row_blocks, to_dense
from wscpml.datasets import own, readers
from wscpml.errors import UserError
from wscpml.serving.prediction import refuse_missing

ROWS_AT_ONCE = 4096


def read(path: Path, features: list[str], id: str | None) -> Iterator[tuple[int, pd.DataFrame]]:
    """Parts of a file, each with the number of its first row, from 1 on.

    They have the features and the id, and no other columns. A file without names has the features
    in their order. CSV and Parquet stay on disk, other formats are read as a whole.
    """
    own._existing(path)
    if path.suffix == ".csv":
        parts = _csv(path, features, id)
    elif path.suffix == ".parquet":
        parts = _parquet(path, features, id)
    else:
        parts = _whole(path, features)
    first = 1
    for part in _told_if_unreadable(path, parts):
        if id is not None:
            own._ids(part, id, path)
        yield first, part
        first += len(part)
    if first == 1:
        raise UserError(f"{path}: has no rows")


def _csv(path: Path, features: list[str], id: str | None) -> Iterator[pd.DataFrame]:
    header, separator = readers._header(path)
    names = [name or f"column {j + 1}" for j, name in enumerate(header)]
    wanted = _wanted(names, features, id, path)
    parts = pd.read_csv(
        path,
        sep=separator,
        header=0,
        names=names,
        index_col=False,
        dtype={id: str} if id in names else None,
        keep_default_na=False,
        na_values=[""],
        encoding="utf-8-sig",
        chunksize=ROWS_AT_ONCE,
    )
    with parts:
        for part in parts:  # `usecols` would let rows pass that are longer than the header
            yield part[wanted]


def _parquet(path: Path, features: list[str], id: str | None) -> Iterator[pd.DataFrame]:
    from pyarrow.parquet import ParquetFile

    with ParquetFile(path, pre_buffer=False) as file:
        wanted = _wanted(file.schema_arrow.names, features, id, path)
        for batch in file.iter_batches(ROWS_AT_ONCE, columns=wanted):
            yield batch.to_pandas(ignore_metadata=True)  # an index is a column too


def _wanted(names: list[str], features: list[str], id: str | None, path: Path) -> list[str]:
    refuse_missing(features, names, str(path))
    wanted = {*features, id}
    return [name for name in names if name in wanted]


def _whole(path: Path, features: list[str]) -> Iterator[pd.DataFrame]:
    found = readers.read(path)
    X: Any = found.features
    if X is None:
        raise UserError(f"{path}: holds no features")
    if path.suffix in readers.SVMLIGHT and X.shape[1] < len(features):
        X.resize((X.shape[0], len(features)))  # its last features are 0 in all rows
    if found.feature_names is None and X.shape[1] != len(features):
        raise UserError(f"{path}: has {X.shape[1]} features, the model takes {len(features)}")
    for rows in row_blocks(X.shape[0], ROWS_AT_ONCE):
        yield pd.DataFrame(to_dense(X[rows]), columns=found.feature_names or features)


def _told_if_unreadable(path: Path, parts: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # cells beyond the header
            yield from parts
    except UnicodeDecodeError:
        raise UserError(f"{path}: is not UTF-8 text; save it as UTF-8") from None
    except (OSError, ValueError, pd.errors.ParserWarning) as error:  # ArrowInvalid is a ValueError
        reason = str(error).partition("\n")[0]
        raise UserError(f"{path}: cannot be read ({reason})") from None
