"""The one module that reads and writes artifacts: whole files, same bytes for same content.

The ending of a path says what it holds: `.npy` one array, `.npz` and `.safetensors` named arrays,
`.json` and DVC's `.lock` plain data, `.csv` and `.parquet` a table, `.png` a figure. Content
that is a path is a file to copy. Nothing here unpickles.
"""

import io
import json
import os
import shutil
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from scipy import sparse

from wscpml.arrays import Matrix, pack, unpack
from wscpml.errors import UserError


def read(path: str | Path) -> Any:
    """Content of an artifact; a missing or damaged file is a UserError that names it."""
    from safetensors import SafetensorError

    path = Path(path)
    try:
        return _READERS[path.suffix](path)
    except FileNotFoundError:
        reason = "is missing"
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, SafetensorError) as error:
        reason = f"is damaged or cut off ({str(error).partition(chr(10))[0]})"
    raise UserError(f"{path}: {reason}; `dvc checkout` gets it back, `dvc repro` makes it anew")


def read_matrix(directory: str | Path, name: str) -> Matrix:
    """A matrix that `matrix_file` put into a directory."""
    path = Path(directory) / f"{name}.npz"
    return unpack(name, read(path)) if path.exists() else read(path.with_suffix(".npy"))


def matrix_file(name: str, X: Matrix) -> dict[str, Any]:
    """File name and content for a matrix: `.npy` if it is dense, `.npz` if it is sparse."""
    return {f"{name}.npz": pack(name, X)} if sparse.issparse(X) else {f"{name}.npy": X}


def read_directory(path: str | Path, names: Iterable[str]) -> dict[str, Any]:
    """Contents of the named artifacts in a directory."""
    return {name: read(Path(path) / name) for name in names}


def write(path: str | Path, content: Any) -> None:
    """Write an artifact whole or not at all."""
    path = Path(path)
    unfinished = path.with_name(path.name + ".tmp")
    with _told_if_disk_refuses(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with unfinished.open("wb") as file:
                writer = _copy if isinstance(content, Path) else _WRITERS[path.suffix]
                writer(file, content)
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)


def write_directory(path: str | Path, contents: Mapping[str, Any]) -> None:
    """Write a directory of artifacts whole or not at all, in place of what was there."""
    path = Path(path)
    unfinished = path.with_name(path.name + ".tmp")
    shutil.rmtree(unfinished, ignore_errors=True)
    try:
        for name, content in contents.items():
            write(unfinished / name, content)
        with _told_if_disk_refuses(path):
            shutil.rmtree(path, ignore_errors=True)
            unfinished.replace(path)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


@contextmanager
def _told_if_disk_refuses(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror})") from None


def _whole_text(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    if not text.endswith("\n"):
        raise ValueError("no end of line at the end")
    return text


def _read_npz(path: Path) -> dict[str, Any]:
    with path.open("rb") as file, np.load(file) as arrays:
        return dict(arrays)


def _read_safetensors(path: Path) -> dict[str, Any]:
    from safetensors.numpy import load_file

    return load_file(path)


def _read_yaml(path: Path) -> Any:
    import yaml

    try:
        return yaml.safe_load(_whole_text(path))
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None


def _read_csv(path: Path) -> Any:
    import pandas as pd

    return pd.read_csv(
        io.StringIO(_whole_text(path)), keep_default_na=False, na_values=[""], dtype={"label": str}
    )


def _read_parquet(path: Path) -> Any:
    import pandas as pd

    return pd.read_parquet(path)


def _write_safetensors(file: IO[bytes], arrays: Mapping[str, Any]) -> None:
    from safetensors.numpy import save

    file.write(save({name: np.ascontiguousarray(a) for name, a in arrays.items()}))


def _copy(file: IO[bytes], source: Path) -> None:
    with source.open("rb") as content:
        shutil.copyfileobj(content, file)


_READERS: dict[str, Callable[[Path], Any]] = {
    ".npy": lambda path: np.load(path),
    ".npz": _read_npz,
    ".safetensors": _read_safetensors,
    ".json": lambda path: json.loads(_whole_text(path)),
    ".lock": _read_yaml,
    ".csv": _read_csv,
    ".parquet": _read_parquet,
}

_WRITERS: dict[str, Callable[[IO[bytes], Any], object]] = {
    ".npy": lambda file, array: np.save(file, array),
    ".npz": lambda file, arrays: np.savez(file, **arrays),
    ".safetensors": _write_safetensors,
    ".json": lambda file, data: file.write(
        (json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()
    ),
    ".csv": lambda file, table: table.to_csv(file, index=False, lineterminator="\n"),
    ".parquet": lambda file, table: table.to_parquet(file, index=False),
    ".png": lambda file, figure: figure.savefig(file, format="png", dpi=110),
}
