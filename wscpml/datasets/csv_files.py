"""CSV files: the whole table, or one part after another for files larger than memory.

The separator is the one that the header has most of. Only an empty cell is missing, and lines may
break within quotes. Numbers are float64, with decimal commas where commas do not separate, true and
false bool; a column with other words is text.
"""

import csv
import re
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import TextIOWrapper
from itertools import chain
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any, TextIO

import pandas as pd
import pyarrow as pa
from pyarrow import compute
from pyarrow import csv as arrow

from wscpml.datasets.dataset import refuse_twice
from wscpml.datasets.tables import EMPTY, not_utf_8
from wscpml.errors import UserError
from wscpml.limits import TABLE_COLUMN, ask
from wscpml.spreadsheets import MAYBE, as_meant

csv.field_size_limit(2**31 - 1)  # a cell may be as long as the file

PART = 4 << 20  # bytes of a table that are worth a thread
BLOCK = 1 << 17  # bytes of a file in parts that are parsed at once; Arrow reads 32 ahead
MOST_HEADER = 16 << 20  # characters
MOST = 2**31 - 1  # the largest block that Arrow takes


@dataclass(frozen=True)
class _Layout:
    """What the header says of a file."""

    path: Path
    header: list[str]
    separator: str
    length: int = 0  # bytes that count; 0: all of them

    @property
    def names(self) -> list[str]:
        """The columns' names without blanks around them; one without is called by its place."""
        return [as_meant(name).strip() or f"column {j + 1}" for j, name in enumerate(self.header)]

    @property
    def columns(self) -> list[tuple[str, str]]:
        """Each column as the header calls it, and its name."""
        return list(zip(self.header, self.names, strict=True))

    @property
    def blocks(self) -> list[int]:
        """Sizes of a block, larger and larger; the first will do unless rows are very long."""
        first = max(BLOCK, 64 * sum(map(len, self.header)))
        return [first, 16 * first, 256 * first, MOST]


def names(path: Path) -> list[str]:
    """The names of a file's columns."""
    return _layout(path).names


def separator(path: Path) -> str:
    """What stands between the cells of a file."""
    return _layout(path).separator


def read(path: Path, text: Collection[str] = (), length: int = 0) -> pd.DataFrame:
    """The whole table; columns named in `text` are not read as numbers.

    Of a file that breaks off, just so many bytes are read as the `length` says.
    """
    layout = replace(_layout(path), length=length)
    _ask_for_cells(layout)
    try:
        found = _side_by_side(layout, text, 1 << 20)
    except pa.ArrowInvalid:  # words among the numbers, or a row longer than a block
        found = _typed(_all_as_text(layout), text, layout.separator)
    return _meant(found).to_pandas(self_destruct=True)  # frees as it copies


def parts(
    path: Path, columns: Sequence[str], text: Collection[str], rows: int
) -> Iterator[pd.DataFrame]:
    """Some columns, so many rows at a time; those named in `text` are not read as numbers."""
    layout = _layout(path)
    first, *larger = layout.blocks
    done = 0
    for as_text, block in [(text, first), (columns, first), *((columns, b) for b in larger)]:
        try:
            for table in _rows_from(done, _stream(layout, columns, as_text, block, rows)):
                for start in range(0, len(table), rows):
                    part = _typed(table.slice(start, rows), text, layout.separator)
                    yield _meant(part).to_pandas()
                done += len(table)
            return
        except pa.ArrowInvalid as error:  # goes on as text, and then in larger blocks
            failure = error
            if as_text is columns and not _count_even_rows(layout):
                return
    raise failure


def _meant(table: Any) -> Any:
    """A table without the apostrophes that keep spreadsheets from taking text for formulas."""
    for place, column in enumerate(table.columns):
        if column.type != pa.string():
            continue
        written = compute.match_substring_regex(column, MAYBE)
        if compute.any(compute.and_(written, compute.starts_with(column, "'"))).as_py():
            cells = pa.array(map(as_meant, column.to_pylist()), pa.string())
            table = table.set_column(place, table.column_names[place], cells)
    return table


def _layout(path: Path) -> _Layout:
    with _opened(path) as file:
        lines = _header_lines(file, path)
        first = next(lines, "")
        separator = max(",;\t|", key=re.sub(r'"[^"]*+"', "", first).count)
        count = first.count(separator)
        ask(count * TABLE_COLUMN, path, f"it has {count:,} columns")
        header = next(csv.reader(chain([first], lines), delimiter=separator), [])
    if not header:
        raise UserError(f"{path}: is empty")
    layout = _Layout(path, header, separator)
    for each in (header, layout.names):
        refuse_twice(each, "column", str(path))
    return layout


def _ask_for_cells(layout: _Layout) -> None:
    """Refuse a table that there is no memory for: its text, and numbers twice."""
    size, rows = layout.path.stat().st_size, 0
    with layout.path.open("rb") as file:
        while block := file.read(PART):
            rows += block.count(b"\n") + block.count(b"\r")
    cells = min(rows * len(layout.header), size)  # a cell has a byte, its end
    ask(size + 16 * cells, layout.path, f"it has {cells:,} cells")


def _header_lines(file: TextIO, path: Path) -> Iterator[str]:
    """Lines of a file as long as they may be of its header."""
    read = 0
    while line := file.readline(MOST_HEADER + 1):
        read += len(line)
        if read > MOST_HEADER:
            raise UserError(
                f"{path}: its first line, the names of the columns, has more than {MOST_HEADER} "
                "characters; is a quote left open?"
            )
        if line.strip():
            yield line


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    """A file as text; what is not UTF-8 is refused with its place."""
    with path.open("rb") as file:
        try:
            yield TextIOWrapper(file, "utf-8-sig", newline="")
        except UnicodeDecodeError as error:  # `object` is the end of what has been read
            byte = file.tell() - len(error.object) + error.start
            file.seek(0)
            raise not_utf_8(path, file.read(byte)) from None


def _all_as_text(layout: _Layout) -> Any:
    """The whole table as text, however long its rows are."""
    try:
        return _side_by_side(layout, layout.names, min(layout.path.stat().st_size, MOST))
    except pa.ArrowInvalid:
        if _count_even_rows(layout):
            raise
        return pa.schema([(name, pa.string()) for name in layout.names]).empty_table()


def _side_by_side(layout: _Layout, text: Collection[str], block: int) -> Any:
    """The whole table, its columns text or numbers.

    A large file without quotes is cut into parts, one per core, that are read side by side: that
    takes less than Arrow's own threads do.
    """
    with layout.path.open("rb") as file:
        mapped = mmap(file.fileno(), layout.length, access=ACCESS_READ)
    quoted, content = mapped.find(b'"') >= 0, pa.py_buffer(mapped)
    options = _options(layout, text, quoted)

    def read(start: int, end: int) -> Any:
        header = layout.header if start else None
        reading = arrow.ReadOptions(use_threads=quoted, block_size=block, column_names=header)
        return arrow.read_csv(content.slice(start, end - start), reading, *options)

    bounds = [0, len(mapped)] if quoted else _bounds(mapped)
    if len(bounds) == 2:
        return read(*bounds).rename_columns(layout.names)
    with ThreadPoolExecutor(len(bounds) - 1) as pool:
        found = pa.concat_tables(pool.map(read, bounds[:-1], bounds[1:]))
    return found.rename_columns(layout.names)


def _bounds(content: mmap) -> list[int]:
    """Where to cut a file without quotes, one part per core: at ends of lines."""
    size = len(content)
    count = min(pa.cpu_count(), size // PART + 1)
    inner = [content.find(b"\n", size * k // count) + 1 for k in range(1, count)]
    return sorted({0, *inner, size})


def _stream(
    layout: _Layout, columns: Sequence[str], text: Collection[str], block: int, rows: int
) -> Iterator[Any]:
    """Tables of so many rows, or a multiple of that; the last has the rest."""
    chosen = set(columns)
    wanted = {raw: name for raw, name in layout.columns if name in chosen}
    parsing, conversion = _options(layout, text, quoted=True)
    conversion.include_columns = list(wanted)
    reading = arrow.ReadOptions(use_threads=False, block_size=block)
    with arrow.open_csv(layout.path, reading, parsing, conversion) as batches:
        kept = batches.schema.empty_table()
        for batch in batches:
            kept = pa.concat_tables([kept, pa.Table.from_batches([batch])])
            if full := len(kept) - len(kept) % rows:
                yield kept.slice(0, full).rename_columns(list(wanted.values()))
                kept = kept.slice(full)
    if len(kept):
        yield kept.rename_columns(list(wanted.values()))


def _rows_from(first: int, tables: Iterator[Any]) -> Iterator[Any]:
    """Tables without the rows before a certain one."""
    for table in tables:
        if len(table) > first:
            yield table.slice(first)
        first = max(first - len(table), 0)


def _options(layout: _Layout, text: Collection[str], quoted: bool) -> tuple[Any, Any]:
    words = set(text)
    kinds = {raw: pa.string() if name in words else pa.float64() for raw, name in layout.columns}
    return (
        arrow.ParseOptions(delimiter=layout.separator, newlines_in_values=quoted),
        arrow.ConvertOptions(column_types=kinds, null_values=[""], strings_can_be_null=True),
    )


def _typed(table: Any, text: Collection[str], separator: str) -> Any:
    """Columns of text as numbers or as true and false, where that is what they hold.

    Numbers may have decimal commas where these do not separate cells.
    """
    columns = zip(table.column_names, table.columns, strict=True)
    return pa.table(
        [column if name in text else _cast(column, separator) for name, column in columns],
        table.column_names,
    )


def _cast(column: Any, separator: str) -> Any:
    if column.type != pa.string():
        return column
    cells = compute.utf8_trim_whitespace(column)
    for kind in (pa.float64(), pa.bool_()):
        try:
            return cells.cast(kind)
        except pa.ArrowInvalid:
            continue
    commas, points = (
        compute.any(compute.match_substring(cells, mark)).as_py() for mark in (",", ".")
    )
    if separator == "," or points or not commas:
        return column
    nothing = compute.is_in(cells, pa.array(("", *EMPTY)))
    cells = compute.if_else(nothing, pa.scalar(None, pa.string()), cells)
    try:
        return compute.replace_substring(cells, ",", ".").cast(pa.float64())
    except pa.ArrowInvalid:
        return column


def _count_even_rows(layout: _Layout) -> int:
    """How many rows there are; one with more or fewer cells than the header is refused."""
    count, width = -1, len(layout.header)
    with _opened(layout.path) as file:
        rows = filter(None, csv.reader(file, delimiter=layout.separator))
        for count, row in enumerate(rows):
            if len(row) != width:
                raise UserError(
                    f"{layout.path}: row {count}: has {len(row)} cells, "
                    f"the header has {width} names"
                )
    return count
