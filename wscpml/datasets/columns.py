"""What each column of a table is: number, text, category, date, vector, or nothing to learn from.

A role that a person gives goes before what is recognised. What most of a column's cells are, all of
them must be: the first that is not is refused with its row.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from numbers import Number
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd

from wscpml.datasets.dataset import few
from wscpml.datasets.tables import EMPTY, short
from wscpml.errors import UserError

Role = Literal["number", "text", "category", "date", "ignore"]
ROLES: tuple[Role, ...] = get_args(Role)

MOST_CATEGORIES = 40  # different values of a category; of more it is text
DAYS = (
    "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d-%m-%Y", "%m-%d-%Y", "%d %B %Y",
    "%B %d, %Y", "%d-%b-%Y", "%d %b %Y", "%b %d, %Y", "%d.%m.%y", "%d/%m/%y", "%m/%d/%y",
)  # fmt: skip
SHORT = "%y"  # years of two digits
HOURS = ("", " %H:%M", " %H:%M:%S", " %I:%M %p")
DATES = ("ISO8601", *(day + hour for hour in HOURS for day in DAYS))
LISTED = r"\[\s*[-+\d.][-+\d.eE,\s]*\]"  # numbers as JSON, Python or NumPy write a list of them
NUMBER = r"(?:\d{1,3}(?:[.,' ]\d{3})+|\d+)(?:[.,]\d+)?"  # with thousands, or a decimal comma
SIGNED = rf"-?[€$£¥]?\s*-?{NUMBER}\s*[€$£¥%]?"  # and with a currency or per cent
NUMBERED = r"^(\D*[^\W\d])\s*\d+$"  # words and a number, such as `song 12`
AS_SAID = "as you say"
ONE_WORD = "is one word, another in nearly every row, as ids are"
ANOTHER = "and another number in nearly every row"
FIRST_LOOK = 200  # different cells that tell whether a column may hold dates


@dataclass(frozen=True)
class Column:
    """A column of a table and what it is taken for."""

    name: str
    role: str  # one of the roles, or `vector`
    why: str = ""  # it is left out
    dates: str = ""  # how they are written, one of DATES
    odd: str = ""  # what a person may not have meant

    @property
    def names_rows(self) -> bool:
        """Whether it is left out since it may be ids."""
        return self.why == ONE_WORD or self.why.endswith(ANOTHER)

    def remarks(self, way_in: str = "") -> list[str]:
        """What a person may not have meant; of what may be ids also the way to name them."""
        way_in = f"; {way_in}" if way_in and self.names_rows else ""
        left_out = [] if self.why in ("", AS_SAID) else [f"{self.why}: it is left out{way_in}"]
        odd = [self.odd] if self.odd else []
        return [f"column {self.name!r} {each}" for each in (*left_out, *odd)]


def all_numbers(table: pd.DataFrame) -> bool:
    """Whether every column is of numbers, or of true and false, by its type alone."""
    return all(getattr(kind, "kind", "O") in "biuf" for kind in table.dtypes)


def recognise(
    table: pd.DataFrame,
    given: Mapping[str, Role],
    source: str,
    named: Callable[[str], str],
) -> list[Column]:
    """The columns in their order; `source` and what options are `named` are for messages."""
    for name, role in given.items():
        if name not in table:
            raise UserError(
                f"{source}: {named(role)}: has no column {name!r}; its columns are "
                f"{few(list(map(str, table)))}"
            )
    table = table.reset_index(drop=True)
    *others, last = dict.fromkeys(named(role) for role in ("text", "category", "ignore"))
    ways = f"{', '.join(others)} or {last}" if others else last
    way_out = f"say what the column is by {ways}"
    return [
        _given(table[name], given[name], source, way_out)
        if name in given
        else _recognised(table[name], source, way_out)
        for name in map(str, table)
    ]


def missing(column: "pd.Series[Any]") -> "pd.Series[bool]":
    """Where a column of numbers, dates or lists has nothing, blanks, or a word for nothing."""
    if getattr(column.dtype, "kind", "O") in "biufmM":
        return column.isna()
    bare = column.map(lambda cell: cell.strip() if isinstance(cell, str) else None)
    return column.isna() | bare.isin(("", *EMPTY))


def as_text(cells: "pd.Series[Any]") -> "pd.Series[str]":
    """Cells as text, nothing as the empty one; whole numbers do not depend on their type."""
    if getattr(cells.dtype, "kind", "O") == "f" and (cells.dropna() % 1 == 0).all():
        cells = cells.astype("Int64")
    return cells.astype(object).where(cells.notna(), "").astype(str)


def unlisted(column: "pd.Series[Any]") -> "pd.Series[Any]":
    """Cells with lists of numbers in place of the text of such a list, and None for nothing."""
    found = column.astype(object).map(_unlisted, na_action="ignore")
    return found.where(~missing(column), None)


def _unlisted(cell: Any) -> Any:
    if not isinstance(cell, str) or not re.fullmatch(LISTED, cell.strip()):
        return cell
    try:
        return [float(each) for each in cell.replace(",", " ").strip(" []\r\n\t").split()]
    except ValueError:
        return cell


def _is_list(cell: Any) -> bool:
    return isinstance(_unlisted(cell), list)


def parsed_dates(column: "pd.Series[Any]", written: str) -> "pd.Series[Any]":
    """Cells as points in time without a zone, NaT where they are none that is so written."""
    is_time = getattr(column.dtype, "kind", "O") == "M"
    codes, different = pd.factorize(column if is_time else as_text(column))
    cells = pd.Series(different)
    if not is_time:
        cells = cells.str.strip()
        cells = cells.where(cells.str.contains(r"\d"), "")  # not `now` and `today`
    found = pd.to_datetime(cells, format=written, errors="coerce", utc=True)
    found = pd.concat([found.dt.tz_localize(None), pd.Series([pd.NaT])], ignore_index=True)
    return pd.Series(found.to_numpy("datetime64[us]")[codes], column.index)


def _given(column: "pd.Series[Any]", role: Role, source: str, way_out: str) -> Column:
    name = str(column.name)
    if role == "ignore":
        return Column(name, role, AS_SAID)
    if missing(column).all():
        return Column(name, "ignore", "is empty in every row")
    if role != "date":
        return Column(name, role)
    look = pd.Series(as_text(column[~missing(column)]).unique()[:FIRST_LOOK])
    written, odd = _as_dates(look)
    written = written or DATES[0]
    _refuse_odd(column, parsed_dates(column, written).isna(), source, "a date", way_out)
    return Column(name, role, dates=written, odd=odd)


def _recognised(column: "pd.Series[Any]", source: str, way_out: str) -> Column:
    name = str(column.name)
    kind = getattr(column.dtype, "kind", "O")
    if column.isna().all():
        return Column(name, "ignore", "is empty in every row")
    if isinstance(column.dtype, pd.CategoricalDtype):
        return Column(name, "category")
    if kind in "biuf":
        return Column(name, "number")
    if kind == "M":
        return Column(name, "date", dates=DATES[0])
    if kind not in "OUT" and not pd.api.types.is_string_dtype(column):
        raise UserError(f"{source}: column {name!r} holds {column.dtype}; {way_out}")
    if column.dtype == object:
        found = _by_type(column, source, way_out)
        if found:
            return found
    return _by_words(column, source, way_out)


def _by_type(column: "pd.Series[Any]", source: str, way_out: str) -> Column | None:
    """What a column of Python's objects is, None if it is text; two kinds in one are refused."""
    kinds = column.dropna().map(_kind)
    most = kinds.mode()[0]
    other = kinds[kinds != most]
    if len(other):
        raise UserError(
            f"{source}: row {other.index[0] + 1}, column {column.name!r}: is {other.iloc[0]}, most "
            f"of the column is {most}; mend that value, or {way_out}"
        )
    if most == "a list":
        return Column(str(column.name), "vector")
    if most == "a record":
        raise UserError(
            f"{source}: column {column.name!r} holds records with fields of their own; give each "
            "field a column"
        )
    if most == "a date":
        return Column(str(column.name), "date", dates=DATES[0])
    return Column(str(column.name), "number") if most == "a number" else None


def _kind(cell: Any) -> str:
    if isinstance(cell, str):
        return "text"
    if isinstance(cell, list | tuple | np.ndarray):
        return "a list"
    if isinstance(cell, dict):
        return "a record"
    if isinstance(cell, Number | np.generic | Decimal):
        return "a number"
    return "a date" if hasattr(cell, "year") else "text"


def _by_words(column: "pd.Series[Any]", source: str, way_out: str) -> Column:
    """What a column of text holds."""
    name = str(column.name)
    empty = missing(column)
    if empty.all():
        return Column(name, "ignore", "is empty in every row")
    filled = column[~empty].astype(str)
    different = pd.Series(filled.unique())
    look = different[:FIRST_LOOK]
    if look.map(_is_list).mean() >= 0.5:
        _refuse_odd(column, ~column.map(_is_list), source, "a list of numbers", way_out)
        return Column(name, "vector")
    if pd.to_numeric(look, errors="coerce").notna().mean() >= 0.5:
        wrong = pd.to_numeric(column, errors="coerce").isna()
        _refuse_odd(column, wrong, source, "a number", way_out)
        return Column(name, "number")
    written, odd = _as_dates(look)
    # 1.2.10 may be a version, so with short years all must be dates
    if written and not (SHORT in written and parsed_dates(different, written).isna().any()):
        _refuse_odd(column, parsed_dates(column, written).isna(), source, "a date", way_out)
        return Column(name, "date", dates=written, odd=odd)
    if len(different) == 1:
        return Column(name, "ignore", "is the same in every row")
    odd = ""
    if look.str.strip().str.fullmatch(SIGNED).mean() >= 0.5:
        odd = f"has signs beside its numbers, such as {short(look[0])}; write them plain to have "
        odd += "them taken for numbers"
    if len(different) <= min(MOST_CATEGORIES, len(filled) / 2):
        return Column(name, "category", odd=odd)
    words = look.str.strip().str.contains(r"\s", regex=True).mean() >= 0.5
    if not words and len(different) > 0.9 * len(filled):
        return Column(name, "ignore", ONE_WORD, odd=odd)
    before = different.str.extract(NUMBERED)[0]
    if (before == before[0]).all() and len(different) > 0.9 * len(filled):
        return Column(name, "ignore", f"is {before[0]!r} {ANOTHER}")
    return Column(name, "text", odd=odd)


def _as_dates(cells: "pd.Series[str]") -> tuple[str | None, str]:
    """How most of these cells are written, if they are dates: the first way that fits the most.

    Beside it what a person may not have meant: the month, or the century.
    """
    if not cells.str.contains(r"\d").mean() >= 0.5:
        return None, ""
    read = {way: parsed_dates(cells, way) for way in DATES}
    written = max(read, key=lambda way: read[way].notna().sum())
    dates = read[written]
    if dates.notna().mean() < 0.5:
        return None, ""
    for way, other in read.items():
        if (other.notna() >= dates.notna()).all() and (other != dates)[dates.notna()].any():
            return written, (
                f"is read as dates such as {date_like(written)}, and may be such as "
                f"{date_like(way)}; write 2024-05-31 to be sure"
            )
    if SHORT in written:
        short_years = "has years of two digits, which are taken for 1969 to 2068"
        return written, f"{short_years}; write four to be sure"
    return written, ""


def date_like(written: str) -> str:
    """A date that is so written."""
    return "2024-05-31" if written == DATES[0] else pd.Timestamp(2024, 5, 31).strftime(written)


def _refuse_odd(
    column: "pd.Series[Any]",
    wrong: "pd.Series[bool]",
    source: str,
    what: str,
    way_out: str,
) -> None:
    """Refuse the first cell that is not what most of its column is."""
    empty = missing(column).to_numpy()
    odd = wrong.to_numpy() & ~empty
    if odd.any():
        i, usual = int(np.argmax(odd)), column[~(odd | empty)]
        like = f" such as {short(str(usual.iloc[0]))}" if len(usual) else ""
        raise UserError(
            f"{source}: row {i + 1}, column {column.name!r}: {short(column.iloc[i])} is not {what}"
            f"{like}, as most of the column; mend that value, or {way_out}"
        )
