"""Check that today's code gives the stored figures, and if so let DVC take all cells as up to date.

`python -m experiments.vouch` runs one fold of a dense and a sparse benchmark for every method, and
the clustering's course on one. If anything differs from what is stored, or data or settings have
changed since, it names that, changes nothing and exits with 1. Seconds and memory are not compared.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import yaml
from tqdm import tqdm

from experiments import convergence, pool
from experiments.cell import PLACES, Cell, cells
from experiments.folds import Outcome
from experiments.identify import identities
from experiments.settings import Study, load
from experiments.study import LOCK, change_lock, mend_lock
from experiments.tidy import tidy
from wscpml import artifacts
from wscpml.datasets.benchmarks import missing
from wscpml.errors import UserError

BENCHMARKS = {  # of each part, a dense and a sparse one; there are no ablations on a sparse one
    "full": ("emotions-4", "medical-7"),
    "ablation": ("emotions-4", "birds-4"),
    "features": ("emotions-4", "medical-7"),
}
COURSE = "emotions-4"  # whose convergence is compared
FOLD = 0
RESULTS = PLACES["full"] / "results"


def chosen(study: Study) -> list[Cell]:
    """The cells that vouch for all others."""
    return [
        cell
        for part, benchmarks in BENCHMARKS.items()
        for cell in cells(study, part)
        if cell.benchmark in benchmarks
    ]


def difference(cell: Cell, outcome: Outcome) -> str | None:
    """What of a fold is not as it is stored; None if all of it is."""
    if outcome.error is not None:
        return outcome.error
    try:
        stored: dict[str, Any] = artifacts.read(cell.path)
    except UserError as mistake:
        return str(mistake)
    before = [_flat(run) for run in stored["runs"] if run["fold"] == FOLD]
    return first_difference(before, [_flat(run) for run in tidy(outcome.runs)])


def _flat(run: Mapping[str, Any]) -> dict[str, Any]:
    return run["settings"] | run["metrics"] | {"criterion": run["criterion"]}


def difference_of_course(study: Study) -> str | None:
    """The same for the course of the clustering."""
    now = tidy(convergence.course(COURSE, study.seed, study.folds))
    try:
        stored = artifacts.read(RESULTS / COURSE / "convergence.json")
    except UserError as mistake:
        return str(mistake)
    return first_difference([stored], [now])


def first_difference(
    before: Sequence[Mapping[str, Any]], now: Sequence[Mapping[str, Any]]
) -> str | None:
    """The first figure that is another one, or how many there should be."""
    if len(before) != len(now):
        return f"has {len(now)} runs, stored are {len(before)}"
    for old, new in zip(before, now, strict=True):
        for key in {**old, **new}:
            if old.get(key) != new.get(key):
                return f"{key} is {new.get(key)}, stored is {old.get(key)}"
    return None


def other_changes(study: Study) -> list[str]:
    """Cells that are missing, or not up to date for another reason than code."""
    locked = yaml.safe_load(LOCK.read_text(encoding="utf-8"))["stages"] if LOCK.exists() else {}
    data = identities()["data"]
    beside = [RESULTS / name / "convergence.json" for name in study.full.benchmarks]
    files = [*beside, RESULTS / "cost.json"]
    changes = [f"{file}: is missing; `make study` makes it" for file in files if not file.exists()]
    for part in BENCHMARKS:
        settings = {
            "seed": study.seed,
            "folds": study.folds,
            f"{part}.folds": getattr(study, part).folds,
        }
        for cell in cells(study, part):
            entry = locked.get(cell.stage)
            if entry is None or not cell.path.exists():
                changes.append(f"{cell}: has no result; `make study` runs it")
                continue
            known = entry["params"]["identity.json"]
            if known[f"data.{cell.benchmark}"] != data[cell.benchmark]:
                changes.append(f"{cell}: its data have changed; `make study` runs it again")
            if entry["params"]["params.yaml"] != settings:
                changes.append(f"{cell}: its settings have changed; `make study` runs it again")
    return changes


def _not_here() -> list[str]:
    """Benchmarks whose files would have to be fetched first."""
    names = sorted({name for pair in BENCHMARKS.values() for name in pair})
    return [f"{name}: {reason}" for name in names if (reason := missing(name))]


def run(wanted: Sequence[Cell], study: Study) -> dict[Cell, str | None]:
    """Run the fold of each cell, and tell what differs."""
    done = pool.run_cells([[cell.tasks(study)[FOLD]] for cell in wanted], study.scheduler)
    shown = tqdm(done, desc="vouch", total=len(wanted), disable=None, leave=False)
    found = {wanted[place]: difference(wanted[place], outcome) for place, (outcome,) in shown}
    return {cell: found[cell] for cell in wanted}


def renew() -> None:
    """Enter all cells into DVC's lock as they are stored, with the code of today."""
    mend_lock()
    change_lock("repro", "--quiet", "identify")
    change_lock("commit", "--force", "--quiet", *BENCHMARKS, "convergence", "cost")


def main() -> None:
    """Compare; renew the locks only if all is equal."""
    argparse.ArgumentParser(description=__doc__.partition("\n")[0]).parse_args()
    try:
        study = load()
        if changes := [*_not_here(), *other_changes(study)]:
            sys.exit("\n".join(changes))
        found = run(chosen(study), study)
        mistakes = []
        for name in dict.fromkeys(cell.method for cell in found):
            differing = [f"{c}: {why}" for c, why in found.items() if c.method == name and why]
            print(f"{name:16}{'; '.join(differing) or 'as stored'}")
            mistakes += differing
        if why := difference_of_course(study):
            mistakes.append(f"{COURSE} convergence: {why}")
        print(f"{'convergence':16}{why or 'as stored'}", flush=True)
        if mistakes:
            sys.exit("\n".join(["not renewed:", *mistakes]))
        renew()
    except UserError as mistake:
        sys.exit(str(mistake))


if __name__ == "__main__":
    main()
