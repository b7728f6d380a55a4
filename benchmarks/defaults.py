"""The study behind the classifier's defaults, trained on candidate labels as they are.

`python -m benchmarks.defaults [--quick] [--folds N] [--json FILE] [BENCHMARK ...]` prints four
Markdown tables: scaling and kernel; the rule that picks the ridge's penalty; the rank of the kernel
map; and how the network starts and is trained. Each figure is the mean average precision against
the truth, on the held-out rows of the first N of ten folds, for each of two noise draws (the
network: for one). Sets whose files are not there are left out by name. `--quick`: one fold of a
tenth of yeast-9.
"""

import argparse
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd
import torch
from sklearn.metrics import label_ranking_loss
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from benchmarks import ROOT
from wscpml.algorithm import features, network, ridge
from wscpml.arrays import Array, Matrix
from wscpml.datasets.benchmarks import available, precision
from wscpml.datasets.benchmarks import load as load_benchmark
from wscpml.evaluation import metrics
from wscpml.parameters import NetworkSettings, part_of
from wscpml.randomness import stream
from wscpml.settings import Settings, load

NAMES = ("emotions-4", "birds-4", "medical-7", "yeast-9", "image-3")
DRAWS = (0, 1)
ENERGIES = (0.8, 0.9, 0.95, 0.99, 0.999)
ITERATIONS = 100  # of L-BFGS
HISTORY = 20  # steps that it remembers
NEVER = 0.999  # what no epoch can win

Row = dict[str, float]  # the figures of one cell, "ap" among them
Rows = dict[str, Row]


@dataclass(frozen=True)
class Data:
    """A benchmark, or a part of its rows: their fold, and candidates of several noise draws."""

    X: Matrix
    truth: Array
    candidates: list[Array]
    split: Array


def load_data(name: str, seed: int, every: int) -> Data:
    """Every so many rows of a benchmark; all draws have the folds of one seed."""
    given = load_benchmark(name, seed)
    draws = [load_benchmark(name, draw).candidates[::every] for draw in DRAWS]
    return Data(given.X[::every], given.truth[::every], draws, given.fold[::every])


@dataclass(frozen=True)
class Split:
    """One fold: mapped features of both sides, and the labels."""

    mapped: Array
    test: Array
    candidates: list[Array]
    test_truth: Array

    def precision(self, predict: Callable[[Array], Array]) -> float:
        """How well a predictor ranks the held-out rows."""
        found = precision(self.test_truth, predict(self.test))
        return np.nan if found is None else found


def splits(data: Data, folds: int, settings: Settings, **changes: object) -> Iterator[Split]:
    """The first folds, mapped as the settings say but for the changes."""
    for fold in range(folds):
        test = data.split == fold
        anchors = stream(settings.seed, "anchors")
        feature_map = features.fit(
            data.X[~test], **asdict(settings.features) | changes, rng=anchors
        )
        yield Split(
            mapped=feature_map(data.X[~test]),
            test=feature_map(data.X[test]),
            candidates=[Y[~test] for Y in data.candidates],
            test_truth=data.truth[test],
        )


def maps(data: Data, folds: int, settings: Settings) -> Rows:
    """Table A: scaling, kernel and bandwidth, with the ridge on top."""
    kernels = [*product(("laplace", "rbf"), (0.25, 0.5, 1.0)), ("none", 1.0)]
    return {
        f"{scaling}, {kernel}" + (f" {bandwidth:g}" if kernel != "none" else ""): _of_ridge(
            splits(data, folds, settings, scaling=scaling, kernel=kernel, bandwidth=bandwidth)
        )
        for scaling, (kernel, bandwidth) in product(("quantile", "minmax", "zscore"), kernels)
    }


def ranks(data: Data, folds: int, settings: Settings) -> Rows:
    """Table C: the share of the kernel that is kept."""
    return {
        f"energy {energy:g}": _of_ridge(splits(data, folds, settings, energy=energy))
        for energy in ENERGIES
    }


def _of_ridge(folds: Iterable[Split]) -> Row:
    return _mean(
        {
            "ap": fold.precision(ridge.fit(fold.mapped, Y, Y).head.predict_proba),
            "rank": fold.mapped.shape[1],
        }
        for fold in folds
        for Y in fold.candidates
    )


def penalties(data: Data, folds: int, settings: Settings) -> Rows:
    """Table B: rules that pick the penalty from leave-one-out predictions, and the best there is.

    The rules see the same predictions: each notes its loss where `ridge.fit` asks for its own.
    """
    rules: dict[str, Callable[[Array, Array], float]] = {
        "average precision": lambda Y, scores: 1 - metrics.average_precision(Y, scores),
        "squared error": lambda Y, scores: float(np.square(Y - scores).mean()),
        "ranking loss": label_ranking_loss,
    }
    chosen: dict[str, list[Row]] = {name: [] for name in ("ours", *rules)}
    reached = []  # (folds * draws, penalties), with the truth
    for fold in splits(data, folds, settings):
        for Y in fold.candidates:
            losses: dict[str, list[float]] = {name: [] for name in rules}

            def note(Y: Array, scores: Array, losses: dict[str, list[float]] = losses) -> float:
                for name, rule in rules.items():
                    losses[name].append(rule(Y, scores))
                return 1 - losses["average precision"][-1]

            with patch.object(ridge, "average_precision", note):
                fitted = ridge.fit(fold.mapped, Y, Y)
            ours = {"ap": fold.precision(fitted.head.predict_proba), "penalty": fitted.penalty}
            chosen["ours"].append(ours)
            reached.append([fold.precision(predict) for predict in _with_each_penalty(fitted, Y)])
            for name in rules:
                best = int(np.argmin(losses[name]))
                chosen[name].append({"ap": reached[-1][best], "penalty": ridge.PENALTIES[best]})
    ceiling = np.mean(reached, axis=0)
    best = int(ceiling.argmax())
    rows = {f"lowest leave-one-out {name}": _mean(chosen[name]) for name in rules}
    return (
        {"middle of the best average precisions": _mean(chosen["ours"])}
        | rows
        | {
            "best in hindsight, by the truth": {
                "ap": float(ceiling[best]),
                "penalty": float(ridge.PENALTIES[best]),
            }
        }
    )


def _with_each_penalty(fitted: ridge.Fit, Y: Array) -> Iterator[Callable[[Array], Array]]:
    """Predictors from one factorisation."""
    axes = fitted.axes
    projected = axes.U.T @ Y
    for penalty in ridge.PENALTIES:
        weight = axes.weights(projected, penalty)
        yield ridge.Ridge(weight, Y.mean(axis=0) - axes.centre @ weight).predict_proba


def networks(data: Data, folds: int, settings: Settings) -> Rows:
    """Table D: where the network starts, and what trains it."""
    parts = list(splits(data, folds, settings))
    options = asdict(part_of(settings.classifier, NetworkSettings))
    rows: Rows = {}

    def problem(fold: Split) -> network.Problem:
        Y = fold.candidates[0]
        return network.Problem(fold.mapped, Y, Y, stream(settings.seed, "classifier"))

    def trained(starts: Callable[..., tuple], worth: float, **changes: float) -> Row:
        with patch.multiple(network, _starts=starts, WORTH=worth):
            found = network.fit_all([problem(fold) for fold in parts], **options | changes)
        return _mean(
            {"ap": fold.precision(each.predict_proba)} | _best(course.validation_loss, worth)
            for fold, (each, course) in zip(parts, found, strict=True)
        )

    rows["closed form, as it is"] = trained(network._starts, worth=NEVER, max_epochs=1)
    for start, starts in {"closed form": network._starts, "random": random_starts}.items():
        for epochs, rate in ((20, 0.001), (20, 0.003), (100, 0.003)):
            rows[f"{start}, AdamW {epochs}, rate {rate}"] = trained(
                starts, worth=0, max_epochs=epochs, patience=epochs // 4, learning_rate=rate
            )
        rows[f"{start}, L-BFGS {ITERATIONS}"] = _mean(
            _of_quasi_newton(fold, problem(fold), starts, settings) for fold in parts
        )
    return rows


def _best(losses: pd.Series, worth: float) -> Row:
    best = 0 if worth == NEVER else int(losses.idxmin())
    return {"loss": losses[best], "passes": best}


def random_starts(
    problem: network.Problem, held_out: Array, rng: np.random.Generator, width: int
) -> tuple[network.Network, network.Network, float]:
    """A network whose units all begin at random, in the way of torch's own layers."""
    del held_out  # only the closed form has to know
    d, q = problem.X.shape[1], problem.candidates.shape[1]

    def uniform(inputs: int, *shape: int) -> Array:
        return ((2 * rng.random(shape) - 1) / np.sqrt(inputs)).astype(np.float32)

    hidden = uniform(d, d, q * width), uniform(d, q * width)
    start = network.Network(*hidden, uniform(width, q, width), uniform(width, q))
    return start, start, np.nan


def _of_quasi_newton(
    fold: Split, problem: network.Problem, starts: Callable[..., tuple], settings: Settings
) -> Row:
    """Full-batch L-BFGS, for as many iterations as the rows that `fit_all` holds out find best."""
    problem = network._ready(problem)
    held_out, training, everything = network._split(problem, settings.classifier.validation_share)
    rng = problem.rng.spawn(1)[0]
    first, last, _ = starts(problem, held_out, rng, settings.classifier.width)
    courses = [
        (loss, passes, step)
        for step, (loss, passes, _) in enumerate(quasi_newton(problem, first, training, held_out))
    ]
    loss, passes, best = min(courses)
    final = quasi_newton(problem, last, everything, held_out)
    found = next(part for step, (*_, part) in enumerate(final) if step == best)
    hidden, *rest = found.network(0)
    predict = network.Network(hidden.T, *rest).predict_proba
    return {"ap": fold.precision(predict), "loss": loss, "passes": passes}


def quasi_newton(
    problem: network.Problem, start: network.Network, rows: Array, held_out: Array
) -> Iterator[tuple[float, int, network._Part]]:
    """After each iteration: the loss of the held-out rows, passes so far, and the network."""
    labels = slice(0, problem.candidates.shape[1])
    part = network._Part(
        [problem], [start], slice(0, 1), labels, (0.0, 0.0), 1, torch.device("cpu")
    )
    whole, rest = (network._batches([some], len(some)) for some in (rows, held_out))
    optimiser = torch.optim.LBFGS(
        part.parameters, max_iter=1, history_size=HISTORY, line_search_fn="strong_wolfe"
    )
    passes = 0

    def loss() -> torch.Tensor:
        nonlocal passes
        passes += 1
        optimiser.zero_grad()
        total = part._losses(whole[0]).sum()
        total.backward()
        return total

    yield float(part.measure(rest)[0]), 0, part
    for step in range(ITERATIONS):
        optimiser.step(loss)
        passes -= step > 0  # a call begins with the slope that the last one ended with
        yield float(part.measure(rest)[0]), passes, part


def _mean(rows: Iterable[Row]) -> Row:
    found = list(rows)
    return {key: float(np.mean([row[key] for row in found])) for key in found[0]}


Study = tuple[str, Callable[[Data, int, Settings], Rows], Callable[[Row], str]]
STUDIES: dict[str, Study] = {
    "A": ("Scaling, kernel and bandwidth", maps, lambda row: f"{row['ap']:.3f}"),
    "B": (
        "Rule for the penalty (and the mean penalty)",
        penalties,
        lambda row: f"{row['ap']:.3f} ({row['penalty']:.2g})",
    ),
    "C": (
        "Share of the kernel that is kept (and rank)",
        ranks,
        lambda row: f"{row['ap']:.3f} ({row['rank']:.0f})",
    ),
    "D": (
        "The network: average precision (validation loss; passes until it was reached)",
        networks,
        lambda row: f"{row['ap']:.3f} ({row['loss']:.3f}; {row['passes']:.0f})",
    ),
}


def table(found: dict[str, Rows], cell: Callable[[Row], str]) -> str:
    """Markdown: benchmarks as columns; `short` is the most that a row lacks to a column's best."""
    names, rows = list(found), list(next(iter(found.values())))
    ap = np.array([[found[name][row]["ap"] for name in names] for row in rows])
    short = (ap.max(axis=0) - ap).max(axis=1)
    lines = [["", *names, "mean", "short"], ["---"] + ["---:"] * (len(names) + 2)]
    for row, mean, lack in zip(rows, ap.mean(axis=1), short, strict=True):
        cells = [cell(found[name][row]) for name in names]
        lines.append([row, *cells, f"{mean:.3f}", f"{lack:.3f}"])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one fold of a tenth of yeast-9")
    parser.add_argument("--folds", type=int, default=3, metavar="N", help="3 unless told")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here too")
    parser.add_argument(
        "names", nargs="*", default=NAMES, metavar="BENCHMARK", help="such as birds-4"
    )
    options = parser.parse_args()
    settings = load(ROOT / "params.yaml")
    names = list(available(["yeast-9"] if options.quick else options.names))
    folds, every = (1, 10) if options.quick else (options.folds, 1)
    found: dict[str, dict[str, Rows]] = {letter: {} for letter in STUDIES}
    with threadpool_limits(1, "blas"), tqdm(total=4 * len(names), disable=None) as bar:
        for name in names:
            data = load_data(name, settings.seed, every)
            for letter, (_, study, _) in STUDIES.items():
                bar.set_description(f"{name} {letter}")
                found[letter][name] = study(data, folds, settings)
                bar.update()
    for letter, (title, _, cell) in STUDIES.items():
        if names:
            print(f"\n## {letter}. {title}\n\n{table(found[letter], cell)}")
    if options.json:
        figures = {
            f"{letter}.{name}.{row}.{key}": value
            for letter, of_benchmarks in found.items()
            for name, rows in of_benchmarks.items()
            for row, cells in rows.items()
            for key, value in cells.items()
        }
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
