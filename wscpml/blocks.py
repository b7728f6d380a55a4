"""Work on blocks of rows, on the threads of this machine or on a Dask cluster, with the same bytes.

A piece of work is a function of a block, which is a slice of rows. What it gives comes in the order
of the blocks, and the blocks do not depend on memory or workers: so neither do sums over them. What
is large is `shared`: an array in memory here, a file that is known by its path on a cluster, where
only the function itself and what it gives travel.
"""

import mmap
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import numpy as np

from wscpml.arrays import Array
from wscpml.devices import cores, one_blas_thread
from wscpml.errors import UserError
from wscpml.memory import free, parsed, told

AUTO = "auto"
SHARE = 0.5  # of the memory that is free, which blocks may take where nobody says how much
SECONDS = 2  # that a pass may take without a word
WAIT = 30  # seconds for a scheduler to answer

T = TypeVar("T")


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

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_open": None}


@dataclass(frozen=True)
class Engine:
    """Where blocks are worked on, and how much memory they may take together."""

    memory: int | None = None  # bytes; None: a share of what is free
    client: Any = None  # of a Dask cluster; None: threads of this machine
    directory: Path | None = None  # that all workers of the cluster see
    shown: bool = False  # whether a bar tells how far a pass is, and how long it will take

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

    def each(
        self, work: Callable[[slice], object], blocks: Sequence[slice], need: int, what: str
    ) -> None:
        """Do some work on every block, which writes what it finds to a `room`."""
        for _ in self.over(work, blocks, need, what):
            pass

    def _workers(self, need: int, what: str) -> int:
        allowed = int(SHARE * free()) if self.memory is None else self.memory
        if self.memory is not None and allowed < need:
            raise UserError(
                f"memory: {told(allowed)} is too little for {what}: one block of rows takes "
                f"{told(need)}"
            )
        return max(1, min(cores(), allowed // need))

    def shared(self, array: Any) -> Any:
        """An array for work to read: a file of the cluster's if there is one, else as it is."""
        if self.directory is None or not isinstance(array, np.ndarray):
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
        path = self.directory / f"{len(list(self.directory.iterdir()))}.bin"
        try:
            with path.open("wb") as file:
                size = int(np.prod(shape)) * np.dtype(dtype).itemsize
                os.posix_fallocate(file.fileno(), 0, max(size, 1))
        except OSError as error:
            raise UserError(f"{path}: cannot be written ({error.strerror})") from None
        return OnDisk(path, shape, dtype, mode="r+")


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
    except (CancelledError, CommClosedError, TimeoutError, OSError):
        where = getattr(client.scheduler, "address", "")
        raise UserError(f"scheduler {where}: does not answer any more; start it anew") from None


def _done(work: Callable[[slice], T], block: slice) -> T:
    with one_blas_thread():
        return work(block)


@contextmanager
def engine(
    memory: str | float = AUTO, scheduler: str | None = None, shown: bool = False
) -> Iterator[Engine]:
    """An engine for a while: on the cluster of a scheduler's address, or of the `Client` in use."""
    client, ours = _client(scheduler)
    if client is None:
        yield Engine(budget(memory), shown=shown)
        return
    try:
        _refuse_other_versions(client)
        with TemporaryDirectory(prefix=".wscpml-", dir=".") as directory:
            yield Engine(budget(memory), client, Path(directory).absolute(), shown)
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
    from importlib.metadata import version

    return version("wscpml")
