"""Work on blocks of rows, on the threads of this machine or on a Dask cluster, with the same bytes.

A piece of work is a function of a block, which is a slice of rows. What it gives comes in the order
of the blocks, and the blocks do not depend on memory or workers: so neither do sums over them. What
is large is `shared`: an array in memory here, a file that is known by its path on a cluster, where
only the function itself and what it gives travel.

With a `checkpoint`, a directory, what blocks write is in files there, and so is a checksum of each
that is done: the same work on the same inputs goes on from there.
"""

import hashlib
import mmap
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields, is_dataclass, replace
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol, TypeVar

import numpy as np
from scipy import sparse

from wscpml import artifacts
from wscpml.arrays import Array, row_blocks
from wscpml.devices import cores, one_blas_thread
from wscpml.errors import UserError
from wscpml.memory import free, parsed, told

AUTO = "auto"
SHARE = 0.5  # of the memory that is free, which blocks may take where nobody says how much
SECONDS = 2  # that a pass may take without a word
WAIT = 30  # seconds for a scheduler to answer
ROWS_AT_ONCE = 10_000  # of inputs, whose digest is made

T = TypeVar("T")


class Writing(Protocol):
    """Work that writes what it finds of a block to rooms."""

    def __call__(self, block: slice) -> object:
        """Do it."""
        ...

    def written(self, block: slice) -> Iterable[Array]:
        """What it has written of a block."""
        ...


def budget(memory: str | float) -> int | None:
    """What `parsed` says of an amount of memory; None, a share of what is free, for `auto`."""
    if memory == AUTO:
        return None
    try:
        return parsed(memory)
    except ValueError as error:
        raise ValueError(f"{error}, or {AUTO}") from None


class OnDisk:
    """An array in a file, which is opened where it is used: what is sent of it is its path."""

    def __init__(
        self, path: str | Path, shape: tuple[int, ...], dtype: Any, offset: int = 0, mode: str = "r"
    ) -> None:
        self.path, self.shape, self.dtype = str(Path(path).absolute()), shape, np.dtype(dtype)
        self.offset, self.mode = offset, mode
        self._open: Array | None = None

    @property
    def array(self) -> Array:
        """The array, mapped into memory."""
        if self._open is None:
            try:
                self._open = np.memmap(self.path, self.dtype, self.mode, self.offset, self.shape)  # type: ignore[call-overload]
            except OSError as error:
                raise UserError(
                    f"{self.path}: cannot be read here ({error.strerror}); every worker must see "
                    "the file under the same path"
                ) from None
        return self._open

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Array:
        return self.array[rows]

    def __setitem__(self, rows: Any, values: Any) -> None:
        self.array[rows] = values

    def flush(self) -> None:
        """Put what was written on the disk."""
        self.array.flush()  # type: ignore[attr-defined]

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_open": None}


@dataclass(frozen=True)
class SparseRows:
    """Rows of a sparse matrix whose parts may be on disk."""

    starts: Any  # (n + 1,)
    columns: Any
    values: Any
    width: int

    def __getitem__(self, rows: Any) -> sparse.csr_array:
        chosen = np.arange(len(self.starts) - 1)[rows]
        counts = self.starts[chosen + 1] - self.starts[chosen]
        ends = np.append(0, np.cumsum(counts))
        place = np.arange(ends[-1]) + np.repeat(self.starts[chosen] - ends[:-1], counts)
        parts = self.values[place], self.columns[place], ends
        return sparse.csr_array(parts, shape=(len(chosen), self.width))


@dataclass(frozen=True)
class Engine:
    """Where blocks are worked on, and how much memory they may take together."""

    memory: int | None = None  # bytes; None: a share of what is free
    client: Any = None  # of a Dask cluster; None: threads of this machine
    directory: Path | None = None  # of `room`s, that all workers of the cluster see; None: memory
    shown: bool = False  # whether a bar tells how far a pass is, and how long it will take
    checkpoint: Path | None = None  # directory of what the same inputs have given before
    resumed: bool = False  # whether rooms are as a run before has left them
    rooms: list[OnDisk] = field(default_factory=list)  # that are in the directory

    def over(
        self, work: Callable[[slice], T], blocks: Sequence[slice], need: int, what: str
    ) -> Iterator[T]:
        """What some work gives for each block, in their order; a block takes so many bytes.

        On a cluster the work has to be picklable, as a dataclass with `__call__` is.
        """
        from tqdm import tqdm

        workers = self._workers(need, what)
        if self.client is None:
            results = _on_threads(work, blocks, min(workers, len(blocks)))
        else:
            results = _on_cluster(self.client, work, blocks)
        quiet = not self.shown
        with tqdm(None, what, len(blocks), disable=quiet, leave=False, delay=SECONDS) as bar:
            for block in blocks:
                try:
                    found = next(results)
                except UserError as error:
                    raise UserError(_failed(what, block, error)) from None
                except Exception as error:
                    raise BlockError(_failed(what, block, error)) from error
                bar.update()
                yield found

    def each(self, work: Writing, blocks: Sequence[slice], need: int, what: str) -> None:
        """Do some work on every block, which writes what it finds to a `room`.

        What a run before has done is not done again, unless it is damaged.
        """
        if not self.resumed:
            for _ in self.over(work, blocks, need, what):
                pass
            return
        sums = self.room((len(blocks),), np.uint32)
        left = [
            k
            for k, known in enumerate(sums[:])
            if not known or known != checksum(work.written(blocks[k]))
        ]
        done, told = dict[int, int](), time.monotonic()
        results = self.over(work, [blocks[k] for k in left], need, what)
        try:
            for k, _ in zip(left, results, strict=True):
                done[k] = checksum(work.written(blocks[k]))
                if time.monotonic() > told + SECONDS:
                    self._note(sums, done)
                    told = time.monotonic()
        finally:
            self._note(sums, done)

    def _note(self, sums: OnDisk, done: dict[int, int]) -> None:
        """Keep the checksums of blocks, once what they have written is on the disk."""
        for room in self.rooms:
            room.flush()
        while done:
            k, found = done.popitem()
            sums[k] = found
        sums.flush()

    def of(self, what: str, *inputs: Any) -> "Engine":
        """The same for work on some inputs; with a checkpoint rooms are kept by their digest."""
        if self.checkpoint is None:
            return self
        place = self.checkpoint / f"{what}-{digest(*inputs)}"
        with artifacts.told_if_disk_refuses(place):
            place.mkdir(parents=True, exist_ok=True)
        return replace(self, directory=place, resumed=True, rooms=[])

    def once(
        self, what: str, make: Callable[[], dict[str, Array]], *inputs: Any
    ) -> dict[str, Array]:
        """What is made of some inputs; with a checkpoint it is made once, unless it is damaged."""
        if self.checkpoint is None:
            return make()
        path = self.checkpoint / f"{what}-{digest(*inputs)}.npz"
        with suppress(UserError):
            kept: dict[str, Array] = artifacts.read(path)
            return kept
        artifacts.write(path, make())
        found: dict[str, Array] = artifacts.read(path)
        return found

    def _workers(self, need: int, what: str) -> int:
        allowed = int(SHARE * free()) if self.memory is None else self.memory
        if self.memory is not None and allowed < need:
            raise UserError(
                f"memory: {told(allowed)} is too little for {what}: one block of rows takes "
                f"{told(need)}"
            )
        return max(1, min(cores(), allowed // need))

    def shared(self, array: Any) -> Any:
        """A matrix for work to read rows of: on a cluster in files, else as it is."""
        if self.client is not None and sparse.issparse(array):
            starts, columns, values = map(self.shared, (array.indptr, array.indices, array.data))
            return SparseRows(starts, columns, values, array.shape[1])
        if self.client is None or not isinstance(array, np.ndarray):
            return array
        whole: Any = array.base
        if isinstance(array, np.memmap) and isinstance(whole, mmap.mmap):
            return OnDisk(str(array.filename), array.shape, array.dtype, array.offset)
        room = self.room(array.shape, array.dtype)
        room[:] = array
        return OnDisk(room.path, array.shape, array.dtype)

    def room(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """An array for work to write to, each block to places of its own."""
        if self.directory is None:
            return np.zeros(shape, dtype)
        path = self.directory / f"{len(self.rooms)}.bin"
        size = max(int(np.prod(shape)) * np.dtype(dtype).itemsize, 1)
        if not (self.resumed and path.exists() and path.stat().st_size == size):
            with artifacts.told_if_disk_refuses(path), path.open("wb") as file:
                artifacts.allocate(file, size)
        self.rooms.append(OnDisk(path, shape, dtype, mode="r+"))
        return self.rooms[-1]


def checksum(parts: Iterable[Array]) -> int:
    """What tells arrays from damaged ones; never 0."""
    found = 1
    for part in parts:
        found = zlib.crc32(np.ascontiguousarray(part).data, found)
    return found or 1


def digest(*values: Any) -> str:
    """What equal values have in common, of this version of ours.

    They are arrays, dense or sparse, in memory or not; dataclasses of such; or plain.
    """
    found = hashlib.sha256(_version().encode())
    for value in values:
        _take(value, found.update)
    return found.hexdigest()[:16]


def _take(value: Any, update: Callable[[Any], None]) -> None:
    if sparse.issparse(value):
        value = value.shape, value.data, value.indices, value.indptr
    if is_dataclass(value):
        value = [getattr(value, each.name) for each in fields(value)]
    if isinstance(value, list | tuple):
        for each in value:
            _take(each, update)
    elif hasattr(value, "shape"):
        update(f"{value.shape}".encode())
        for rows in row_blocks(value.shape[0], ROWS_AT_ONCE) if value.shape else [()]:
            part = np.ascontiguousarray(value[rows])
            update(part.dtype.str.encode())
            update(part.data)
    else:
        update(repr(value).encode())


class BlockError(RuntimeError):
    """A block failed, for no fault of the user's; the error says which rows it has."""


def _failed(what: str, block: slice, error: Exception) -> str:
    said = str(error).partition("\n")[0]
    reason = said if isinstance(error, UserError) else f"{type(error).__name__}: {said}"
    return f"{what}: rows {block.start} to {block.stop - 1}: {reason}"


def _on_threads(work: Callable[[slice], T], blocks: Sequence[slice], workers: int) -> Iterator[T]:
    if workers <= 1:
        yield from map(work, blocks)
        return
    pool = ThreadPoolExecutor(workers)
    try:
        yield from pool.map(work, blocks)
    finally:
        pool.shutdown(cancel_futures=True)


def _on_cluster(client: Any, work: Callable[[slice], T], blocks: Sequence[slice]) -> Iterator[T]:
    """Every worker gets the work once; blocks of one that dies are done by another."""
    from distributed import CancelledError, KilledWorker
    from distributed.client import ClosedClientError
    from distributed.comm.core import CommClosedError

    try:
        sent = client.scatter(work, broadcast=True, hash=False)
        futures = [client.submit(_done, sent, block, pure=False) for block in blocks]
        for future in futures:
            yield future.result()
            future.release()
    except KilledWorker:
        raise UserError(
            "a block of rows killed every worker it was given to: they may have too little memory"
        ) from None
    except (CancelledError, ClosedClientError, CommClosedError, TimeoutError, OSError):
        where = getattr(client.scheduler, "address", "")
        raise UserError(f"scheduler {where}: does not answer any more; start it anew") from None


def _done(work: Callable[[slice], T], block: slice) -> T:
    with one_blas_thread():
        return work(block)


@contextmanager
def engine(
    memory: str | float = AUTO,
    scheduler: str | None = None,
    shown: bool = False,
    checkpoint: str | Path | None = None,
) -> Iterator[Engine]:
    """An engine for a while: on the cluster of a scheduler's address, or of the `Client` in use."""
    client, ours = _client(scheduler)
    kept = None if checkpoint is None else Path(checkpoint).absolute()
    if client is None:
        yield Engine(budget(memory), shown=shown, checkpoint=kept)
        return
    try:
        _refuse_other_versions(client)
        with TemporaryDirectory(prefix=".wscpml-", dir=".") as directory:
            yield Engine(budget(memory), client, Path(directory).absolute(), shown, kept)
    finally:
        if ours:
            client.close()


def _client(scheduler: str | None) -> tuple[Any, bool]:
    """A client of Dask, if one is asked for or in use, and whether it is ours to close."""
    if scheduler is None:
        if "distributed" not in sys.modules:
            return None, False
        from distributed import default_client

        try:
            return default_client(), False
        except ValueError:
            return None, False
    try:
        from distributed import Client
    except ImportError:
        raise UserError(
            "scheduler: needs the package distributed; pip install 'wscpml[cluster]'"
        ) from None
    try:
        return Client(scheduler, timeout=WAIT, set_as_default=False), True
    except (OSError, TimeoutError, ValueError):
        raise UserError(
            f"scheduler {scheduler}: does not answer; start `dask scheduler` and its workers"
        ) from None


def _refuse_other_versions(client: Any) -> None:
    """Workers of another version would give other bytes, or fail."""
    ours, found = _version(), client.run(_version)
    if not found:
        raise UserError("scheduler: has no workers; start some with `dask worker`")
    for worker, theirs in found.items():
        if theirs != ours:
            raise UserError(f"worker {worker}: has wscpml {theirs}, and here is {ours}; update it")


def _version() -> str:
    return version("wscpml")
