"""Folds side by side through joblib: on the cores here, or on a Dask cluster; the same code."""

import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager

from joblib import Parallel, delayed, parallel_config  # type: ignore[import-untyped]

from experiments import folds
from experiments.folds import Outcome, Task
from wscpml import stopping
from wscpml.errors import UserError

LOST = "a worker was killed, as happens when memory runs out"
SECONDS_TO_ANSWER = 10


def run_cells(
    cells: Sequence[Sequence[Task]], scheduler: str | None
) -> Iterator[tuple[int, list[Outcome]]]:
    """Run all tasks of all cells: a cell's place and its outcomes, as soon as it is complete.

    A Dask cluster runs the tasks of a worker that it loses elsewhere. Should a worker here be
    lost, or one task end worker after worker, then all that is left runs cell by cell, and a
    cell that loses its worker once more has failed.
    """
    left = dict(enumerate(cells))
    with _workers(scheduler) as lost:
        try:
            for place, outcomes in _complete(left):
                yield place, outcomes
                del left[place]
        except lost:
            for place, tasks in left.items():
                try:
                    yield from _complete({place: tasks})
                except lost:
                    yield place, [Outcome(task, error=LOST) for task in tasks]


def _complete(cells: Mapping[int, Sequence[Task]]) -> Iterator[tuple[int, list[Outcome]]]:
    place_of = {task: place for place, tasks in cells.items() for task in tasks}
    under_way: dict[int, list[Outcome]] = {place: [] for place in cells}
    parallel = Parallel(n_jobs=-1, batch_size=1, return_as="generator_unordered")
    with _deaf_to_interrupts():
        outcomes = parallel(delayed(folds.run)(task) for task in place_of)
    for outcome in outcomes:
        place = place_of[outcome.task]
        under_way[place].append(outcome)
        if len(under_way[place]) == len(cells[place]):
            yield place, sorted(under_way.pop(place), key=lambda each: each.task.fold)


def _end_with(parent: int) -> None:
    """What a worker does first: it ends with its parent, which may be gone by now."""
    if os.getppid() != parent:
        os._exit(1)
    stopping.end_with_parent()


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Start workers that Ctrl-C says nothing to, in whose way it comes too: they are ended."""
    if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _workers(scheduler: str | None) -> Iterator[type[Exception]]:
    """Workers of one thread each; gives the exception that tells of one that was lost."""
    if scheduler is None:
        here = parallel_config(
            "loky", inner_max_num_threads=1, initializer=_end_with, initargs=(os.getpid(),)
        )
        with here, warnings.catch_warnings():
            # loky replaces a worker that keeps memory between tasks, which is no one's concern
            warnings.filterwarnings("ignore", "A worker stopped", UserWarning)
            yield BrokenExecutor
        return
    try:
        from distributed import Client, KilledWorker
    except ImportError:
        raise UserError(
            "experiments/params.yaml: scheduler: needs the package distributed; install it, or "
            "set scheduler to null"
        ) from None
    try:
        client = Client(scheduler, timeout=SECONDS_TO_ANSWER)
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(
            f"experiments/params.yaml: scheduler: no Dask scheduler answers at {scheduler} "
            f"({reason}); start one, or set scheduler to null"
        ) from None
    with client, parallel_config("dask", client=client):
        yield KilledWorker
