"""MATLAB's files of version 5 to 7: their matrices of numbers, read without compiled code.

Every length is checked against what there is, so a file that is none cannot do more than be
refused. What is wrong with it is a ValueError, or what zlib and NumPy raise.
"""

import zlib
from collections.abc import Iterator
from math import prod
from pathlib import Path

import numpy as np

from wscpml.arrays import Array, Matrix, compressed
from wscpml.errors import UserError
from wscpml.limits import ask, ask_for_columns

HEADER = 128  # bytes
MATRIX, COMPRESSED = 14, 15  # types of elements
NUMBERS = {
    1: "i1",
    2: "u1",
    3: "i2",
    4: "u2",
    5: "i4",
    6: "u4",
    7: "f4",
    9: "f8",
    12: "i8",
    13: "u8",
}
SPARSE, FIRST_DENSE, LAST_DENSE = 5, 6, 15  # classes of arrays; the others hold no numbers
COMPLEX = 0x0800  # among an array's flags
MOST_VARIABLES = 1000


def read(path: Path) -> dict[str, Matrix | None]:
    """The variables of a file by name: matrices, CSR where sparse; None for what is no numbers."""
    content = memoryview(path.read_bytes())
    if len(content) < HEADER or bytes(content[126:128]) not in (b"IM", b"MI"):
        raise ValueError("it is not MATLAB 5 to 7")
    order = "<" if bytes(content[126:128]) == b"IM" else ">"
    if int(np.frombuffer(content[124:126], f"{order}u2")[0]) >> 8 == 2:
        raise UserError(f"{path}: is MATLAB v7.3; save it with `-v7` in MATLAB")
    found: dict[str, Matrix | None] = {}
    for kind, part in _elements(content[HEADER:], order, padded=False):
        if kind == COMPRESSED:
            kind, part = _unpacked(part, order, path)
        if kind == MATRIX:
            name, matrix = _variable(part, order, path)
            found[name] = matrix
        if len(found) > MOST_VARIABLES:
            raise ValueError(f"it has more than {MOST_VARIABLES} variables")
    return found


def _elements(
    content: memoryview, order: str, padded: bool = True
) -> Iterator[tuple[int, memoryview]]:
    """Types and contents of the elements one after another; within a matrix they are padded."""
    start = 0
    while start < len(content):
        if start + 8 > len(content):
            raise ValueError("it breaks off")
        kind, size = np.frombuffer(content[start : start + 8], f"{order}u4").tolist()
        if kind >> 16:  # a short element, within its tag
            kind, size, begin, end = kind & 0xFFFF, kind >> 16, start + 4, start + 8
        else:
            begin = start + 8
            end = begin + (-(-size // 8) * 8 if padded and kind != COMPRESSED else size)
        if begin + size > len(content):
            raise ValueError("it breaks off")
        yield kind, content[begin : begin + size]
        start = end


def _unpacked(packed: memoryview, order: str, path: Path) -> tuple[int, memoryview]:
    """The one element in what is compressed."""
    unpacker = zlib.decompressobj()
    tag = unpacker.decompress(packed, 8)
    if len(tag) < 8:
        raise ValueError("it breaks off")
    kind, size = np.frombuffer(tag, f"{order}u4").tolist()
    ask(size, path, f"it unpacks to {size:,} bytes")
    content = unpacker.decompress(unpacker.unconsumed_tail, max(size, 1))[:size]
    if len(content) < size:
        raise ValueError("it breaks off")
    return kind, memoryview(content)


def _variable(content: memoryview, order: str, path: Path) -> tuple[str, Matrix | None]:
    parts = _elements(content, order)
    flags = _numbers(next(parts, None), order)
    shape = _numbers(next(parts, None), order).tolist()
    _, name = next(parts, (0, memoryview(b"")))
    called = bytes(name).decode("ascii", "replace")
    if not len(flags) or not all(isinstance(side, int) and side >= 0 for side in shape):
        raise ValueError(f"its variable {called!r} has no shape")
    kind, is_complex = int(flags[0]) & 0xFF, bool(int(flags[0]) & COMPLEX)
    if is_complex or not (kind == SPARSE or FIRST_DENSE <= kind <= LAST_DENSE):
        return called, None
    if kind == SPARSE:
        ask_for_columns(max(shape, default=0), path)
        indices, indptr, data = (_numbers(next(parts, None), order) for _ in range(3))
        used = int(indptr[-1]) if len(indptr) else 0  # there may be room for more
        return called, compressed(data[:used], indices[:used], indptr, shape, by_columns=True)
    values = _numbers(next(parts, None), order)
    if prod(shape) != len(values):
        raise ValueError(f"its variable {called!r} has {len(values)} values for the shape {shape}")
    return called, values.reshape(shape, order="F")


def _numbers(element: tuple[int, memoryview] | None, order: str) -> Array:
    if element is None or element[0] not in NUMBERS:
        raise ValueError("it has no numbers where some should be")
    kind, content = element
    found = np.frombuffer(content, f"{order}{NUMBERS[kind]}")
    return found.astype(found.dtype.newbyteorder("="))
