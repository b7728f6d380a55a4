"""A cell of the study: cross-validation of one method on one benchmark.

`python -m experiments.cell PART BENCHMARK METHOD` runs one; PART is a section of params.yaml.
"""

import argparse
import hashlib
import json
import math
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments import pool, protocols
from experiments.folds import Outcome, Task
from experiments.settings import Study, load
from experiments.tidy import tidy
from wscpml import artifacts
from wscpml.datasets.registry import BENCHMARKS, REGISTRY
from wscpml.errors import UserError
from wscpml.methods import method
from wscpml.methods.wsc_pml import AsPrinted
from wscpml.serving import tracking

PLACES = {  # where a part's results and the analysis of them go
    "full": Path("experiments"),
    "ablation": Path("experiments"),
    "features": Path("experiments"),
    "quick": Path("experiments/quick"),
}


@dataclass(frozen=True)
class Cell:
    """Where it is in the matrix of a part of the study."""

    part: str
    benchmark: str
    method: str

    @property
    def stage(self) -> str:
        """What DVC calls it."""
        return f"{stages(self.part)}@{self.benchmark}-{self.method}"

    @property
    def path(self) -> Path:
        """Where its result is."""
        return PLACES[self.part] / "results" / self.benchmark / f"{self.method}.json"

    @property
    def size(self) -> float:
        """A rough measure of the time it takes."""
        entry, kind = (
            REGISTRY[BENCHMARKS.get(self.benchmark, (self.benchmark, 0))[0]],
            method(self.method),
        )
        points = math.prod(map(len, kind.GRID.values())) if issubclass(kind, AsPrinted) else 1
        return float(entry.instances * entry.labels * points)

    def tasks(self, study: Study) -> list[Task]:
        """Its folds."""
        chosen = range(getattr(study, self.part).folds)
        return [Task(self.benchmark, self.method, study.seed, study.folds, fold) for fold in chosen]

    def __str__(self) -> str:
        return f"{self.benchmark} {self.method}"


def stages(part: str) -> str:
    """What DVC calls all cells of a part, in the study's project."""
    return "quick/dvc.yaml:quick" if part == "quick" else part


def cells(study: Study, part: str) -> list[Cell]:
    """All cells of a part, benchmark by benchmark."""
    chosen = getattr(study, part)
    return [
        Cell(part, benchmark, name) for benchmark in chosen.benchmarks for name in chosen.methods
    ]


def result(cell: Cell, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """What the cell's file holds; without runs if any of the folds has failed."""
    error = next((each.error for each in outcomes if each.error is not None), None)
    peaks = [each.peak_memory for each in outcomes if each.peak_memory is not None]
    whole = {
        "benchmark": cell.benchmark,
        "method": cell.method,
        "title": method(cell.method).TITLE,
        "seed": outcomes[0].task.seed,
        "folds": len(outcomes),
        "error": error,
        "peak_memory_mb": max(peaks) / 1e6 if peaks else None,
        "seconds": sum(each.seconds for each in outcomes),
        "runs": [] if error else [run for each in outcomes for run in each.runs],
    }
    return tidy(whole)


def keep(cell: Cell, outcomes: Sequence[Outcome], study: Study) -> dict[str, Any]:
    """Write the cell's file, and log it to MLflow from there."""
    artifacts.write(cell.path, result(cell, outcomes))
    written: dict[str, Any] = artifacts.read(cell.path)
    log(cell, written, study)
    return written


def log(cell: Cell, written: dict[str, Any], study: Study) -> None:
    """One MLflow run for the cell, and below it one for each fold."""
    tags = {"part": cell.part, "benchmark": cell.benchmark, "method": cell.method}
    if written["error"]:
        tags["error"] = written["error"]
    params = {key: written[key] for key in ("benchmark", "method", "seed", "folds")}
    runs = written["runs"]
    best = protocols.paper(
        [run["settings"] for run in runs], [run["metrics"]["average_precision"] for run in runs]
    )
    chosen = [run for run, is_best in zip(runs, best, strict=True) if is_best]
    parts = [
        tracking.Summary(
            name=f"{cell} fold {run['fold']}",
            params=params | {"fold": run["fold"]} | run["settings"],
            metrics=_known(run["metrics"] | {"seconds": run["seconds"]}),
            tags=tags,
        )
        for run in chosen
    ]
    names = chosen[0]["metrics"] if chosen else []
    means = {name: _mean([run["metrics"][name] for run in chosen]) for name in names}
    costs = {key: written[key] for key in ("seconds", "peak_memory_mb")}
    whole = tracking.Summary(
        name=str(cell),
        params=params | (chosen[0]["settings"] if chosen else {}),
        metrics=_known(means | costs),
        tags=tags,
    )
    tracking.log_family(
        whole,
        parts,
        study.experiment,
        cell.path,
        identity(cell, written),
        failed=written["error"] is not None,
    )


def identity(cell: Cell, written: dict[str, Any]) -> str:
    """What tells the result from any other: all of it but time and memory, which vary."""
    vary = ("seconds", "peak_memory_mb")
    runs = [{key: run[key] for key in run if key not in vary} for run in written["runs"]]
    told = {key: written[key] for key in written if key not in vary} | {"runs": runs}
    return hashlib.sha256(json.dumps([cell.part, told], sort_keys=True).encode()).hexdigest()


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _known(values: dict[str, Any]) -> dict[str, float]:
    return {name: value for name, value in values.items() if value is not None}


def main() -> None:
    """Run one cell, as DVC does."""
    if "DVC_ROOT" in os.environ:  # the study's project; MLflow's store is beside it
        os.environ["DVC_ROOT"] = str(Path(os.environ["DVC_ROOT"]).parent)
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("part", choices=list(PLACES))
    parser.add_argument("benchmark")
    parser.add_argument("method")
    options = parser.parse_args()
    try:
        study, cell = load(), Cell(options.part, options.benchmark, options.method)
        if cell not in cells(study, cell.part):
            raise UserError(
                f"{cell}: no such cell; benchmark and method must be in section {cell.part} of "
                "experiments/params.yaml"
            )
        ((_, outcomes),) = pool.run_cells([cell.tasks(study)], study.scheduler)
        error = keep(cell, outcomes, study)["error"]
    except UserError as mistake:
        sys.exit(str(mistake))
    if error:
        sys.exit(f"{cell}: {error}")


if __name__ == "__main__":
    main()
