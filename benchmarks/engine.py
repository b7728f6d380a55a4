"""Clustering and classifier against the hardware, against themselves, and against the textbook.

`python -m benchmarks.engine [--quick] [--json FILE]` measures, by turns and taking the best of
each: an iteration of the clustering over the two matrix products it needs, and how its time grows;
candidate pairs alone against all values, and the share of candidates where they cross; the memory
of a million rows, and of a memory map; our classifier against a plain training loop to the same
validation loss; and ten folds together against one after the other. Each figure stands beside its
bar, met or not. `--quick`: small problems, which say nothing about the bars.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from unittest import mock

import numpy as np
import torch
from scipy import sparse
from threadpoolctl import threadpool_limits
from torch.nn.functional import softplus
from torch.utils.data import DataLoader, TensorDataset

from benchmarks import ROOT
from benchmarks.fit import Fold, first_folds
from wscpml.algorithm import clustering, network
from wscpml.arrays import Array, row_blocks
from wscpml.datasets.benchmarks import missing
from wscpml.devices import cores
from wscpml.parameters import NetworkSettings, part_of
from wscpml.randomness import stream
from wscpml.settings import Settings, load

BARS = {  # lowest and highest
    "dense.over_products": (0, 1.4),
    "dense.exponent_n": (0.9, 1.1),
    "dense.exponent_d": (0.9, 1.1),
    "dense.exponent_q": (0.9, 1.1),
    "pairs.faster_at_0.02": (5, np.inf),
    "million_rows.peak_over_inputs": (0, 1.3),
    "network.yeast-9.faster": (10, np.inf),
    "network.corel5k-9.faster": (10, np.inf),
    "together.emotions-4.faster": (3, np.inf),
    "together.yeast-9.faster": (3, np.inf),
    "memory_map.anonymous_gb": (0, 1),
}
DENSITIES = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
FEW, MANY = 2, 8  # iterations, whose difference leaves out what happens once
STATUS = "/proc/{}/status"
CANDIDATES = 5  # of each row, where memory is measured

Problem = tuple[Array, Array, Array]
Figures = Iterator[tuple[str, float]]


def made(n: int, d: int, q: int, share: float) -> Problem:
    """Random features, candidates and confidence."""
    rng = np.random.default_rng(0)
    Y = (rng.random((n, q), np.float32) < share).astype(np.float32)
    B = np.where(rng.random((n, q), np.float32) < 0.5, Y, Y * np.float32(0.3))
    return rng.standard_normal((n, d), np.float32), Y, B


def made_few(n: int, q: int) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Candidates and confidence with a few candidates per row, without larger temporaries."""
    rng = np.random.default_rng(0)
    step, ends = q // CANDIDATES, np.arange(0, CANDIDATES * n + 1, CANDIDATES, np.int32)
    labels = rng.integers(0, step, (n, CANDIDATES), np.int32)
    labels += np.arange(0, CANDIDATES * step, step, dtype=np.int32)
    values = np.ones(labels.size, np.float32), rng.random(labels.size, np.float32)
    Y, B = (sparse.csr_array((v, labels.ravel().copy(), ends.copy()), shape=(n, q)) for v in values)
    return Y, B


def cluster(X: Array, Y: Array, B: Array, iterations: int) -> None:
    """Exactly so many iterations."""
    clustering.cluster(X, Y, B, 10.0, 10.0, "paper", iterations, tolerance=0.0)


def on_path(problem: Problem, pairs: bool) -> Callable[[int], None]:
    """The clustering on one of its paths, whatever the share of candidates is."""

    def run(iterations: int) -> None:
        with mock.patch.object(clustering, "PAIRS_BELOW", 2.0 if pairs else 0.0):
            cluster(*problem, iterations)

    return run


def products(X: Array, Y: Array) -> Callable[[int], None]:
    """The two matrix products of an iteration, on all cores."""
    rows, weights = torch.from_numpy(X), torch.from_numpy(Y)
    prototypes = torch.rand(Y.shape[1], X.shape[1])

    def run(iterations: int) -> None:
        torch.set_num_threads(cores())
        for _ in range(iterations):
            torch.mm(rows, prototypes.T)
            torch.mm(weights.T, rows)

    return run


def best_of(turns: int, *works: Callable[[], object]) -> list[float]:
    """The best time of each in seconds, by turns."""
    best = [np.inf] * len(works)
    for _ in range(turns):
        for k, work in enumerate(works):
            start = time.perf_counter()
            work()
            best[k] = min(best[k], time.perf_counter() - start)
    return best


def per_iteration(turns: int, *runs: Callable[[int], None]) -> list[float]:
    """Seconds per iteration of each."""
    works = [lambda run=run, count=count: run(count) for run in runs for count in (FEW, MANY)]
    best = np.reshape(best_of(turns, *works), (len(runs), 2))
    return np.maximum((best[:, 1] - best[:, 0]) / (MANY - FEW), 1e-6).tolist()  # type: ignore[no-any-return]


def dense(n: int, d: int, q: int, turns: int) -> Figures:
    """Half of the labels are candidates."""
    problem = made(n, d, q, 0.5)
    runs = on_path(problem, pairs=False), products(*problem[:2])
    seconds, reference = per_iteration(turns, *runs)
    yield "dense.seconds", seconds
    yield "dense.over_products", seconds / reference
    base = {"n": n, "d": d, "q": q}
    for name in base:
        # What is done for each pair of row and label does not grow with d: it shows below 1000.
        factors = (2, 4, 8) if name == "d" else (0.5, 1, 2)
        sizes = [base | {name: int(base[name] * factor)} for factor in factors]
        runs = tuple(on_path(made(**size, share=0.5), pairs=False) for size in sizes)
        times = per_iteration(turns, *runs)
        yield f"dense.exponent_{name}", np.polyfit(np.log(factors), np.log(times), 1)[0]


def pairs(n: int, d: int, q: int, turns: int) -> Figures:
    """Candidate pairs alone against all values."""
    ratios = []
    for share in DENSITIES:
        problem = made(n, d, q, share)
        all_values, alone = per_iteration(
            turns, *(on_path(problem, kind) for kind in (False, True))
        )
        ratios.append(all_values / alone)
        yield f"pairs.faster_at_{share}", ratios[-1]
    falling = np.minimum.accumulate(ratios)[::-1]
    yield "pairs.cross_at", np.exp(np.interp(0, np.log(falling), np.log(DENSITIES[::-1])))


def status(name: str, process: int | str = "self") -> int:
    """A figure of a process's memory in bytes."""
    lines = Path(STATUS.format(process)).read_text().splitlines()
    found = next(line for line in lines if line.startswith(name + ":"))
    return int(found.split()[1]) * 1024


def million_rows(n: int) -> dict[str, float]:
    """In a process of its own: one iteration, and its peak over the bytes of its inputs.

    The peak is VmHWM: ru_maxrss would take over that of the process that started this one.
    """
    before = status("VmRSS")
    X = np.random.default_rng(1).standard_normal((n, 100), np.float32)
    Y, B = made_few(n, 1000)
    inputs = X.nbytes + sum(m.data.nbytes + m.indices.nbytes + m.indptr.nbytes for m in (Y, B))
    start = time.perf_counter()
    cluster(X, Y, B, 1)
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "peak_over_inputs": (status("VmHWM") - before) / inputs}


def memory_map(n: int) -> dict[str, float]:
    """In a process of its own: two iterations on a file, and the peak of memory that is no file."""
    peak, done, d = 0, threading.Event(), 500

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.005):
            peak = max(peak, status("RssAnon"))

    with tempfile.NamedTemporaryFile() as file:
        rng = np.random.default_rng(1)
        for rows in row_blocks(n, 10_000):
            file.write(rng.random((rows.stop - rows.start, d), np.float32))
        file.flush()
        X = np.memmap(file.name, np.float32, "r", shape=(n, d))
        watcher = threading.Thread(target=watch)
        watcher.start()
        start = time.perf_counter()
        cluster(X, *made_few(n, 50), 2)
        seconds = time.perf_counter() - start
        done.set()
        watcher.join()
    return {"seconds": seconds, "map_gb": X.nbytes / 1e9, "anonymous_gb": peak / 1e9}


CHILDREN = {"million_rows": million_rows, "memory_map": memory_map}


def in_child(name: str, n: int) -> Figures:
    """What one of `CHILDREN` finds in a process of its own."""
    if not Path(STATUS.format("self")).exists():
        return
    command = [sys.executable, "-m", "benchmarks.engine", "--child", name, str(n)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    for key, value in json.loads(done.stdout).items():
        yield f"{name}.{key}", value


def textbook(
    X: Array, Y: Array, held_out: Array, training: Array, width: int, target: float, cap: float
) -> tuple[float, float, float]:
    """Seconds of the plain loop until its validation loss is `target` or time is up.

    And the lowest loss it had, and when.
    """
    torch.manual_seed(0)
    rows, labels = torch.from_numpy(X), torch.from_numpy(Y.astype(np.float32))
    networks = torch.nn.ModuleList(
        torch.nn.Sequential(
            torch.nn.Linear(X.shape[1], width), torch.nn.Tanh(), torch.nn.Linear(width, 1)
        )
        for _ in range(Y.shape[1])
    )
    optimiser = torch.optim.Adam(networks.parameters(), lr=1e-3)
    batches = DataLoader(
        TensorDataset(rows[training], labels[training]), batch_size=64, shuffle=True
    )

    def loss(X: torch.Tensor, Y: torch.Tensor) -> torch.Tensor:
        logits = torch.cat([network(X) for network in networks], dim=1)
        return (Y * softplus(-logits) + (1 - Y) * softplus(logits)).sum(dim=1).mean()

    def train(batch: list[torch.Tensor]) -> None:
        optimiser.zero_grad()
        loss(*batch).backward()  # type: ignore[no-untyped-call]
        optimiser.step()

    def trial(threads: int) -> float:
        torch.set_num_threads(threads)
        return best_of(10, lambda: train(next(iter(batches))))[0]

    torch.set_num_threads(min((1, cores()), key=trial))  # its products are small
    start, best, when = time.perf_counter(), np.inf, 0.0
    while best > target and time.perf_counter() - start < cap:
        for batch in batches:
            train(batch)
        with torch.no_grad():
            found = float(loss(rows[held_out], labels[held_out]))
        if found < best:
            best, when = found, time.perf_counter() - start
    return time.perf_counter() - start, best, when


def training(name: str, fold: Fold, settings: Settings, times: float, least: float) -> Figures:
    """Our whole training against the plain loop's way to the same validation loss."""
    chosen = settings.classifier
    X, Y = fold.mapped, fold.candidates

    def problem() -> network.Problem:
        return network.Problem(X, Y, Y, stream(settings.seed, "classifier"))

    start = time.perf_counter()
    _, course = network.fit_all([problem()], **asdict(part_of(chosen, NetworkSettings)))[0]
    ours, target = time.perf_counter() - start, course.validation_loss.min()
    held_out, training, _ = network._split(problem(), chosen.validation_share)
    cap = max(times * ours, least)
    seconds, reached, when = textbook(X, Y, held_out, training, chosen.width, target, cap)
    yield f"network.{name}.seconds", ours
    yield f"network.{name}.loss", target
    yield f"network.{name}.textbook_seconds", seconds
    yield f"network.{name}.textbook_loss", reached
    yield f"network.{name}.faster_than_that", when / ours
    yield f"network.{name}.faster", seconds / ours


def together(name: str, folds: list[Fold], settings: Settings, turns: int) -> Figures:
    """All folds at once against one after the other."""
    chosen = asdict(part_of(settings.classifier, NetworkSettings))

    def problems() -> list[network.Problem]:
        streams = [stream(settings.seed, "classifier") for _ in folds]
        return [
            network.Problem(fold.mapped, fold.candidates, fold.candidates, rng)
            for fold, rng in zip(folds, streams, strict=True)
        ]

    at_once, one_by_one = best_of(
        turns,
        lambda: network.fit_all(problems(), **chosen),
        lambda: [network.fit_all([problem], **chosen) for problem in problems()],
    )
    yield f"together.{name}.seconds", at_once
    yield f"together.{name}.faster", one_by_one / at_once


def measure(quick: bool) -> Figures:
    """All figures, one by one."""
    settings = load(ROOT / "params.yaml")
    sizes, turns = ((2000, 200, 100), 2) if quick else ((20_000, 500, 400), 8)
    yield from dense(*sizes, turns)
    yield from pairs(*sizes, turns)
    yield from in_child("million_rows", 20_000 if quick else 1_000_000)
    yield from in_child("memory_map", 100_000 if quick else 2_000_000)
    for name in ("yeast-9",) if quick else ("yeast-9", "emotions-4", "corel5k-9"):
        if missing(name):
            continue
        count = 1 if name == "corel5k-9" else 2 if quick else settings.split.folds
        folds = first_folds(name, count, settings)
        if f"network.{name}.faster" in BARS:
            yield from training(name, folds[0], settings, *((3, 1) if quick else (20, 60)))
        if f"together.{name}.faster" in BARS:
            yield from together(name, folds, settings, 1 if quick else 3)


def line(name: str, figures: dict[str, float]) -> str:
    """A figure for people, with its bar if it has one."""
    value, what = figures[name], name.rpartition(".")[0]
    ours, theirs = (figures.get(f"{what}.{loss}", 0) for loss in ("loss", "textbook_loss"))
    more = ">" if name.endswith("faster") and theirs > ours else ""  # their time was up before
    said = f"{name:36}{more + format(value, '.3f'):>10}"
    if name not in BARS:
        return said
    low, high = BARS[name]
    bar = f"<= {high}" if low == 0 else f">= {low}" if high == np.inf else f"{low} .. {high}"
    return f"{said}   {bar:12}{'met' if low <= value <= high else 'not met'}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small problems")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here too")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    with threadpool_limits(1, "blas"):  # as the stages do
        if options.child:
            name, n = options.child
            print(json.dumps(CHILDREN[name](int(n))))
            return
        figures: dict[str, float] = {}
        for name, value in measure(options.quick):
            figures[name] = float(value)
            print(line(name, figures), flush=True)
    for name in BARS:
        if name not in figures:
            print(f"{name:36}not measured")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
