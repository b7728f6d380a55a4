"""The one module that reads and writes artifacts: whole files, same bytes for same content.

The ending of a path says what it holds: `.npy` one array, `.npz` and `.safetensors` named arrays,
`.json`, `.yaml`, DVC's `.lock` and `.dvc` plain data, `.csv` and `.parquet` a table, `.png` a
figure, `.html`, `.md`, `.tex` and `.xml` text. Content that is a path is a file to copy. Nothing
here unpickles.
"""

import io
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from wscpml import npy_files, temporaries
from wscpml.arrays import Array, Matrix, pack, unpack
from wscpml.errors import UserError, reason
from wscpml.limits import ask, parsed_json
from wscpml.spreadsheets import table_as_meant, table_for_spreadsheets

if TYPE_CHECKING:
    import pandas as pd

MOST_IN_MEMORY = 1 << 30  # bytes of what need not be in memory at once
ZEROS = 1 << 20  # bytes that are written at once
FROM_DVC = "`dvc checkout` gets it back, `dvc repro` makes it anew"


def read(path: str | Path, mapped: bool = False, way_out: str = FROM_DVC) -> Any:
    """Content of an artifact; a missing or damaged file is a UserError that names it.

    An array that is `mapped` stays on disk and may only be read.
    """
    path = Path(path)
    try:
        return np.load(path, mmap_mode="r") if mapped else _READERS[path.suffix](path)
    except (FileNotFoundError, NotADirectoryError):
        problem = "is missing"
    except UserError:
        raise
    except (Exception, MemoryError) as error:  # parsers raise what they like
        problem = f"is damaged or cut off ({reason(error)})"
    raise UserError(f"{path}: {problem}; {way_out}")


@dataclass(frozen=True)
class Blocks:
    """A dense matrix that comes in blocks of rows, so that it need not fit into memory."""

    shape: tuple[int, int]
    blocks: Iterable[Array]  # all of one type


@dataclass(frozen=True)
class Parts:
    """A table that comes in parts, so that it need not fit into memory."""

    tables: "Iterable[pd.DataFrame]"  # at least one, all of the same columns and types


@dataclass(frozen=True)
class Listed:
    """A JSON list whose items come one by one, so that they need not fit into memory."""

    items: Iterable[Any]


def read_matrix(directory: str | Path, name: str) -> Matrix:
    """A matrix that `matrix_file` put into a directory; a dense one stays on disk, mapped."""
    path = Path(directory) / f"{name}.npz"
    if path.exists():
        return unpack(name, read(path))
    return read(path.with_suffix(".npy"), mapped=True)


def scratch(shape: tuple[int, int]) -> Array:
    """Room for a float32 matrix, in memory, or in a file without a name if it is large."""
    size = 4 * shape[0] * shape[1]
    if size <= MOST_IN_MEMORY:
        return np.empty(shape, np.float32)
    with told_if_disk_refuses(Path.cwd()), tempfile.TemporaryFile(dir=".") as file:
        allocate(file, size)
        return np.memmap(file, np.float32, "r+", shape=shape)


def allocate(file: IO[bytes], size: int) -> None:
    """Give an empty file so many zeros, and room for them on the disk; an OSError if it has none.

    Where a file is mapped that has no room yet, a full disk ends the process without a word.
    """
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, size)
        return
    for start in range(0, size, ZEROS):
        file.write(bytes(min(ZEROS, size - start)))
    file.flush()


def matrix_file(name: str, X: Matrix | Blocks) -> dict[str, Any]:
    """File name and content for a matrix: `.npy` if it is dense, `.npz` if it is sparse."""
    return {f"{name}.npz": pack(name, X)} if sparse.issparse(X) else {f"{name}.npy": X}


def read_directory(
    path: str | Path, names: Iterable[str], way_out: str = FROM_DVC
) -> dict[str, Any]:
    """Contents of the named artifacts in a directory."""
    return {name: read(Path(path) / name, way_out=way_out) for name in names}


def write(path: str | Path, content: Any) -> None:
    """Write an artifact whole or not at all; of several writers at once, the last one stays."""
    path = Path(path)
    with told_if_disk_refuses(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporaries.file(path.parent) as unfinished:
            _write_here(unfinished, path.suffix, content)
            unfinished.replace(path)


def write_directory(path: str | Path, contents: Mapping[str, Any]) -> None:
    """Write a directory of artifacts whole or not at all, in place of what was there."""
    with new_directory(path) as place:
        for name, content in contents.items():
            write_part(place, path, name, content)


@contextmanager
def new_directory(path: str | Path) -> Iterator[Path]:
    """A place that becomes the directory if all goes well, and else is gone.

    What was there is replaced at one moment: there is no time without a directory.
    """
    path = Path(path)
    with told_if_disk_refuses(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporaries.directory(path.parent) as place:
            yield place
            temporaries.put_in_place(place, path)


def write_part(place: Path, path: str | Path, name: str, content: Any) -> None:
    """Write one file of a directory that is not in its place yet; messages name that place."""
    target = place / name
    with told_if_disk_refuses(Path(path) / name):
        target.parent.mkdir(parents=True, exist_ok=True)
        _write_here(target, target.suffix, content)


def _write_here(path: Path, kind: str, content: Any) -> None:
    with path.open("wb") as file:
        writer = _copy if isinstance(content, Path) else _WRITERS[kind]
        writer(file, content)
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def told_if_disk_refuses(path: Path) -> Iterator[None]:
    """What is written in this block cannot be: a UserError names the file and the reason."""
    try:
        yield
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror})") from None


def _whole_text(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    if not text.endswith("\n"):
        raise ValueError("no end of line at the end")
    return text


def _read_safetensors(path: Path) -> dict[str, Any]:
    from safetensors.numpy import load_file

    ask(path.stat().st_size, path, "it holds so many weights")
    return load_file(path)


def _read_yaml(path: Path) -> Any:
    from wscpml import yaml_files

    return yaml_files.parsed(_whole_text(path))


def _read_csv(path: Path) -> Any:
    import pandas as pd

    found = pd.read_csv(
        io.StringIO(_whole_text(path)), keep_default_na=False, na_values=[""], dtype={"label": str}
    )
    return table_as_meant(found)


def _read_parquet(path: Path) -> Any:
    import pandas as pd

    return pd.read_parquet(path)


def _write_npy(file: IO[bytes], array: Array | Blocks) -> None:
    if not isinstance(array, Blocks):
        np.save(file, array)
        return
    for number, block in enumerate(array.blocks):
        if number == 0:
            descr = np.lib.format.dtype_to_descr(block.dtype)
            header = {"descr": descr, "fortran_order": False, "shape": array.shape}
            np.lib.format.write_array_header_1_0(file, header)
        file.write(np.ascontiguousarray(block).data)


def _write_csv(file: IO[bytes], table: "pd.DataFrame | Parts") -> None:
    parts = table.tables if isinstance(table, Parts) else [table]
    for number, part in enumerate(parts):
        safe = table_for_spreadsheets(part)
        safe.to_csv(file, index=False, header=number == 0, lineterminator="\n")


def _write_parquet(file: IO[bytes], table: "pd.DataFrame | Parts") -> None:
    if not isinstance(table, Parts):
        table.to_parquet(file, index=False)
        return
    from pyarrow import Table
    from pyarrow.parquet import ParquetWriter

    parts = (Table.from_pandas(part, preserve_index=False) for part in table.tables)
    first = next(parts)
    with ParquetWriter(file, first.schema) as writer:
        for part in chain([first], parts):
            writer.write_table(part)


def _write_json(file: IO[bytes], data: Any) -> None:
    if not isinstance(data, Listed):
        file.write(f"{_as_json(data)}\n".encode())
        return
    before = "["
    for item in data.items:
        indented = _as_json(item).replace("\n", "\n  ")
        file.write(f"{before}\n  {indented}".encode())
        before = ","
    file.write(b"[]\n" if before == "[" else b"\n]\n")


def _as_json(data: Any) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)


def _write_yaml(file: IO[bytes], data: Any) -> None:
    import yaml

    file.write(yaml.safe_dump(data, sort_keys=False).encode())


def _write_safetensors(file: IO[bytes], arrays: Mapping[str, Any]) -> None:
    from safetensors.numpy import save

    file.write(save({name: np.ascontiguousarray(a) for name, a in arrays.items()}))


def _copy(file: IO[bytes], source: Path) -> None:
    with source.open("rb") as content:
        shutil.copyfileobj(content, file)


_READERS: dict[str, Callable[[Path], Any]] = {
    ".npy": npy_files.read,
    ".npz": npy_files.read_all,
    ".safetensors": _read_safetensors,
    ".json": lambda path: parsed_json(_whole_text(path)),
    **dict.fromkeys([".dvc", ".lock", ".yaml"], _read_yaml),
    ".csv": _read_csv,
    ".parquet": _read_parquet,
}

_WRITERS: dict[str, Callable[[IO[bytes], Any], object]] = {
    ".npy": _write_npy,
    ".npz": lambda file, arrays: np.savez(file, **arrays),
    ".safetensors": _write_safetensors,
    ".json": _write_json,
    ".yaml": _write_yaml,
    ".csv": _write_csv,
    ".parquet": _write_parquet,
    ".png": lambda file, figure: figure.savefig(file, format="png", dpi=110),
    **dict.fromkeys((".html", ".md", ".tex", ".xml"), lambda file, text: file.write(text.encode())),
}
