"""The course of the clustering on a benchmark: `python -m experiments.convergence BENCHMARK`."""

import sys
from typing import Any

from experiments.settings import load
from experiments.tidy import tidy
from wscpml import artifacts
from wscpml.algorithm import composition, features
from wscpml.datasets import benchmarks
from wscpml.devices import one_blas_thread
from wscpml.errors import UserError
from wscpml.parameters import ClusteringSettings, FeatureSettings, WeakSupervisionSettings


def course(benchmark: str, seed: int, folds: int) -> dict[str, Any]:
    """Objective and change per iteration on the rows outside fold 0, at the default settings."""
    given = benchmarks.load(benchmark, seed, folds)
    train = given.fold != 0
    X, Y = given.X[train], given.candidates[train]
    with one_blas_thread():
        scaled = features.fit_scaling(X, FeatureSettings().scaling).scale(X)
        B = composition.supervise(scaled, Y, WeakSupervisionSettings())
        found = composition.cluster(scaled, Y, B, ClusteringSettings())
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
