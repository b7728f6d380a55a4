"""Where a run of the pipeline spends its time, stage by stage.

`python -m benchmarks.pipeline [--quick] [--json FILE]` runs every stage in a process of its own,
as DVC does, in a temporary copy of the project. `wall` is the whole process, `method` the time in
the stage less that for files and MLflow (`files`); the rest is start-up, chiefly imports.
`--quick` leaves out `dvc repro` itself, first with everything to do, then with nothing, which is
compared with `dvc status`, by the clock and in processor time, which other work on the machine
changes less.
"""

import argparse
import importlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import copy_project, dvc_stages
from wscpml import artifacts, settings

STAGES = list(dvc_stages())


# What a stage imports only once it runs: start-up all the same.
LATE_IMPORTS = {"prepare": "pandas", "train_classifier": "torch"}


class Stopwatch:
    """Seconds spent in some functions, each moment counted once however they call each other."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.running = False

    def on(self, module: Any, name: str) -> None:
        """Time a function of a module from now on."""
        setattr(module, name, self._timed(getattr(module, name)))

    def _timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if self.running:
                return function(*args, **kwargs)
            self.running, start = True, time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                self.running = False
                self.seconds += time.perf_counter() - start

        return call


def run_stage(stage: str) -> None:
    """In a stage's own process: run it, and print the seconds in it and in its files."""
    script = importlib.import_module(f"stages.{stage}")
    if stage in LATE_IMPORTS:
        importlib.import_module(LATE_IMPORTS[stage])
    files = Stopwatch()
    for name in ("read", "write", "write_directory"):
        files.on(artifacts, name)
    if stage == "track":
        files.on(script.tracking, "log_run")
    start = time.perf_counter()
    getattr(script, stage)(settings.load())
    print(json.dumps({"stage": time.perf_counter() - start, "files": files.seconds}))


def wall(command: list[str], directory: Path) -> tuple[float, str]:
    """Seconds that a command takes, and what it printed."""
    env = os.environ | {"DVC_ROOT": str(directory), "PYTHONPATH": str(directory)}
    env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}"
    env.pop("MLFLOW_TRACKING_URI", None)
    start = time.perf_counter()
    done = subprocess.run(command, cwd=directory, env=env, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed")
    return time.perf_counter() - start, done.stdout


def fastest(command: list[str], directory: Path, times: int = 5) -> dict[str, float]:
    """Seconds of the fastest of some runs, by the clock and in processor time."""
    found = []
    for _ in range(times):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds, _ = wall(command, directory)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        user, system = after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime
        found.append({"wall": seconds, "processor": user + system})
    return {kind: min(each[kind] for each in found) for kind in found[0]}


def measure(quick: bool) -> dict[str, float]:
    """All figures, in seconds, as one flat table."""
    figures = {}
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        copy_project(directory)
        for stage in STAGES:
            seconds, said = wall(
                [sys.executable, "-m", "benchmarks.pipeline", "--stage", stage], directory
            )
            inside = json.loads(said.splitlines()[-1])
            figures[f"{stage}.wall"] = seconds
            figures[f"{stage}.method"] = inside["stage"] - inside["files"]
            figures[f"{stage}.files"] = inside["files"]
            figures[f"{stage}.start_up"] = seconds - inside["stage"]
    if not quick:
        with tempfile.TemporaryDirectory() as name:
            directory = Path(name)
            copy_project(directory)
            wall(["git", "init", "--quiet"], directory)
            figures["dvc_repro.wall"], _ = wall(["dvc", "repro", "--quiet"], directory)
            repro = fastest(["dvc", "repro", "--quiet"], directory)
            status = fastest(["dvc", "status", "--quiet"], directory)
            for kind in repro:
                figures[f"dvc_repro_no_op.{kind}"] = repro[kind]
                figures[f"dvc_status.{kind}"] = status[kind]
                figures[f"dvc_repro_no_op.to_status.{kind}"] = repro[kind] / status[kind]
    return figures


def table(figures: dict[str, float]) -> str:
    """The figures for people."""
    parts = ("method", "files", "start_up")
    lines = [f"{'stage':18}{'wall s':>8}{'method s':>10}{'method':>9}{'files':>8}{'start-up':>10}"]
    walls = {stage: figures[f"{stage}.wall"] for stage in STAGES}
    sums = {part: sum(figures[f"{stage}.{part}"] for stage in STAGES) for part in parts}
    rows = [(s, walls[s], *(figures[f"{s}.{part}"] for part in parts)) for s in STAGES]
    for name, seconds, method, files, start_up in [
        *rows,
        ("all", sum(walls.values()), *sums.values()),
    ]:
        shares = [f"{part / seconds:.0%}" for part in (method, files, start_up)]
        lines.append(
            f"{name:18}{seconds:8.2f}{method:10.2f}{shares[0]:>9}{shares[1]:>8}{shares[2]:>10}"
        )
    if "dvc_repro.wall" in figures:
        lines.append(f"{'dvc repro, all to do':26}{figures['dvc_repro.wall']:8.2f} s")
        for name, title in (
            ("dvc_repro_no_op", "dvc repro, nothing to do"),
            ("dvc_status", "dvc status"),
        ):
            seconds, processor = (figures[f"{name}.{kind}"] for kind in ("wall", "processor"))
            lines.append(f"{title:26}{seconds:8.2f} s, {processor:.2f} s of a processor")
        by_clock, by_processor = (
            figures[f"dvc_repro_no_op.to_status.{kind}"] for kind in ("wall", "processor")
        )
        lines.append(f"the last but one is {by_clock:.2f} and {by_processor:.2f} x the last")
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="leave out dvc repro itself")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here too")
    parser.add_argument("--stage", choices=STAGES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.stage:
        run_stage(options.stage)
        return
    figures = measure(options.quick)
    print(table(figures))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
