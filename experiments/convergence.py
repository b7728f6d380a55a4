"""The course of the clustering on a benchmark: `python -m experiments.convergence BENCHMARK`."""

import sys
from typing import Any

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from experiments.settings import load
from experiments.tidy import tidy
from wscpml import artifacts
from wscpml.algorithm import features
from wscpml.datasets import benchmarks
from wscpml.errors import UserError
from wscpml.methods.wsc_pml import AsPrinted


def course(benchmark: str, seed: int, folds: int) -> dict[str, Any]:
    """Objective and change per iteration on the rows outside fold 0, at the default settings."""
    given, method = benchmarks.load(benchmark, seed, folds), AsPrinted()
    train = given.fold != 0
    X, Y = given.X[train], given.candidates[train]
    with threadpool_limits(1, "blas"):
        scaled = features.fit_scaling(X, method.scaling).scale(X)
        found = method._cluster(scaled, Y, method._confidence(scaled, Y))
    columns = {str(name): values.tolist() for name, values in found.course.items()}
    return {"benchmark": benchmark} | columns


def main() -> None:
    """Write the benchmark's convergence.json."""
    try:
        (benchmark,) = sys.argv[1:]
        study = load()
        found = course(benchmark, study.seed, study.folds)
        artifacts.write(f"experiments/results/{benchmark}/convergence.json", tidy(found))
    except UserError as mistake:
        sys.exit(str(mistake))


if __name__ == "__main__":
    main()
