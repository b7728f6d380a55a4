"""Seconds of one iteration of the clustering against n, q and d: `python -m experiments.cost`."""

import time
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

from experiments.tidy import tidy
from wscpml import artifacts
from wscpml.algorithm import clustering
from wscpml.devices import one_blas_thread

ITERATIONS = (2, 12)  # the difference leaves out what comes before the first
TURNS = 3  # the quickest counts
CANDIDATES = 0.3  # share of the labels


class Size(NamedTuple):
    """Of made data."""

    n: int
    q: int
    d: int


BASE = Size(32000, 128, 512)  # so large that what each call costs by itself hardly counts
FACTORS = (0.25, 0.5, 1, 2, 4, 8)


def seconds(size: Size) -> float:
    """Of one iteration, on random data."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(size.n, size.d)).astype(np.float32)
    Y = (rng.random((size.n, size.q)) < CANDIDATES).astype(np.uint8)

    def turn(iterations: int) -> float:
        start = time.perf_counter()
        clustering.cluster(X, Y, Y, 10, 10, "paper", max_iterations=iterations, tolerance=0)
        return time.perf_counter() - start

    few, many = (min(turn(count) for _ in range(TURNS)) for count in ITERATIONS)
    return (many - few) / (ITERATIONS[1] - ITERATIONS[0])


def measure(base: Size) -> dict[str, list[list[float]]]:
    """Sizes and seconds along each dimension, the others as they are in the base."""
    sizes = [
        (axis, base._replace(**{axis: round(getattr(base, axis) * factor)}))
        for axis in Size._fields
        for factor in FACTORS
    ]
    found: dict[str, list[list[float]]] = {axis: [] for axis in Size._fields}
    with one_blas_thread():
        seconds(base)  # what is imported late is, by now
        for axis, size in tqdm(sizes, desc="cost", disable=None, leave=False):
            found[axis].append([getattr(size, axis), seconds(size)])
    return found


if __name__ == "__main__":
    artifacts.write("experiments/results/cost.json", tidy(measure(BASE)))
