"""Cells of CSV files that a spreadsheet would take for a formula, made harmless, and back.

Such a cell begins with = @ or a tab, or with + or - and is no number; an apostrophe goes before it,
which spreadsheets know to mean text. Our readers take it away again: what was written is read.
"""

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

MAYBE = r"^'*[=+\-@\t\r]"  # what looks like it at first
NUMBER = re.compile(r"[+-]?(?=[.,]*\d)[\d.,]+(?:e[+-]?\d+)?%?", re.IGNORECASE)


def harmless(cell: Any) -> Any:
    """A cell as it is written."""
    return f"'{cell}" if isinstance(cell, str) and _is_formula(cell) else cell


def as_meant(cell: Any) -> Any:
    """A cell that `harmless` has written, as it was."""
    quoted = isinstance(cell, str) and cell[:1] == "'" and _is_formula(cell)
    return cell[1:] if quoted else cell


def table_for_spreadsheets(table: "pd.DataFrame") -> "pd.DataFrame":
    """A table whose text and names are harmless."""
    return _changed(table, harmless)


def table_as_meant(table: "pd.DataFrame") -> "pd.DataFrame":
    """The table that `table_for_spreadsheets` was given."""
    return _changed(table, as_meant)


def _is_formula(cell: str) -> bool:
    plain = cell.lstrip("'")
    if plain[:1] in ("+", "-"):
        return len(plain) > 1 and not NUMBER.fullmatch(plain)
    return plain[:1] in ("=", "@", "\t", "\r")


def _changed(table: "pd.DataFrame", change: Any) -> "pd.DataFrame":
    import pandas as pd

    table = table.set_axis([change(name) for name in table], axis=1)
    for place, kind in enumerate(table.dtypes):
        if kind.kind == "O" or isinstance(kind, pd.StringDtype):
            cells = table.iloc[:, place]
            if cells.astype(str).str.contains(MAYBE, na=False).any():
                table.isetitem(place, cells.map(change, na_action="ignore").array)
    return table
