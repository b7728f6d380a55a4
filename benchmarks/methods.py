"""What each method costs, relative to BR, and how that grows with the rows. Linux only.

`python -m benchmarks.methods [--quick] [--json FILE] [METHOD ...]` fits each method to nine tenths
of yeast-9 and corel5k-9 and predicts the rest, in a process of its own with one thread. Seconds
are those of the processor; memory is the most that is needed beyond imports and data; `growth` is
the exponent g of seconds ~ n^g on made data. Oracle, which is BR's code, is left out unless asked
for, and so is a set whose files are not there. `--quick`: yeast-9, two methods, few rows.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from tqdm import tqdm

from benchmarks import ROOT
from wscpml.datasets import benchmarks
from wscpml.evaluation.memory import forget_peak, peak
from wscpml.methods import METHODS, method

REFERENCE = "br"
BENCHMARKS = ("yeast-9", "corel5k-9")
ROWS, QUICK_ROWS = (1000, 2000, 4000), (200, 400)
QUICK_METHODS = ("pml-ni",)
ENOUGH_SECONDS, MOST_TURNS = 1.0, 5  # the quickest of several turns counts, unless one is slow
BOUND = 60  # times BR on yeast-9


def made(n: int, d: int = 50, q: int = 10) -> benchmarks.Benchmark:
    """Labels that follow the features, with noise; in ten folds."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    truth = (X @ rng.normal(size=(d, q)) > d**0.5 / 2).astype(np.uint8)
    candidates = np.maximum(truth, rng.random((n, q)) < 0.3).astype(np.uint8)
    return benchmarks.Benchmark(X, truth, candidates, np.arange(n) % 10)


def run(name: str, source: str) -> dict[str, float]:
    """Seconds and bytes of a fit and a prediction, in this process."""
    given = made(int(source)) if source.isdigit() else benchmarks.load(source, 0)
    kind, test = method(name), given.fold == 0
    labels = given.truth if kind.NEEDS_TRUTH else given.candidates
    X, Y, rest = given.X[~test], labels[~test], given.X[test]
    warm_up = made(50)
    kind(random_state=0).fit(warm_up.X, warm_up.candidates)  # what is imported late is, by now
    before = forget_peak()
    seconds: list[float] = []
    while sum(seconds) < ENOUGH_SECONDS and len(seconds) < MOST_TURNS:
        start = time.process_time()
        kind(random_state=0).fit(X, Y).predict_proba(rest)
        seconds.append(time.process_time() - start)
    return {"seconds": min(seconds), "bytes": peak() - before}


def measure(name: str, *sources: str) -> list[dict[str, float]]:
    """What `run` finds for each source, in a new process with one thread."""
    command = [sys.executable, "-m", "benchmarks.methods", name, "--run", *sources]
    env = os.environ | {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")}
    done = subprocess.run(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed")
    return json.loads(done.stdout)


def growth(name: str, rows: tuple[int, ...]) -> float:
    """The exponent that fits the seconds on made data best."""
    seconds = [each["seconds"] for each in measure(name, *map(str, rows))]
    return float(np.polyfit(np.log(rows), np.log(seconds), 1)[0])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="yeast-9, two methods, few rows")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here too")
    parser.add_argument("--run", nargs="+", metavar="SOURCE", help=argparse.SUPPRESS)
    parser.add_argument(
        "names", nargs="*", metavar="METHOD", help=f"such as pml-ni; {REFERENCE} is always one"
    )
    options = parser.parse_args()
    if options.run:
        print(json.dumps([run(*options.names, source) for source in options.run]))
        return
    unknown = [name for name in options.names if name not in METHODS]
    if unknown:
        parser.error(f"{unknown[0]}: no such method; see `wscpml methods`")
    usual = QUICK_METHODS if options.quick else [n for n in METHODS if not method(n).NEEDS_TRUTH]
    names = [REFERENCE, *(n for n in options.names or usual if n != REFERENCE)]
    chosen = [s for s in BENCHMARKS[: 1 if options.quick else None] if not benchmarks.missing(s)]
    rows = QUICK_ROWS if options.quick else ROWS

    print(" " * 14 + "".join(f"{benchmark:>30}" for benchmark in chosen))
    columns = f"{'s':>8}{'x BR':>8}{'MB':>7}{'x BR':>7}"
    print(f"{'method':14}" + columns * len(chosen) + "  growth")
    figures: dict[str, float] = {}
    bases: dict[str, dict[str, float]] = {}
    for name in tqdm(names, disable=None, leave=False):
        line = f"{method(name).TITLE:14}"
        for benchmark in chosen:
            found = measure(name, benchmark)[0]
            base = bases.setdefault(benchmark, found)  # the reference comes first
            times = {key: value / base[key] for key, value in found.items()}
            line += f"{found['seconds']:8.2f}{times['seconds']:8.2f}"
            line += f"{found['bytes'] / 1e6:7.0f}{times['bytes']:7.2f}"
            for key, value in found.items():
                figures[f"{benchmark}.{name}.{key}"] = value
                figures[f"{benchmark}.{name}.{key}_ratio"] = times[key]
        figures[f"growth.{name}"] = growth(name, rows)
        print(f"{line}{figures[f'growth.{name}']:8.2f}", flush=True)
    slow = [n for n in names if figures[f"{BENCHMARKS[0]}.{n}.seconds_ratio"] > BOUND]
    print(f"slower than {BOUND} x BR on {BENCHMARKS[0]}: {', '.join(slow) or 'none'}")
    for benchmark in BENCHMARKS:
        if reason := benchmarks.missing(benchmark):
            print(f"{benchmark} {reason}")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
