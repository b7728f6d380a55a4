"""Tables of numbers, to learn from and to predict from alike."""

import math
import sys
from collections.abc import Sequence
from numbers import Number
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from wscpml.arrays import Array
from wscpml.datasets.dataset import few, refuse_twice
from wscpml.errors import UserError

EMPTY = ("NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "-", "?")  # among numbers, dates
MOST_SHOWN = 60  # characters of a cell


def refuse_missing(names: list[str], there: list[str], source: str) -> None:
    """Tell which of the columns that the model needs a table does not have."""
    known = set(there)
    missing = [name for name in names if name not in known]
    if missing:
        raise UserError(
            f"{source}: has no column {few(missing)}, which the model needs; its columns are "
            f"{few(there)}"
        )


def chosen(table: pd.DataFrame, names: list[str], source: str) -> pd.DataFrame:
    """The columns of a table that the model needs, in its order, called by text."""
    there, needed = list(map(str, table)), set(names)
    refuse_missing(names, there, source)
    if sum(name in needed for name in there) > len(names):
        refuse_twice(there, "column", source)
    return table.set_axis(there, axis=1)[names]


def not_utf_8(path: Path, before: bytes) -> UserError:
    """What to raise for a file that is not UTF-8 any more after some bytes."""
    line = before.count(b"\n") + 1
    return UserError(
        f"{path}: is not UTF-8 text (line {line}, byte {len(before)}); save it as UTF-8"
    )


def short(cell: Any) -> str:
    """A cell for a message: in one line, and not much of it."""
    line = " ".join(repr(cell).split())
    return line if len(line) <= MOST_SHOWN else f"{line[:MOST_SHOWN]} ..."


def numbers(
    table: pd.DataFrame,
    source: str,
    rows: Sequence[int] | pd.Index | None = None,
    way_out: str = "mend that value",
) -> Array:
    """A table as float64, NaN where it is empty; text is refused with its row and column.

    `source`, the numbers of the `rows`, 1, 2, ... if there are none, and the `way_out` are for the
    message.
    """
    for name, kind in table.dtypes.items():
        if getattr(kind, "kind", "O") not in "biufO":
            raise UserError(f"{source}: column {name!r} holds {kind}, not numbers; {way_out}")
    try:
        return table.to_numpy(dtype=np.float64, na_value=np.nan)
    except OverflowError:
        return numbers(table.map(_bounded), source, rows, way_out)
    except (ValueError, TypeError):
        forced = table.apply(pd.to_numeric, errors="coerce")
        wrong = (forced.isna() & table.notna()).to_numpy()
    if wrong.any():
        i, j = np.argwhere(wrong)[0]
        row = i + 1 if rows is None else rows[i]
        raise UserError(
            f"{source}: row {row}, column {table.columns[j]!r}: {short(table.iat[i, j])} is "
            f"not a number; {way_out}"
        )
    return forced.to_numpy(dtype=np.float64, na_value=np.nan)


def of_one_kind(column: "pd.Series[Any]") -> "pd.Series[Any]":
    """A column whose cells are text if they are of several kinds, which Parquet does not have."""
    if column.dtype != object or column.dropna().map(_kind).nunique() < 2:
        return column
    return column.map(str, na_action="ignore")


def _kind(cell: Any) -> str:
    if isinstance(cell, Number) and not isinstance(cell, bool | np.bool_):
        return "number"
    return "list" if isinstance(cell, list | np.ndarray) else type(cell).__name__


def _bounded(cell: Any) -> Any:
    """A cell, or infinity for a whole number beyond all that a float holds, as 1e400 is."""
    too_large = isinstance(cell, int) and abs(cell) > sys.float_info.max
    return (math.inf if cell > 0 else -math.inf) if too_large else cell
