"""Run all cells of the study that are not up to date, side by side; then the analysis.

`python -m experiments.study [--quick]`. DVC tells which cells are up to date, and each one that is
done is entered into its lock at once, so a sweep that is killed goes on where it was.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence

from tqdm import tqdm

from experiments import pool
from experiments.cell import PLACES, Cell, cells, keep, stages
from experiments.settings import KNOWN, Study, load
from wscpml import artifacts
from wscpml.datasets.registry import REGISTRY
from wscpml.errors import UserError
from wscpml.serving import tracking

PROJECT = PLACES["full"]  # of DVC
LOCK = PROJECT / "dvc.lock"
SPARES = {  # of each lock, while it is being changed
    LOCK: PROJECT / ".dvc/tmp/study.lock",
    PLACES["quick"] / "dvc.lock": PROJECT / ".dvc/tmp/study-quick.lock",
}


def dvc(*command: str) -> str:
    """What a DVC command prints in the study's project; where it fails, a UserError."""
    whole = [sys.executable, "-m", "dvc", *command]
    done = subprocess.run(
        whole, cwd=PROJECT, capture_output=True, text=True, start_new_session=True
    )
    if done.returncode:
        reason = (done.stderr.strip() or done.stdout.strip() or "no reason given").splitlines()[-1]
        raise UserError(f"`dvc {' '.join(command)}` failed: {reason}")
    return done.stdout


def change_lock(*command: str) -> None:
    """Run a DVC command that changes a lock file, which DVC does not write whole or not at all.

    Spare copies are there until it is done; `mend_lock` puts them back if it fails, or never was.
    """
    for lock, spare in SPARES.items():
        if lock.exists():
            artifacts.write(spare, lock)
    try:
        dvc(*command)
    except UserError:
        mend_lock()
        raise
    for spare in SPARES.values():
        spare.unlink(missing_ok=True)


def mend_lock() -> None:
    """Take the lock files as they were before a change that failed or was cut off."""
    for lock, spare in SPARES.items():
        if spare.exists():
            spare.replace(lock)


def not_up_to_date(wanted: Sequence[Cell]) -> list[Cell]:
    """Those of the cells whose data, code, settings or results have changed."""
    parts = dict.fromkeys(cell.part for cell in wanted)
    changed = json.loads(dvc("status", "--json", *map(stages, parts)))
    return [cell for cell in wanted if cell.stage in changed]


def sweep(wanted: Sequence[Cell], study: Study) -> dict[Cell, str]:
    """Run the cells that need it; returns those that failed, and why."""
    waiting = not_up_to_date(wanted)
    print(f"{len(wanted)} cells, {len(wanted) - len(waiting)} of them up to date", flush=True)
    failed: dict[Cell, str] = {}
    total = sum(cell.size for cell in waiting)
    form = "{desc}: {percentage:.0f}%|{bar}| {elapsed} gone, {remaining} to go {postfix}"
    with tqdm(desc="study", total=total, bar_format=form, smoothing=0, disable=not waiting) as bar:
        done = pool.run_cells([cell.tasks(study) for cell in waiting], study.scheduler)
        for count, (place, outcomes) in enumerate(done, 1):
            cell = waiting[place]
            error = keep(cell, outcomes, study)["error"]
            if error:
                failed[cell] = error
                tqdm.write(f"{cell}: {error}", file=sys.stderr)
            else:
                change_lock("commit", "--force", "--quiet", cell.stage)
            bar.set_postfix_str(f"({count} of {len(waiting)} cells, last {cell})", refresh=False)
            bar.update(cell.size)
    return failed


def main() -> None:
    """Run the study; the exit status is 0 only if nothing failed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a few folds of a few benchmarks")
    quick = parser.parse_args().quick
    parts = ["quick"] if quick else ["full", "ablation", "features"]
    try:
        study = load()
        for name in () if quick else KNOWN:
            if name not in study.full.benchmarks:
                print(f"{name}: is left out of the study ({REGISTRY[name].note})")
        tracking.prepare(study.experiment)
        mend_lock()
        change_lock("repro", "--quiet", "identify")
        failed = sweep([cell for part in parts for cell in cells(study, part)], study)
        mistakes = [f"{cell}: {error}" for cell, error in failed.items()]
        for name in () if quick else ("convergence", "cost"):
            try:
                change_lock("repro", "--quiet", "--keep-going", name)
            except UserError as mistake:
                mistakes.append(str(mistake))
    except UserError as mistake:
        sys.exit(str(mistake))
    place = PLACES[parts[0]]
    options = ["--results", str(place / "results"), "--out", str(place)]
    command = [sys.executable, "-m", "experiments.analyse", *options]
    analysed = subprocess.run(command).returncode
    if mistakes:
        sys.exit("\n".join(["failed:", *mistakes]))
    sys.exit(analysed)


if __name__ == "__main__":
    main()
