"""Tables in files: one file of any kind, several of one table, or what standard input brings.

A directory stands for all its tables in the order of their names, also one that Hugging Face's
`save_to_disk` wrote, and a pattern such as day*.csv for all files that fit. Where Hugging Face
says so, numbers of classes become their names. `-` is standard input: CSV, JSON lines, Parquet or
Excel, or one of the first two packed. What is packed is unpacked to a file that is gone
afterwards, up to some size.
"""

import csv
import gzip
import json
import shutil
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pandas as pd

from wscpml.datasets import csv_files
from wscpml.datasets.dataset import few, refuse_twice
from wscpml.errors import UserError

STANDARD_INPUT = Path("-")
PACKED = (".csv.gz", ".tsv.gz", ".jsonl.gz")
KINDS = (".csv", ".tsv", ".parquet", ".jsonl", ".xlsx", *PACKED)
ARROW = ".arrow"  # in a directory of Hugging Face
MOST_PACKED, SMALL = 200, 64 << 20  # a file may unpack to so many times its size, or so many bytes


def kind(path: Path) -> str:
    """What a path's ending says that it is, .gz and what is before it together."""
    return "".join(path.suffixes[-2:]) if path.suffix == ".gz" else path.suffix


def is_table(path: Path) -> bool:
    """Whether a path stands for a table rather than for matrices."""
    return path == STANDARD_INPUT or path.is_dir() or is_pattern(path) or kind(path) in KINDS


def is_pattern(path: Path) -> bool:
    """Whether a path stands for all files that fit it."""
    return any(sign in path.name for sign in "*?[") and not path.exists()


def read(path: Path, text: Collection[str] = ()) -> pd.DataFrame:
    """The whole table; columns named in `text` are not read as numbers where a file is of text."""
    if path == STANDARD_INPUT:
        return _standard_input(text)
    files = _files(path)
    if len(files) == 1:
        return _one(files[0], text)
    tables = [_one(file, text) for file in files]
    first = tables[0]
    for file, table in zip(files, tables, strict=True):
        if set(table) != set(first):
            odd = sorted(set(map(str, table)) ^ set(map(str, first)))
            raise UserError(
                f"{file}: its columns are not those of {files[0].name}: only one of them has "
                f"{few(odd)}"
            )
    return pd.concat(tables, ignore_index=True)


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
    found = sorted(each for each in path.iterdir() if kind(each) in (*KINDS, ARROW))
    if not found and parts:
        raise UserError(
            f"{path}: has the directories {few(parts)}; name one of them: {path / parts[0]}"
        )
    if not found:
        raise UserError(f"{path}: has no table; read are {', '.join(KINDS)}")
    return found


def _one(path: Path, text: Collection[str]) -> pd.DataFrame:
    if kind(path) in PACKED:
        with _unpacked(path) as plain:
            return _one(plain, text)
    with told_if_unreadable(path):
        return READERS[kind(path)](path, text)


@contextmanager
def told_if_unreadable(path: Path) -> Iterator[None]:
    """What a table's parser cannot take is the user's to mend."""
    try:
        yield
    except (
        OSError,
        ValueError,
        csv.Error,
        zipfile.BadZipFile,
    ) as error:  # ArrowInvalid: ValueError
        reason = str(error).partition("\n")[0].strip()
        raise UserError(f"{path}: cannot be read as {kind(path)[1:]} ({reason})") from None


def _csv(path: Path, text: Collection[str]) -> pd.DataFrame:
    return csv_files.read(path, text)


def _parquet(path: Path, text: Collection[str]) -> pd.DataFrame:  # noqa: ARG001
    from pyarrow.parquet import ParquetFile

    table = ParquetFile(path).read()
    refuse_twice(table.column_names, "column", str(path))
    return _with_class_names(table, path)


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

    size = min(max(path.stat().st_size, 1), csv_files.MOST)
    return arrow.read_json(path, arrow.ReadOptions(block_size=size)).to_pandas()


def _excel(path: Path, text: Collection[str]) -> pd.DataFrame:
    _refuse_bomb(path)
    try:
        sheets = pd.read_excel(
            path, sheet_name=None, header=None, dtype=object, na_values=[""], keep_default_na=False
        )
    except ImportError:
        raise UserError(
            f"{path}: Excel's files need one more package: pip install 'wscpml[excel]'; or save "
            "it as CSV"
        ) from None
    filled = {name: sheet for name, sheet in sheets.items() if len(sheet)}
    if not filled:
        raise UserError(f"{path}: is empty")
    if len(filled) > 1:
        raise UserError(
            f"{path}: has {len(filled)} sheets, {few(list(map(str, filled)))}; save the one with "
            "the table as a file of its own"
        )
    (sheet,) = filled.values()
    names = [
        f"column {j + 1}" if pd.isna(name) else str(name) for j, name in enumerate(sheet.loc[0])
    ]
    refuse_twice(names, "column", str(path))
    table = sheet[1:].set_axis(names, axis=1).reset_index(drop=True)
    numbers = [name for name in names if name not in text]
    return table.assign(**{name: table[name].infer_objects() for name in numbers})


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
    found = table.to_pandas()
    for column, names in named.items():
        if names and column in found:
            found[column] = [_named(cell, names, path, column) for cell in found[column]]
    return found


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
        raise UserError(str(mistake).replace(str(read), str(named))) from None


def _refuse_bomb(path: Path) -> None:
    with zipfile.ZipFile(path) as packed:
        size = sum(each.file_size for each in packed.infolist())
    if size > max(SMALL, MOST_PACKED * path.stat().st_size):
        raise UserError(f"{path}: unpacks to more than {MOST_PACKED} times its size")


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
