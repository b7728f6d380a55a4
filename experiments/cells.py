"""What experiments/results holds, read and checked: figures, and what is missing of them.

A cell is `BENCHMARK/METHOD.json`: cross-validation of one method on one benchmark, with every pair
of a grid if the method has one. Beside it are `ablation-nc`, `-nd`, `-nws` and `group-features` in
the same form, and `convergence`; `cost.json` is of no benchmark. The analysis reads nothing else.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, Self, TypeVar

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from experiments import protocols
from experiments.paper import PRINTED_AS, printed
from wscpml import artifacts
from wscpml.datasets.registry import REGISTRY
from wscpml.errors import UserError
from wscpml.methods import METHODS, method

WSC, HONEST = "wsc-pml", "wsc-pml honest"  # the same cell, by the two protocols
GROUP_FEATURES = "group-features"  # WSC-PML with the scaling and kernel of its authors' group
SEVEN = [WSC, *PRINTED_AS]  # the paper's methods
LEARNERS = [name for name in METHODS if not method(name).NEEDS_TRUTH]
VARIANTS = {"ablation-nc": "NC", "ablation-nd": "ND", "ablation-nws": "NWS", WSC: "Full"}
PAIR = ["alpha", "beta"]  # what WSC-PML searches
KINDS = list(dict.fromkeys([*METHODS, *VARIANTS, GROUP_FEATURES]))  # of cells


class Metric(NamedTuple):
    """What people read, and which way is better."""

    title: str
    higher_is_better: bool


METRICS = {
    "average_precision": Metric("Average precision", True),
    "ranking_loss": Metric("Ranking loss", False),
    "one_error": Metric("One-error", False),
    "coverage": Metric("Coverage", False),
    "hamming_loss": Metric("Hamming loss", False),
}
PRINTED_METRICS = ["average_precision", "ranking_loss"]  # of the five, in docs/paper
BENCHMARKS = list(printed(PRINTED_METRICS[0]).index)
DATASETS = dict(printed(PRINTED_METRICS[0]).dataset)  # of each benchmark


def title(entry: str) -> str:
    """What people read for a method, or for WSC-PML by the honest protocol."""
    return f"{method(WSC).TITLE}, honest" if entry == HONEST else method(entry).TITLE


def not_public(benchmark: str) -> bool:
    """Whether only a person can supply the files of a benchmark."""
    return not all(file.url for file in REGISTRY[DATASETS[benchmark]].files)


class FileForm(BaseModel):
    """What a file holds; keys that are not known here are let pass."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)


class Metrics(FileForm):
    """Of one fold; None where it has no row to measure."""

    average_precision: float | None
    ranking_loss: float | None
    one_error: float | None
    coverage: float | None
    hamming_loss: float | None


class RunFile(FileForm):
    """One fold with one setting of the parameters."""

    fold: int
    settings: dict[str, float | str]
    metrics: Metrics
    criterion: float | None


class CellFile(FileForm):
    """One method on one benchmark."""

    benchmark: str
    method: str
    seed: int
    folds: int
    error: str | None
    peak_memory_mb: float | None  # where the system tells
    seconds: float
    runs: list[RunFile]

    @property
    def file(self) -> str:
        """Where it is among the results."""
        return f"{self.benchmark}/{self.method}.json"

    @property
    def parameters(self) -> list[str]:
        """Those that were searched."""
        return sorted(self.runs[0].settings)

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if self.error is None:
            folds: dict[str, list[int]] = {}
            for run in self.runs:
                folds.setdefault(str(sorted(run.settings.items())), []).append(run.fold)
            if not folds or any(sorted(of) != list(range(self.folds)) for of in folds.values()):
                raise ValueError(f"must have each fold from 0 to {self.folds - 1} once")
            if len({tuple(sorted(run.settings)) for run in self.runs}) > 1:
                raise ValueError("must have the same parameters in every run")
            if all(run.metrics.average_precision is None for run in self.runs):
                raise ValueError("must have an average precision in some run")
        return self


class ConvergenceFile(FileForm):
    """The course of the clustering."""

    error: str | None = None
    iteration: list[int] = []
    objective: list[float] = []
    change: list[float] = []

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        lengths = {len(self.iteration), len(self.objective), len(self.change)}
        if self.error is None and (len(lengths) > 1 or 0 in lengths):
            raise ValueError("must have iteration, objective and change, equally long")
        return self


Sizes = list[tuple[float, float]]


class CostFile(FileForm):
    """Size and seconds per iteration, along each of the three dimensions."""

    error: str | None = None
    n: Annotated[Sizes, Field(min_length=2)] | None = None
    q: Annotated[Sizes, Field(min_length=2)] | None = None
    d: Annotated[Sizes, Field(min_length=2)] | None = None


@dataclass(frozen=True)
class Results:
    """All there is."""

    folds: pd.DataFrame  # benchmark, entry, fold, the five metrics: what each protocol reports
    grid: pd.DataFrame  # benchmark, alpha, beta, the five metrics: means of WSC-PML over the folds
    picks: pd.DataFrame  # benchmark, entry, fold, alpha, beta: what each protocol chose
    cells: pd.DataFrame  # benchmark, method, seed, folds, seconds, peak_memory_mb: those measured
    convergence: dict[str, pd.DataFrame]
    cost: dict[str, Sizes]
    failures: dict[str, str]  # file, and what is wrong with it

    @cached_property
    def measured(self) -> list[str]:
        """Benchmarks with any figures, in the paper's order."""
        found = set(self.folds.benchmark)
        return [name for name in BENCHMARKS if name in found]

    @cached_property
    def absent(self) -> list[str]:
        """Benchmarks that cannot be measured without files that are not public."""
        return [name for name in BENCHMARKS if not_public(name) and name not in self.measured]

    @property
    def missing(self) -> dict[str, list[str]]:
        """By method, the benchmarks neither measured nor failed, though they can be had."""
        done = {*zip(self.cells.benchmark, self.cells.method, strict=True)}
        failed = {tuple(file.removesuffix(".json").split("/")) for file in self.failures}
        wanted = [benchmark for benchmark in BENCHMARKS if benchmark not in self.absent]
        gaps = {
            name: [benchmark for benchmark in wanted if (benchmark, name) not in done | failed]
            for name in [*METHODS, GROUP_FEATURES]
        }
        return {name: benchmarks for name, benchmarks in gaps.items() if benchmarks}

    def state(self, benchmark: str, entry: str) -> str:
        """What to say of an entry without figures."""
        if benchmark in self.absent:
            return "n/a"
        method = WSC if entry == HONEST else entry
        return "failed" if f"{benchmark}/{method}.json" in self.failures else "missing"

    def means(self, metric: str) -> pd.DataFrame:
        """Mean over the folds: a row for each benchmark of the paper, a column for each entry."""
        return self._over_folds(metric, "mean")

    def deviations(self, metric: str) -> pd.DataFrame:
        """The same for the standard deviation."""
        return self._over_folds(metric, "std")

    def _over_folds(self, metric: str, what: Literal["mean", "std"]) -> pd.DataFrame:
        table = self.folds.pivot_table(metric, "benchmark", "entry", what, dropna=False)
        return table.reindex(index=BENCHMARKS, columns=[*KINDS, HONEST])

    def difference(self, metric: str, entry: str) -> pd.Series:
        """Ours less the printed mean, in printed standard deviations; NaN where that is 0."""
        paper, name = printed(metric), PRINTED_AS.get(entry, "WSC-PML")
        deviation = paper[f"{name} std"].replace(0, np.nan)
        return (self.means(metric)[entry] - paper[f"{name} mean"]) / deviation

    def within_one(self, metric: str, entry: str) -> tuple[int, int]:
        """Benchmarks at most one printed standard deviation from the printed mean, and all."""
        apart = self.difference(metric, entry).dropna()
        return int((apart.abs() <= 1).sum()), len(apart)


def load(results: Path) -> Results:
    """Read a directory of results; what cannot be read or compared is a failure."""
    if not results.is_dir():
        raise UserError(f"{results}: is missing; `make study` makes it")
    failures: dict[str, str] = {}
    cells: list[CellFile] = []
    convergence: dict[str, pd.DataFrame] = {}
    cost: dict[str, Sizes] = {}
    for path in sorted(results.rglob("*.json")):
        file = path.relative_to(results).as_posix()
        benchmark, _, name = file.removesuffix(".json").rpartition("/")
        try:
            if file == "cost.json":
                cost = _read(path, CostFile).model_dump(exclude={"error"}, exclude_none=True)
            elif benchmark in BENCHMARKS and name == "convergence":
                course = _read(path, ConvergenceFile)
                convergence[benchmark] = pd.DataFrame(course.model_dump(exclude={"error"}))
            elif benchmark in BENCHMARKS and name in KINDS:
                cell = _read(path, CellFile)
                if (cell.benchmark, cell.method) != (benchmark, name):
                    raise UserError(f"is a result of {cell.method} on {cell.benchmark}")
                if others := [each for each in cell.parameters if each not in PAIR]:
                    raise UserError(f"has parameters that are not searched: {', '.join(others)}")
                cells.append(cell)
            else:
                raise UserError("is none of the study's benchmarks and methods")
        except UserError as reason:
            failures[file] = str(reason).removeprefix(f"{path}: ")
    unlike = _not_comparable(cells)
    cells = [cell for cell in cells if cell.file not in unlike]
    return Results(
        _reported(cells),
        _grids(cells),
        _picks(cells),
        _about(cells),
        convergence,
        cost,
        failures | unlike,
    )


Form = TypeVar("Form", CellFile, ConvergenceFile, CostFile)


def _read(path: Path, form: type[Form]) -> Form:
    try:
        found = form.model_validate(artifacts.read(path))
    except ValidationError as error:
        first = error.errors()[0]
        place = "".join(f"{part}: " for part in [".".join(map(str, first["loc"]))] if part)
        raise UserError(f"is not a result: {place}{first['msg']}") from None
    if found.error is not None:
        raise UserError(" ".join(found.error.split()) or "failed without a reason")
    return found


def _not_comparable(cells: list[CellFile]) -> dict[str, str]:
    """Files with other folds or another seed than the first method on the same benchmark."""
    first: dict[str, CellFile] = {}
    for cell in sorted(cells, key=lambda cell: KINDS.index(cell.method)):
        first.setdefault(cell.benchmark, cell)
    return {
        cell.file: (
            f"has seed {cell.seed} and {cell.folds} folds, but {other.method} has seed "
            f"{other.seed} and {other.folds}: they cannot be compared"
        )
        for cell in cells
        for other in [first[cell.benchmark]]
        if (cell.seed, cell.folds) != (other.seed, other.folds)
    }


def _runs(cell: CellFile) -> pd.DataFrame:
    """A row per run: fold, criterion, settings, metrics."""
    rows = [
        {"fold": run.fold, "criterion": run.criterion, **run.settings} | run.metrics.model_dump()
        for run in cell.runs
    ]
    return pd.DataFrame(rows).astype(dict.fromkeys([*METRICS, "criterion"], float))


def _by_protocol(cell: CellFile) -> dict[str, pd.DataFrame]:
    """By entry, the runs that a protocol reports: one for each fold."""
    runs = _runs(cell)
    best = protocols.paper([run.settings for run in cell.runs], runs.average_precision.tolist())
    entries = {cell.method: runs[best]}
    if cell.method == WSC and runs.criterion.notna().all():
        entries[HONEST] = protocols.honest(runs)
    return {
        entry: rows.assign(benchmark=cell.benchmark, entry=entry).sort_values("fold")
        for entry, rows in entries.items()
    }


def _reported(cells: list[CellFile]) -> pd.DataFrame:
    rows = [each for cell in cells for each in _by_protocol(cell).values()]
    return _stacked(rows, ["benchmark", "entry", "fold", *METRICS])


def _grids(cells: list[CellFile]) -> pd.DataFrame:
    grids = [cell for cell in cells if cell.method == WSC and cell.parameters == PAIR]
    means = [
        _runs(cell)
        .groupby(PAIR)[list(METRICS)]
        .mean()
        .reset_index()
        .assign(benchmark=cell.benchmark)
        for cell in grids
    ]
    return _stacked(means, ["benchmark", *PAIR, *METRICS])


def _picks(cells: list[CellFile]) -> pd.DataFrame:
    searched = [cell for cell in cells if cell.method == WSC and cell.parameters == PAIR]
    rows = [each for cell in searched for each in _by_protocol(cell).values()]
    return _stacked(rows, ["benchmark", "entry", "fold", *PAIR])


def _about(cells: list[CellFile]) -> pd.DataFrame:
    columns = ["benchmark", "method", "seed", "folds", "seconds", "peak_memory_mb"]
    return pd.DataFrame([cell.model_dump(include={*columns}) for cell in cells], columns=columns)


def _stacked(frames: list[pd.DataFrame], columns: list[str]) -> pd.DataFrame:
    """Some columns of all frames, one below the other."""
    if not frames:
        return pd.DataFrame(columns=columns)
    return pd.concat(frames, ignore_index=True)[columns]
