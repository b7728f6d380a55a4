"""NumPy's files, .npy and .npz: nothing is unpickled, and no array made that the file cannot fill.

What is wrong with a file is a ValueError, or whatever NumPy and zipfile raise.
"""

import zipfile
from math import prod
from pathlib import Path
from typing import IO

import numpy as np
from numpy.lib import format as npy

from wscpml.arrays import Array
from wscpml.limits import ask

HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


def read(path: Path) -> Array:
    """The array of a .npy file."""
    with path.open("rb") as file:
        return _array(file, path.stat().st_size, path)


def read_all(path: Path) -> dict[str, Array]:
    """The arrays of a .npz file by their names."""
    with zipfile.ZipFile(path) as packed:
        entries = packed.infolist()
        size = sum(entry.file_size for entry in entries)
        ask(size, path, f"it unpacks to {size:,} bytes")
        found = {}
        for entry in entries:
            with packed.open(entry) as file:
                found[entry.filename.removesuffix(".npy")] = _array(file, entry.file_size, path)
    return found


def _array(file: IO[bytes], size: int, path: Path) -> Array:
    """The array that a stream of so many bytes holds."""
    version = npy.read_magic(file)
    if version not in HEADERS:
        raise ValueError(f"its version {version} is not known")
    shape, fortran, dtype = HEADERS[version](file)
    if dtype.hasobject:
        raise ValueError("it holds pickled objects, and allow_pickle=False")
    wanted = prod(shape) * dtype.itemsize
    if min(shape, default=1) < 0 or wanted > size - file.tell() or not dtype.itemsize:
        raise ValueError(f"its shape {shape} is not that of its content")
    ask(wanted, path, f"it holds an array of shape {shape}")
    flat = np.empty(prod(shape), dtype)
    if file.readinto(flat.view(np.uint8)) != wanted:  # type: ignore[attr-defined]
        raise ValueError("it breaks off")
    return flat.reshape(shape, order="F" if fortran else "C")
