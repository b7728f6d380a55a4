"""Tables with columns of every kind as numbers, the same for the rows to learn from and new ones.

    number      itself; where it is missing the median, and a column that says so
    category    a column of 0 and 1 for each value, and one for rare and unknown ones
    date        year, month, day, weekday, and hour if there are hours
    text        TF-IDF of its most frequent words, and the strongest directions of that of its
                groups of three and four letters
    vector      its values, also where they are written as text

What is fitted is plain data and arrays: a file of it needs no unpickling, and read back it gives
the same numbers to the last bit. A row's numbers do not depend on the rows beside it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pandas as pd

from wscpml.arrays import WEAKEST, Array, row_blocks
from wscpml.datasets.columns import (
    DATES,
    Column,
    Role,
    all_numbers,
    as_text,
    date_like,
    missing,
    parsed_dates,
    recognise,
    unlisted,
)
from wscpml.datasets.dataset import refuse_twice
from wscpml.datasets.tables import chosen, numbers, short
from wscpml.devices import one_blas_thread
from wscpml.errors import UserError
from wscpml.progress import counted

if TYPE_CHECKING:
    from sklearn.feature_extraction.text import TfidfVectorizer

FEWEST_ROWS = 5  # that a category needs for a column of its own
MOST_WORDS = 300  # that have a column of their own
MOST_GROUPS, DIRECTIONS = 5000, 30  # groups of letters, and what they are reduced to
MOST_ROWS = 50_000  # that a text is fitted on; of more, every second, third, ...
ROWS_AT_ONCE = 4096
OTHER = "other"
MEND = "mend that value"
PARTS = ("year", "month", "day", "weekday", "hour")


@dataclass(frozen=True)
class Encoder(ABC):
    """How one column becomes numbers.

    The index of its cells are the numbers of their rows, and `source` is where they are from, for
    messages about cells that cannot be taken.
    """

    ROLE: ClassVar[str]
    ARRAYS: ClassVar[tuple[str, ...]] = ()  # which of the fields are arrays

    column: str

    @classmethod
    @abstractmethod
    def fit(cls, found: Column, cells: "pd.Series[Any]", source: str) -> Self:
        """Learn from the cells of the training rows ``(n,)``."""

    @property
    @abstractmethod
    def names(self) -> list[str]:
        """What the features are called."""

    @abstractmethod
    def __call__(self, cells: "pd.Series[Any]", source: str) -> Array:
        """Cells ``(n,)`` as float64 ``(n, d)``."""

    @property
    @abstractmethod
    def how(self) -> str:
        """What was made of the column, in words."""


@dataclass(frozen=True)
class Numbers(Encoder):
    """A number; the median where it is missing, and if some were, a column that says so."""

    ROLE: ClassVar[str] = "number"

    median: float
    holes: bool

    @classmethod
    def fit(cls, found: Column, cells: "pd.Series[Any]", source: str) -> Self:
        """Learn from the cells of the training rows."""
        values = _numbers(cells, source)
        (median,) = _medians(values[:, None])
        return cls(found.name, median, bool(np.isnan(values).any()))

    @property
    def names(self) -> list[str]:
        """What the features are called."""
        return [self.column] + [f"{self.column} missing"] * self.holes

    def __call__(self, cells: "pd.Series[Any]", source: str) -> Array:
        """Cells as float64."""
        return _filled(_numbers(cells, source)[:, None], [self.median], self.holes)

    @property
    def how(self) -> str:
        """What was made of the column, in words."""
        return "itself" + f"; the median, {self.median:g}, and a mark if missing" * self.holes


@dataclass(frozen=True)
class Categories(Encoder):
    """Columns of 0 and 1; nothing is a value too, and rare and unknown ones share the last."""

    ROLE: ClassVar[str] = "category"

    values: list[str]

    @classmethod
    def fit(cls, found: Column, cells: "pd.Series[Any]", source: str) -> Self:  # noqa: ARG003
        """Learn from the cells of the training rows."""
        counts = as_text(cells).value_counts()
        return cls(found.name, sorted(counts.index[counts >= FEWEST_ROWS].tolist()))

    @property
    def names(self) -> list[str]:
        """What the features are called."""
        return [f"{self.column}={value}" for value in self.values] + [f"{self.column} {OTHER}"]

    def __call__(self, cells: "pd.Series[Any]", source: str) -> Array:  # noqa: ARG002
        """Cells as float64."""
        known, found = (pd.Index(each, dtype=object) for each in (self.values, as_text(cells)))
        return np.eye(len(self.values) + 1)[known.get_indexer(found)]  # -1, the unknown, is last

    @property
    def how(self) -> str:
        """What was made of the column, in words."""
        return f"0 and 1 for each of {len(self.values)} values, and for rare and unknown ones"


@dataclass(frozen=True)
class Dates(Encoder):
    """The parts of a date; their medians where it is missing, and a column that says so."""

    ROLE: ClassVar[str] = "date"

    written: str
    parts: list[str]
    medians: list[float]
    holes: bool

    @classmethod
    def fit(cls, found: Column, cells: "pd.Series[Any]", source: str) -> Self:
        """Learn from the cells of the training rows."""
        values = _date_parts(_dates(cells, found.dates, source))
        known = ~np.isnan(values[:, 0])
        count = len(PARTS) - (not values[known, -1].any())
        medians = _medians(values[:, :count])
        return cls(found.name, found.dates, list(PARTS[:count]), medians, not known.all())

    @property
    def names(self) -> list[str]:
        """What the features are called."""
        return [f"{self.column} {part}" for part in self.parts] + [
            f"{self.column} missing"
        ] * self.holes

    def __call__(self, cells: "pd.Series[Any]", source: str) -> Array:
        """Cells as float64."""
        values = _date_parts(_dates(cells, self.written, source))
        return _filled(values[:, : len(self.parts)], self.medians, self.holes)

    @property
    def how(self) -> str:
        """What was made of the column, in words."""
        iso = self.written == DATES[0]
        written = "" if iso else f" of dates such as {date_like(self.written)}"
        return f"{', '.join(self.parts)}{written}" + "; medians and a mark if missing" * self.holes


@dataclass(frozen=True)
class Text(Encoder):
    """TF-IDF of frequent words, and the strongest directions of that of groups of letters."""

    ROLE: ClassVar[str] = "text"
    ARRAYS: ClassVar[tuple[str, ...]] = ("word_weights", "group_weights", "directions")

    words: list[str]
    groups: list[str]
    word_weights: Array  # (w,), inverse document frequencies
    group_weights: Array  # (g,)
    directions: Array  # (g, r)

    @classmethod
    def fit(cls, found: Column, cells: "pd.Series[Any]", source: str) -> Self:  # noqa: ARG003
        """Learn from the cells of the training rows."""
        texts = as_text(cells.iloc[:: -(-len(cells) // MOST_ROWS)])
        words, groups = _vectorizer(MOST_WORDS), _group_vectorizer(MOST_GROUPS)
        _fit_or_empty(words, texts)
        found_groups = _fit_or_empty(groups, texts)
        return cls(
            found.name,
            words.get_feature_names_out().tolist() if words.vocabulary_ else [],
            groups.get_feature_names_out().tolist() if groups.vocabulary_ else [],
            words.idf_ if words.vocabulary_ else np.empty(0),
            groups.idf_ if groups.vocabulary_ else np.empty(0),
            _directions(found_groups),
        )

    @cached_property
    def _vectorizers(self) -> "tuple[TfidfVectorizer, TfidfVectorizer]":
        words, groups = (
            _vectorizer(vocabulary=self.words),
            _group_vectorizer(vocabulary=self.groups),
        )
        for vectorizer, weights in ((words, self.word_weights), (groups, self.group_weights)):
            if len(weights):
                vectorizer.idf_ = weights
        return words, groups

    @property
    def names(self) -> list[str]:
        """What the features are called."""
        return [f"{self.column}: {word}" for word in self.words] + [
            f"{self.column} letters {k + 1}" for k in range(self.directions.shape[1])
        ]

    def __call__(self, cells: "pd.Series[Any]", source: str) -> Array:  # noqa: ARG002
        """Cells as float64."""
        texts = as_text(cells)
        words, groups = self._vectorizers
        parts = [np.empty((len(texts), 0))]
        if self.words:
            parts.append(words.transform(texts).toarray())
        if self.groups:
            parts.append(groups.transform(texts) @ self.directions)
        return np.hstack(parts)

    @property
    def how(self) -> str:
        """What was made of the column, in words."""
        return (
            f"TF-IDF of {len(self.words)} words, and {self.directions.shape[1]} directions of "
            f"{len(self.groups)} groups of letters"
        )


@dataclass(frozen=True)
class Vectors(Encoder):
    """A list of numbers, as long in every row; the means where it is missing."""

    ROLE: ClassVar[str] = "vector"
    ARRAYS: ClassVar[tuple[str, ...]] = ("means",)

    means: Array  # (d,)
    holes: bool

    @classmethod
    def fit(cls, found: Column, cells: "pd.Series[Any]", source: str) -> Self:
        """Learn from the cells of the training rows."""
        cells = unlisted(cells)
        known = cells.notna().to_numpy()
        size = len(cells[known].iloc[0]) if known.any() else 0
        values = _lists(cells, size, source)[known]
        holes = size > 0 and not known.all()
        return cls(found.name, values.sum(axis=0) / max(len(values), 1), holes)

    @property
    def names(self) -> list[str]:
        """What the features are called."""
        return [f"{self.column} {k + 1}" for k in range(len(self.means))] + [
            f"{self.column} missing"
        ] * self.holes

    def __call__(self, cells: "pd.Series[Any]", source: str) -> Array:
        """Cells as float64."""
        values = _lists(unlisted(cells), len(self.means), source)
        return _filled(values, self.means, self.holes)

    @property
    def how(self) -> str:
        """What was made of the column, in words."""
        return f"its {len(self.means)} numbers" + "; means and a mark if missing" * self.holes


ENCODERS: dict[str, type[Encoder]] = {
    each.ROLE: each for each in (Numbers, Categories, Dates, Text, Vectors)
}


@dataclass(frozen=True)
class Encoding:
    """The fitted encoders of a table's columns, in their order."""

    FILES = ("encoding.json", "encoding.safetensors")

    encoders: Sequence[Encoder]

    @property
    def columns(self) -> list[str]:
        """The columns that a table must have."""
        return [each.column for each in self.encoders]

    @property
    def words(self) -> list[str]:
        """Those that are not to be read as numbers."""
        return [
            each.column for each in self.encoders if isinstance(each, Categories | Dates | Text)
        ]

    @property
    def names(self) -> list[str]:
        """What the features are called."""
        return [name for each in self.encoders for name in each.names]

    def __call__(
        self, table: pd.DataFrame, source: str, first: int = 1, shown: bool = False
    ) -> Array:
        """Rows of a table as float64 ``(n, d)``; other columns than those needed are ignored.

        `source` and the number of the `first` row are for messages about what cannot be taken. If
        `shown`, a bar tells how far it is.
        """
        table = _numbered(chosen(table, self.columns, source), first)
        encoded = np.empty((len(table), len(self.names)))
        blocks = row_blocks(len(table), ROWS_AT_ONCE)  # words and letters of all take much more
        for rows in counted(blocks, "encoding rows", shown):
            part = table.iloc[rows]
            parts = [each(part[each.column], source) for each in self.encoders]
            np.concatenate(parts, axis=1, out=encoded[rows])
        return encoded

    def to_files(self) -> dict[str, Any]:
        """Plain data and arrays, by file name."""
        plain, arrays = [], dict[str, Array]()
        for k, each in enumerate(self.encoders):
            state = {field.name: getattr(each, field.name) for field in fields(each)}
            arrays |= {f"{k}.{name}": state.pop(name) for name in each.ARRAYS}
            plain.append({"role": each.ROLE, **state})
        return dict(zip(self.FILES, (plain, arrays), strict=True))

    @classmethod
    def from_files(cls, files: Mapping[str, Any]) -> "Encoding":
        """What `to_files` took apart; a ValueError says that it is no such thing."""
        plain, arrays = (files[name] for name in cls.FILES)
        try:
            encoders = []
            for k, state in enumerate(plain):
                kind = ENCODERS[state["role"]]
                given = {name: state[name] for name in state if name != "role"}
                given |= {name: arrays[f"{k}.{name}"] for name in kind.ARRAYS}
                if not all(np.isfinite(given[name]).all() for name in kind.ARRAYS):
                    raise ValueError("a weight is not a finite number")
                encoders.append(kind(**given))
            found = cls(encoders)
            found(pd.DataFrame(None, range(1), found.columns, dtype=object), "an empty row")
        except (KeyError, TypeError, ValueError, AttributeError, UserError):
            raise ValueError("its encoding of columns is not one") from None
        return found


@dataclass(frozen=True)
class Encoded:
    """A table as numbers, and how it came to be."""

    matrix: Array  # (n, d)
    names: list[str]
    columns: list[Column]  # each of the table, also those left out
    encoding: Encoding | None  # None: the table is of numbers, without holes, and is what it was


def encode(
    table: pd.DataFrame,
    source: str,
    named: Callable[[str], str],
    given: Mapping[str, Role] | None = None,
    train: Array | None = None,
    shown: bool = False,
) -> Encoded:
    """Recognise a table's columns, fit their encoding to the rows in `train`, and take all through.

    A table of numbers alone is taken as it is. `given` are roles of columns by their names, `train`
    is a boolean ``(n,)``, all rows if it is None. If `shown`, bars tell how far it is.
    """
    refuse_twice(list(map(str, table)), "column", source)
    table = _numbered(table, 1)
    if not given and all_numbers(table):
        matrix = numbers(table, source)
        if not np.isnan(matrix.sum()) or not np.isnan(matrix).any():
            names = list(map(str, table))
            return Encoded(matrix, names, [Column(name, "number") for name in names], None)
    found = recognise(table, given or {}, source, named)
    rows = slice(None) if train is None else train
    encoders, columns = [], []
    with one_blas_thread():
        for column in counted(found, "columns", shown):
            if column.role != "ignore":
                encoder = ENCODERS[column.role].fit(column, table[column.name][rows], source)
                if encoder.names:
                    encoders.append(encoder)
                else:
                    column = Column(column.name, "ignore", "has no word that two rows share")
            columns.append(column)
    if not encoders:
        told = "; ".join(f"{each.name!r} {each.why}" for each in columns) or "it has no other"
        raise UserError(f"{source}: has no column to learn from: {told}")
    encoding = Encoding(encoders)
    matrix = encoding(table, source, shown=shown)
    return Encoded(matrix, encoding.names, columns, encoding)


def _numbered(table: pd.DataFrame, first: int) -> pd.DataFrame:
    """A table whose columns are called by text, and its rows by their numbers."""
    table = table.set_axis(list(map(str, table)), axis=1)
    return table.set_axis(range(first, first + len(table)), axis=0)


def _refusal(source: str, cells: "pd.Series[Any]", i: int, what: str) -> UserError:
    """What to raise for a cell that cannot be taken."""
    return UserError(f"{source}: row {cells.index[i]}, column {cells.name!r}: {what}; {MEND}")


def _numbers(cells: "pd.Series[Any]", source: str) -> Array:
    """Cells as numbers ``(n,)``, NaN where there is nothing; infinite ones are refused."""
    if getattr(cells.dtype, "kind", "O") not in "biuf":
        cells = cells.where(~missing(cells), None)
    values = numbers(cells.to_frame(), source, cells.index)[:, 0]
    wrong = np.isinf(values)
    if wrong.any():
        i = int(np.argmax(wrong))
        raise _refusal(source, cells, i, f"{values[i]} is not a finite number")
    return values


def _dates(cells: "pd.Series[Any]", written: str, source: str) -> "pd.Series[Any]":
    """Cells as points in time, NaT where there is nothing."""
    found = parsed_dates(cells, written)
    wrong = (found.isna() & ~missing(cells)).to_numpy()
    if wrong.any():
        i = int(np.argmax(wrong))
        told = f"{short(cells.iloc[i])} is not a date such as {date_like(written)}"
        raise _refusal(source, cells, i, told)
    return found


def _date_parts(dates: "pd.Series[Any]") -> Array:
    parts = [dates.dt.year, dates.dt.month, dates.dt.day, dates.dt.day_of_week, dates.dt.hour]
    return np.column_stack([part.to_numpy(np.float64, na_value=np.nan) for part in parts])


def _lists(cells: "pd.Series[Any]", size: int, source: str) -> Array:
    """Lists of numbers as ``(n, size)``, NaN where there is none."""
    values = np.full((len(cells), size), np.nan)
    for i, cell in enumerate(cells):
        if cell is None or cell is pd.NA or isinstance(cell, float) and np.isnan(cell):
            continue
        try:
            row = np.asarray(cell, np.float64)
        except (TypeError, ValueError):
            row = np.empty((0, 0))
        if row.ndim != 1 or not np.isfinite(row).all():
            raise _refusal(source, cells, i, "is not a list of numbers")
        if len(row) != size:
            told = f"has {len(row)} numbers, the others have {size}"
            raise _refusal(source, cells, i, told)
        values[i] = row
    return values


def _medians(values: Array) -> list[float]:
    """The median of each column of what is known, 0 where nothing is: all of it was held out."""
    known = values[~np.isnan(values).any(axis=1)]
    return np.median(known, axis=0).tolist() if len(known) else [0.0] * values.shape[1]


def _filled(values: Array, fillings: Sequence[float] | Array, holes: bool) -> Array:
    """Values ``(n, d)`` with their fillings for NaN, and, if there were some, where they were."""
    missing = np.isnan(values)
    filled = np.where(missing, np.asarray(fillings), values)
    return np.hstack([filled, missing[:, :1]]) if holes else filled


def _vectorizer(most: int | None = None, **how: Any) -> "TfidfVectorizer":
    """Words of two letters or more that at least two rows have."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    seen = {"min_df": 2, "max_features": most} if most else {}
    return TfidfVectorizer(sublinear_tf=True, **seen, **how)


def _group_vectorizer(most: int | None = None, **how: Any) -> "TfidfVectorizer":
    """Groups of three and four letters within words."""
    return _vectorizer(most, analyzer="char_wb", ngram_range=(3, 4), **how)


def _fit_or_empty(vectorizer: "TfidfVectorizer", texts: "pd.Series[str]") -> Any:
    """The fitted matrix, None where no two rows share anything."""
    try:
        return vectorizer.fit_transform(texts)
    except ValueError:  # an empty vocabulary, and nothing else of texts
        vectorizer.vocabulary_ = {}
        return None


def _directions(groups: Any) -> Array:
    """The strongest right singular directions of a sparse matrix, ``(g, r)``."""
    if groups is None:
        return np.empty((0, 0))
    from sklearn.utils.extmath import randomized_svd

    count = min(DIRECTIONS, *groups.shape)
    _, strengths, directions = randomized_svd(groups, count, random_state=0)
    return directions[strengths > WEAKEST * strengths[0]].T
