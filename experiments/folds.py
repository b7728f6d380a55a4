"""One fold of a cell: what a worker does, and all that a cell's figures depend on."""

import sys
import time
import traceback
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import torch  # noqa: F401 - imported late, it would count as memory of the method that needs it

from wscpml.arrays import Array
from wscpml.datasets import benchmarks
from wscpml.devices import one_blas_thread
from wscpml.errors import UserError
from wscpml.evaluation import memory, metrics
from wscpml.methods import method
from wscpml.methods.base import Scored


@dataclass(frozen=True)
class Task:
    """A method on one fold of a benchmark."""

    benchmark: str
    method: str
    seed: int
    folds: int  # that the rows are dealt into
    fold: int  # that is held out


@dataclass(frozen=True)
class Outcome:
    """What came of it: a run for each setting of the parameters, or an error."""

    task: Task
    runs: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0
    peak_memory: int | None = None  # bytes beyond imports and data; None where it cannot be told
    error: str | None = None


def run(task: Task) -> Outcome:
    """Fit and measure; whatever goes wrong is an outcome too."""
    try:
        with one_blas_thread():  # workers are as many as there are cores
            return _run(task)
    except UserError as mistake:
        return Outcome(task, error=str(mistake))
    except Exception as error:
        traceback.print_exc(file=sys.stderr)
        reason = " ".join(str(error).split())
        return Outcome(task, error=f"{type(error).__name__}: {reason}")


def _run(task: Task) -> Outcome:
    given = load(task.benchmark, task.seed, task.folds)
    kind, test = method(task.method), given.fold == task.fold
    labels = given.truth if kind.NEEDS_TRUTH else given.candidates
    on_linux = sys.platform == "linux"
    before = memory.forget_peak() if on_linux else 0
    start = time.perf_counter()
    estimator = kind(random_state=task.seed)
    scored = estimator.score_grid(given.X[~test], labels[~test], given.X[test])
    runs = [
        {
            "fold": task.fold,
            "settings": each.settings,
            "metrics": measure(given.truth[test], each),
            "criterion": each.criterion,
        }
        for each in scored
    ]
    seconds = time.perf_counter() - start
    for each in runs:
        each["seconds"] = seconds / len(runs)
    return Outcome(task, runs, seconds, memory.peak() - before if on_linux else None)


@lru_cache(maxsize=1)
def load(benchmark: str, seed: int, folds: int) -> benchmarks.Benchmark:
    """The benchmark, which stays in memory until another is asked for."""
    return benchmarks.load(benchmark, seed, folds)


def measure(truth: Array, scored: Scored) -> dict[str, float | None]:
    """The five metrics; Hamming loss is that of the method's own rule for labels."""
    return metrics.evaluate(truth, scored.probabilities, scored.labels)
