"""Tables in files: one file of any kind, several of one table, or what standard input brings.

A directory stands for all its tables in the order of their names, also one that Hugging Face's
`save_to_disk` wrote, and a pattern such as day*.csv for all files that fit. Where Hugging Face
says so, numbers of classes become their names. `-` is standard input: CSV, JSON lines, Parquet or
Excel, or one of the first two packed. What is packed is unpacked to a file that is gone
afterwards, up to some size.
"""

import gzip
import json
import re
import shutil
import sys
import tempfile
import zipfile
import zlib
from codecs import BOM_UTF8
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd

from wscpml.datasets import csv_files
from wscpml.datasets.dataset import few, refuse_twice
from wscpml.datasets.tables import not_utf_8
from wscpml.errors import UserError
from wscpml.limits import TABLE_COLUMN, ask, budget, told_if_unreadable

STANDARD_INPUT = Path("-")
UNNAMED = ("column 1", "Unnamed: 0")  # what we and pandas call a first column without a name
PACKED = (".csv.gz", ".tsv.gz", ".jsonl.gz")
OF_TEXT = (".csv", ".tsv", ".csv.gz", ".tsv.gz")  # whose cells are text, whatever is made of them
KINDS = (".csv", ".tsv", ".parquet", ".jsonl", ".xlsx", *PACKED)
ARROW = ".arrow"  # in a directory of Hugging Face
MOST_PACKED, SMALL = 200, 64 << 20  # a file may unpack to so many times its size, or so many bytes
MOST_PACKED_EXCEL, SMALL_EXCEL = 50, 16 << 20  # the same of Excel's, which take longer
EXCEL_ROW, FEW_ROWS = 10, 10_000  # bytes of a row at least; rows that may be there without
CELL = 60  # bytes that a cell of a sheet takes
PART = 16 << 20  # bytes of JSON that are looked through at once
MOST_NESTED = 50  # levels of JSON
JSON_TEXT = re.compile(
    rb'("(?:[^"\\]++|\\.)*+(?:"|\\?\Z))(\s*+:)?+', re.DOTALL
)  # and if it is a key
OF_ANOTHER_KIND = re.compile(r"Column\(/([^/]+)(/.*)?\) changed from (\w+) to (\w+) in row (\d+)")
JSON_KINDS = {
    "array": "a list",
    "boolean": "true or false",
    "number": "a number",
    "object": "fields of its own",
    "string": "text",
}
BETWEEN = np.isin(np.arange(256), list(b"} \t\r\n"))  # what may end an object or follow it
STEPS = np.zeros(256, np.int64)
STEPS[list(b"[{")], STEPS[list(b"]}")] = 1, -1


def kind(path: Path) -> str:
    """What a path's ending says that it is, .gz and what is before it together."""
    return "".join(path.suffixes[-2:]) if path.suffix == ".gz" else path.suffix


def is_of_text(path: Path) -> bool:
    """Whether some file of a table has cells that are text, whatever is made of them."""
    return path != STANDARD_INPUT and any(kind(file) in OF_TEXT for file in _files(path))


def is_table(path: Path) -> bool:
    """Whether a path stands for a table rather than for matrices."""
    return path == STANDARD_INPUT or path.is_dir() or is_pattern(path) or kind(path) in KINDS


def is_pattern(path: Path) -> bool:
    """Whether a path stands for all files that fit it."""
    return any(sign in path.name for sign in "*?[") and not path.exists()


def read(path: Path, text: Collection[str] = ()) -> pd.DataFrame:
    """The whole table; columns named in `text` are not read as numbers where a file is of text."""
    return read_with_parts(path, text)[0]


def read_with_parts(
    path: Path, text: Collection[str] = ()
) -> tuple[pd.DataFrame, list[tuple[Path, int]]]:
    """The same, and if it is in several files, each with how many rows it has.

    A column that is text in one of them is so in all whose cells are text.
    """
    if path == STANDARD_INPUT:
        return _standard_input(text), []
    files = _files(path)
    if len(files) == 1:
        return _one(files[0], text), []
    tables = [_one(file, text) for file in files]
    _refuse_other_columns(files, tables)
    names = list(map(str, tables[0]))
    mixed = [name for name in names if len({_is_of(table[name]) for table in tables}) > 1]
    if mixed:
        tables = [
            _one(file, [*text, *mixed]) if kind(file) in OF_TEXT else table
            for file, table in zip(files, tables, strict=True)
        ]
    whole, first = pd.concat(tables, ignore_index=True), names[0]
    if first in UNNAMED and first not in text and all(_counts(table[first]) for table in tables):
        whole[first] = range(len(whole))  # in place of the numbers of each file's own rows
    return whole, list(zip(files, map(len, tables), strict=True))


def _refuse_other_columns(files: list[Path], tables: list[pd.DataFrame]) -> None:
    first = tables[0]
    for file, table in zip(files, tables, strict=True):
        if set(table) != set(first):
            odd = sorted(set(map(str, table)) ^ set(map(str, first)))
            raise UserError(
                f"{file}: its columns are not those of {files[0].name}: only one of them has "
                f"{few(odd)}"
            )


def _is_of(column: "pd.Series[Any]") -> str:
    """What the cells of a column are, by its type alone."""
    kind = getattr(column.dtype, "kind", "O")
    return "numbers" if kind in "iuf" else kind


def _counts(column: "pd.Series[Any]") -> bool:
    """Whether each cell is one more than that of the row before, and all are whole numbers."""
    if _is_of(column) != "numbers" or not len(column):
        return False
    return column[0] % 1 == 0 and np.array_equal(column, column[0] + np.arange(len(column)))


def _files(path: Path) -> list[Path]:
    """The files of one table."""
    if is_pattern(path):
        found = sorted(path.parent.glob(path.name))
        if not found:
            raise UserError(f"{path}: no file fits")
        return found
    if not path.is_dir():
        return [path]
    parts = sorted(each.name for each in path.iterdir() if each.is_dir())
    found = _saved(path) or sorted(each for each in path.iterdir() if _is_part(each))
    if not found and parts:
        raise UserError(
            f"{path}: has the directories {few(parts)}; name one of them: {path / parts[0]}"
        )
    if not found:
        raise UserError(f"{path}: has no table; read are {', '.join(KINDS)}")
    return found


def _is_part(path: Path) -> bool:
    """Whether a file in a directory is a table, and not what Hugging Face keeps beside one."""
    return kind(path) in KINDS or path.suffix == ARROW and not path.name.startswith("cache-")


def _saved(directory: Path) -> list[Path]:
    """The files that Hugging Face's `save_to_disk` says that it wrote, if it says so."""
    state = directory / "state.json"
    if not state.is_file():
        return []
    try:
        listed = json.loads(state.read_text(encoding="utf-8")).get("_data_files") or []
        found = [directory / Path(each["filename"]).name for each in listed]
    except (KeyError, TypeError, AttributeError, ValueError):
        raise UserError(f"{state}: does not list files as Hugging Face does") from None
    lost = [each for each in found if not each.is_file()]
    if lost:
        raise UserError(f"{lost[0]}: is missing; state.json beside it lists it")
    return found


def _one(path: Path, text: Collection[str]) -> pd.DataFrame:
    if kind(path) in PACKED:
        with _unpacked(path) as plain:
            return _one(plain, text)
    with told_if_unreadable(path, kind(path)[1:]):
        found = READERS[kind(path)](path, text)
    if not len(found.columns):
        raise UserError(f"{path}: has no columns")
    return found


def _csv(path: Path, text: Collection[str]) -> pd.DataFrame:
    return csv_files.read(path, text)


def _parquet(path: Path, text: Collection[str]) -> pd.DataFrame:  # noqa: ARG001
    (table,) = parquet_tables(path)
    refuse_twice(table.column_names, "column", str(path))
    return _with_class_names(table, path)


def parquet_tables(
    path: Path, columns: Sequence[str] | None = None, rows: int | None = None
) -> Iterator[Any]:
    """Arrow's table in a Parquet file, all of it or so many rows at a time, if there is room.

    A text that is stored once may be meant so often that there is not: where that may be, texts
    are read as they are stored, and spelled out if there is.
    """
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

    with ParquetFile(path, pre_buffer=False) as file:
        stored, schema = file.metadata, file.schema_arrow
        columns_stored = [file.schema.column(j) for j in range(len(file.schema.names))]
    # What a group says of a column is not asked: where it is wrong, Arrow ends the process.
    groups = [stored.row_group(i) for i in range(stored.num_row_groups)]
    size = sum(each.total_byte_size for each in groups) if rows is None else 0
    size = max(size, 8 * min(stored.num_rows, rows or stored.num_rows) * stored.num_columns)
    size += stored.num_columns * TABLE_COLUMN
    ask(size, path, f"it has {stored.num_rows:,} rows and {stored.num_columns:,} columns")
    texts = [each.path for each in columns_stored if each.physical_type == "BYTE_ARRAY"]
    worst = sum(each.num_rows * each.total_byte_size for each in groups)
    names = texts if worst > budget() else []
    with ParquetFile(path, pre_buffer=False, read_dictionary=names) as file:
        if rows is None:
            tables: Iterable[Any] = [file.read(columns)]
        else:
            batches = file.iter_batches(rows, columns=columns)
            tables = (pa.Table.from_batches([batch]) for batch in batches)
        for table in tables:
            if names:
                ask(sum(map(_meant, table.columns)), path, "it repeats long texts")
                table = table.cast(pa.schema([schema.field(name) for name in table.column_names]))
            yield table.replace_schema_metadata(schema.metadata)


def _meant(column: Any) -> int:
    """Bytes of the texts that a column of Arrow's means by their numbers."""
    import pyarrow as pa
    from pyarrow import compute

    if isinstance(column, pa.ChunkedArray):
        return sum(map(_meant, column.chunks))
    if isinstance(column, pa.DictionaryArray) and len(column):
        return (
            compute.sum(compute.binary_length(column.dictionary).take(column.indices)).as_py() or 0
        )
    if isinstance(column, pa.ListArray | pa.StructArray):
        parts = column.flatten()
        return sum(map(_meant, parts if isinstance(parts, list) else [parts]))
    return 0


def _arrow(path: Path, text: Collection[str]) -> pd.DataFrame:  # noqa: ARG001
    import pyarrow as pa

    with pa.memory_map(str(path)) as file:
        try:
            table = pa.ipc.open_stream(file).read_all()
        except pa.ArrowInvalid:
            table = pa.ipc.open_file(file).read_all()
    return _with_class_names(table, path)


def _json_lines(path: Path, text: Collection[str]) -> pd.DataFrame:  # noqa: ARG001
    from pyarrow import json as arrow

    _refuse_wild_json(path)
    size = min(max(path.stat().st_size, 1), csv_files.MOST)
    try:
        found = arrow.read_json(path, arrow.ReadOptions(block_size=size))
    except ValueError as error:
        raise _of_another_kind(path, str(error)) or error from None
    return _checked(found).to_pandas()


def _of_another_kind(path: Path, error: str) -> UserError | None:
    """What to raise where Arrow says that a value is of another kind than those before it."""
    told = OF_ANOTHER_KIND.search(error)
    if not told:
        return None
    column, inside, before, now, row = told.groups()
    of_list = ", in its list," if inside else ""
    return UserError(
        f"{path}: row {int(row) + 1}, column {column!r}: has{of_list} {JSON_KINDS.get(now, now)}, "
        f"those before have {JSON_KINDS.get(before, before)}; mend that value"
    )


def _refuse_wild_json(path: Path) -> None:
    """Refuse what Arrow would fill the memory or overflow the stack with.

    It makes a column of every key that some line has, and goes down into all that is nested.
    """
    keys, rows, depth, before = set[bytes](), 1, 0, 0
    with path.open("rb") as file:
        while block := file.read(PART) + file.readline():
            try:
                block.decode()
            except UnicodeDecodeError as error:
                file.seek(0)
                raise not_utf_8(path, file.read(before + error.start)) from None
            before += len(block)
            keys.update(text[1] for text in JSON_TEXT.finditer(block) if text[2])
            rows += block.count(b"\n")
            signs = np.frombuffer(JSON_TEXT.sub(b'"', block.removeprefix(BOM_UTF8)), np.uint8)
            levels = np.cumsum(STEPS[signs])
            depth = max(depth, levels.max(initial=0))
            wild = (levels == 0) & ~BETWEEN[signs] | (levels == 1) & (signs == ord("["))
            if wild.any():
                raise ValueError("a line is not one object, in braces")
    if depth > MOST_NESTED:
        raise UserError(f"{path}: has values within values, {depth} deep; give each a column")
    size = path.stat().st_size + len(keys) * (TABLE_COLUMN + 16 * rows)
    ask(size, path, f"{rows:,} rows have {len(keys):,} different keys")


def _excel(path: Path, text: Collection[str]) -> pd.DataFrame:
    size = _unpacked_size(path)
    try:
        from openpyxl import load_workbook  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        raise UserError(
            f"{path}: Excel's files need one more package: pip install 'wscpml[excel]'; or save "
            "it as CSV"
        ) from None
    with closing(load_workbook(path, read_only=True, data_only=True, keep_links=False)) as book:
        sheets = {sheet.title: _sheet(sheet, size, path) for sheet in book.worksheets}
    filled = {name: rows for name, rows in sheets.items() if rows}
    if not filled:
        raise UserError(f"{path}: is empty")
    if len(filled) > 1:
        raise UserError(
            f"{path}: has {len(filled)} sheets, {few(list(map(str, filled)))}; save the one with "
            "the table as a file of its own"
        )
    ((first, *rows),) = filled.values()
    ask(len(first) * TABLE_COLUMN, path, f"it has {len(first):,} columns")
    names = [f"column {j + 1}" if pd.isna(name) else str(name) for j, name in enumerate(first)]
    refuse_twice(names, "column", str(path))
    table = pd.DataFrame(rows, columns=names, dtype=object)
    words = [name for name in names if name in text]
    return table.infer_objects().astype(dict.fromkeys(words, object))


def _sheet(sheet: Any, size: int, path: Path) -> list[list[Any]]:
    """The cells of a sheet of so many bytes, as many in each row, NaN where there is nothing."""
    sheet.reset_dimensions()  # which may claim anything
    rows, width, asked = list[list[Any]](), 0, 0
    for row in sheet.rows:
        values = list(map(_value, row))
        while values and pd.isna(values[-1]):
            del values[-1]
        rows.append(values)
        width = max(width, len(values))
        if len(rows) * max(width, 1) > asked:  # twice as much is asked for at a time
            asked = 2 * len(rows) * max(width, 1)
            ask(asked * CELL, path, f"{len(rows):,} rows have up to {width:,} cells")
        if len(rows) > FEW_ROWS + size // EXCEL_ROW:
            raise ValueError("it has a cell far below all others; delete it")
    while rows and not rows[-1]:
        del rows[-1]
    return [values + [np.nan] * (width - len(values)) for values in rows]


def _value(cell: Any) -> Any:
    """A cell's value; numbers are whole where they can be."""
    if cell.value in (None, "") or cell.data_type == "e":
        return np.nan
    if cell.data_type == "n" and cell.value == int(cell.value):
        return int(cell.value)
    return cell.value


READERS: dict[str, Callable[[Path, Collection[str]], pd.DataFrame]] = {
    ".csv": _csv,
    ".tsv": _csv,
    ".parquet": _parquet,
    ".jsonl": _json_lines,
    ".xlsx": _excel,
    ARROW: _arrow,
}


def _with_class_names(table: Any, path: Path) -> pd.DataFrame:
    """A table with the names of classes for their numbers, where Hugging Face has such."""
    return with_class_names(_as_columns(_checked(table).to_pandas()), table, path)


def with_class_names(found: pd.DataFrame, table: Any, path: Path) -> pd.DataFrame:
    """The same for what was made of Arrow's table."""
    stored = (table.schema.metadata or {}).get(b"huggingface")
    described = path.parent / "dataset_info.json"
    try:
        if stored:
            features = json.loads(stored)["info"]["features"]
        elif path.suffix == ARROW and described.exists():
            features = json.loads(described.read_text(encoding="utf-8"))["features"]
        else:
            features = {}
        named = {name: _class_names(each) for name, each in (features or {}).items()}
    except (KeyError, TypeError, AttributeError, ValueError):
        raise UserError(f"{path}: its description by Hugging Face cannot be read") from None
    for column, names in named.items():
        if names and column in found:
            found[column] = [_named(cell, names, path, column) for cell in found[column]]
    return found


def _as_columns(table: pd.DataFrame) -> pd.DataFrame:
    """A table whose columns are called by text, the named parts of its index among them."""
    table.columns = list(map(str, table))
    table.index.names = [None if name is None else str(name) for name in table.index.names]
    named = [name for name in table.index.names if name is not None and name not in table]
    return table.reset_index(named) if named else table


def _checked(table: Any) -> Any:
    """A table of Arrow's that it has looked through: what is text is UTF-8, what is there is."""
    table.validate(full=True)
    return table


def _class_names(feature: Any) -> list[str] | None:
    """The names of the classes in a column or in its lists."""
    if isinstance(feature, list):
        return _class_names(feature[0])
    if feature.get("_type") == "ClassLabel":
        return list(map(str, feature["names"]))
    return _class_names(feature["feature"]) if "feature" in feature else None


def _named(cell: Any, names: list[str], path: Path, column: str) -> Any:
    """Numbers of classes as their names; -1 is none."""
    if cell is None or isinstance(cell, float) and cell != cell:
        return None
    several = hasattr(cell, "__len__")
    numbers = [int(each) for each in (cell if several else [cell])]
    wrong = next((each for each in numbers if not -1 <= each < len(names)), None)
    if wrong is not None:
        raise UserError(f"{path}: column {column!r}: has class {wrong}, and {len(names)} names")
    found = [names[each] for each in numbers if each >= 0]
    return found if several else (found[0] if found else None)


@contextmanager
def _unpacked(path: Path) -> Iterator[Path]:
    """A packed file as a plain one, for as long as it is needed; messages name the packed one."""
    most = max(SMALL, MOST_PACKED * path.stat().st_size)
    with tempfile.TemporaryDirectory() as directory:
        plain = Path(directory, path.stem)
        try:
            with gzip.open(path) as packed, plain.open("wb") as file:
                _copy(packed, file, most, path)
        except (OSError, EOFError, zlib.error) as error:
            raise UserError(f"{path}: cannot be unpacked ({error})") from None
        if not plain.stat().st_size:
            raise UserError(f"{path}: is empty")
        with _told_of(plain, path):
            yield plain


def _copy(packed: gzip.GzipFile, file: IO[bytes], most: int, path: Path) -> None:
    while block := packed.read(1 << 20):
        file.write(block)
        if file.tell() > most:
            raise UserError(
                f"{path}: unpacks to more than {MOST_PACKED} times its size; unpack it yourself if "
                "you trust it"
            )


@contextmanager
def _told_of(read: Path, named: Path) -> Iterator[None]:
    """Messages about a file under the name that a person knows."""
    try:
        yield
    except UserError as mistake:
        raise UserError(*(line.replace(str(read), str(named)) for line in mistake.args)) from None


def _unpacked_size(path: Path) -> int:
    """Bytes of what is packed in a file of Excel's, if they are not far too many."""
    with zipfile.ZipFile(path) as packed:
        size = sum(each.file_size for each in packed.infolist())
    if size > max(SMALL_EXCEL, MOST_PACKED_EXCEL * path.stat().st_size):
        raise UserError(f"{path}: unpacks to more than {MOST_PACKED_EXCEL} times its size")
    ask(4 * size, path, f"it unpacks to {size:,} bytes")
    return size


def _standard_input(text: Collection[str]) -> pd.DataFrame:
    """What standard input brings, by way of a file that is gone afterwards."""
    with tempfile.TemporaryDirectory() as directory:
        raw = Path(directory, "input")
        with raw.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        if not raw.stat().st_size:
            raise UserError(f"{STANDARD_INPUT}: standard input is empty")
        with raw.open("rb") as file:
            ending = _guessed(file)
        named = raw.rename(raw.with_suffix(ending))
        with _told_of(named, STANDARD_INPUT):
            return _one(named, text)


def _guessed(file: IO[bytes]) -> str:
    """What kind of table begins like this."""
    start = file.read(4)
    file.seek(0)
    if start[:2] == b"\x1f\x8b":
        with gzip.open(file) as packed:
            try:
                return _guessed(packed) + ".gz"  # type: ignore[arg-type]
            except (OSError, EOFError, zlib.error):
                return ".csv.gz"
    if start == b"PAR1":
        return ".parquet"
    if start == b"PK\x03\x04":
        return ".xlsx"
    return ".jsonl" if start.lstrip()[:1] == b"{" else ".csv"
