"""Vectors of texts, images or anything else, by any function: in batches, and each once."""

from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from wscpml import artifacts
from wscpml.arrays import Array, row_blocks
from wscpml.errors import UserError
from wscpml.progress import SECONDS

WAY_OUT = "delete it, and its vectors are made anew"


def embed(
    rows: Sequence[Any],
    function: Callable[[list[Any]], Any],
    name: str,
    cache: str | Path = "embeddings",
    batch_size: int = 64,
    verbose: bool = True,
) -> Array:
    """A vector for each row, float32 ``(n, d)``.

    Parameters
    ----------
    rows : sequence of n
        Texts, paths of files, bytes or arrays. Rows with the same content share a vector; that of
        a path is the file's. Nothing, None or NaN, counts as an empty text.
    function : callable
        Takes a list of at most `batch_size` rows, gives their vectors, ``(b, d)``.
    name : str
        What the function is: vectors of another name are not taken for its own.
    cache : path
        Directory that vectors are kept in, each batch as soon as it is there: what is stopped goes
        on where it was.
    verbose : bool
        Whether to show how far it is.
    """
    from tqdm import tqdm

    cells = ["" if _is_nothing(row) else row for row in rows]
    keys = [_key(row, i) for i, row in enumerate(cells)]
    directory = Path(cache) / sha256(name.encode()).hexdigest()[:16]
    known = _stored(directory)
    new = {key: row for key, row in zip(keys, cells, strict=True) if key not in known}
    bar = tqdm(total=len(new), desc=name, disable=not verbose, leave=False, delay=SECONDS)
    with bar:
        for block in row_blocks(len(new), batch_size):
            wanted = list(new)[block]
            vectors = _checked(function([new[key] for key in wanted]), len(wanted), known)
            _store(directory, wanted, vectors)
            known |= dict(zip(wanted, vectors, strict=True))
            bar.update(len(wanted))
    return np.stack([known[key] for key in keys]) if keys else np.empty((0, 0), np.float32)


def _is_nothing(row: Any) -> bool:
    return row is None or isinstance(row, float) and np.isnan(row)


def _key(row: Any, i: int) -> str:
    """A hash of a row's content, and of its kind."""
    if isinstance(row, str):
        kind, content = "text", row.encode()
    elif isinstance(row, Path):
        try:
            kind, content = "file", row.read_bytes()
        except OSError as error:
            raise UserError(f"{row}: cannot be read ({error.strerror})") from None
    elif isinstance(row, bytes):
        kind, content = "bytes", row
    elif isinstance(row, np.ndarray) and row.dtype.kind in "biuf":
        kind, content = f"array {row.dtype.str} {row.shape}", np.ascontiguousarray(row).tobytes()
    else:
        raise UserError(
            f"rows: number {i + 1} is of type {type(row).__name__}; take texts, paths, bytes or "
            "arrays of numbers"
        )
    return sha256(f"{kind}\n".encode() + content).hexdigest()


def _checked(found: Any, count: int, known: dict[str, Array]) -> Array:
    """What the function gave, if it is a vector of numbers for each row, as long as the others."""
    try:
        vectors = np.asarray(found, np.float32)
    except (TypeError, ValueError):
        raise UserError("function: gave no vectors of numbers of one length") from None
    if vectors.ndim != 2 or len(vectors) != count:
        raise UserError(f"function: gave the shape {vectors.shape} for {count} rows, not (rows, d)")
    if not np.isfinite(vectors).all():
        raise UserError("function: gave a vector with a value that is not a finite number")
    size = next((len(each) for each in known.values()), vectors.shape[1])
    if vectors.shape[1] != size:
        raise UserError(
            f"name: vectors of that name have {size} numbers, the function gave "
            f"{vectors.shape[1]}; is it another function? give it another name"
        )
    return vectors


def _stored(directory: Path) -> dict[str, Array]:
    """Vectors of earlier calls, by the hashes of their rows."""
    known: dict[str, Array] = {}
    for file in sorted(directory.glob("*.npy")):
        vectors = artifacts.read(file, way_out=WAY_OUT)
        keys = artifacts.read(file.with_suffix(".json"), way_out=WAY_OUT)
        if not isinstance(keys, list) or vectors.ndim != 2 or len(keys) != len(vectors):
            raise UserError(f"{file}: its vectors and its .json do not fit; {WAY_OUT}")
        known |= dict(zip(keys, vectors, strict=True))
    return known


def _store(directory: Path, keys: list[str], vectors: Array) -> None:
    """Write a batch; the vectors come last, so that what is there is whole."""
    file = directory / sha256("".join(keys).encode()).hexdigest()[:32]
    artifacts.write(file.with_suffix(".json"), keys)
    artifacts.write(file.with_suffix(".npy"), vectors)
