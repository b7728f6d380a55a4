"""The paper's benchmarks: data sets with candidates and folds."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from wscpml.arrays import Array, Matrix, compact
from wscpml.datasets.noise import pad_candidates
from wscpml.datasets.registry import BENCHMARKS, REGISTRY
from wscpml.evaluation import metrics
from wscpml.randomness import stream


@dataclass(frozen=True)
class Benchmark:
    """A data set with candidates, and the fold of each row."""

    X: Matrix  # (n, d)
    truth: Array  # (n, q)
    candidates: Array  # (n, q)
    fold: Array  # (n,)


def load(name: str, seed: int, folds: int = 10) -> Benchmark:
    """A benchmark such as birds-4, or a set with candidates; noise and folds as the pipeline's."""
    dataset, r = BENCHMARKS.get(name, (name, 0))
    data = REGISTRY[dataset].load()
    assert data.truth is not None
    candidates = data.candidates
    if candidates is None:
        candidates = pad_candidates(data.truth, r, stream(seed, "noise"))
    fold = stream(seed, "split").permutation(np.arange(len(data.truth)) % folds)
    return Benchmark(compact(data.features), data.truth, candidates, fold)


def missing(name: str) -> str | None:
    """What to do about a benchmark whose files are not here."""
    dataset = BENCHMARKS.get(name, (name, 0))[0]
    if REGISTRY[dataset].availability() in ("here", "built in"):
        return None
    return f"not measured: set WSCPML_DATA, or `wscpml fetch {dataset}`"


def available(names: Iterable[str]) -> Iterator[str]:
    """The benchmarks whose files are here; says which are not."""
    for name in names:
        if reason := missing(name):
            print(f"{name:14}{reason}")
        else:
            yield name


def precision(truth: Array, scores: Array) -> float | None:
    """Average precision of the rows that can be ranked."""
    ranked = metrics.rankable(truth)
    return metrics.average_precision(truth[ranked], scores[ranked]) if ranked.any() else None
