"""How near our comparison methods come to the figures that the paper prints for them.

`python -m benchmarks.agreement [--quick] [--json FILE] [--draws K]` runs ten folds of nine
benchmarks with every method's recommended parameters, and prints the mean average precision beside
the printed mean and standard deviation (docs/paper), and the difference in such deviations. Draw k
has noise, folds and random starts of seed k; figures are means over all draws. Sets whose files
are not there are left out by name. `--quick`: two folds of yeast-9.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from sklearn.utils.parallel import Parallel, delayed
from tqdm import tqdm

from experiments.paper import PRINTED_AS, printed
from wscpml.arrays import Array
from wscpml.datasets import benchmarks
from wscpml.datasets.registry import BENCHMARKS
from wscpml.evaluation.metrics import average_precision, rankable
from wscpml.methods import method

NAMES = [name for name, (set_, _) in BENCHMARKS.items() if set_ in ("emotions", "birds", "yeast")]
FOLDS = 10


def one_fold(name: str, given: benchmarks.Benchmark, fold: int, seed: int) -> float:
    """Average precision of a method on a fold that it has not seen."""
    test = given.fold == fold
    fitted = method(name)(random_state=seed).fit(given.X[~test], given.candidates[~test])
    rows = np.flatnonzero(test)[rankable(given.truth[test])]
    return average_precision(given.truth[rows], fitted.predict_proba(given.X[rows]))


def measure(benchmark: str, draws: int, folds: int) -> Array:
    """Mean average precision of each method."""
    seeds = range(draws)
    loaded = [benchmarks.load(benchmark, seed, FOLDS) for seed in seeds]
    tasks = [(name, seed, fold) for name in PRINTED_AS for seed in seeds for fold in range(folds)]
    work = (delayed(one_fold)(name, loaded[seed], fold, seed) for name, seed, fold in tasks)
    found = Parallel(n_jobs=-1, return_as="generator")(work)
    shown = tqdm(found, desc=benchmark, total=len(tasks), disable=None, leave=False)
    return np.reshape(list(shown), (len(PRINTED_AS), -1)).mean(axis=1)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="two folds of yeast-9")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here too")
    parser.add_argument(
        "--draws", type=int, default=1, metavar="K", help="of the noise (default 1)"
    )
    options = parser.parse_args()
    chosen, folds = (["yeast-9"], 2) if options.quick else (NAMES, FOLDS)
    paper = printed("average_precision")
    figures: dict[str, float] = {}
    apart: list[list[float]] = []
    print("| benchmark | " + " | ".join(method(name).TITLE for name in PRINTED_AS) + " |")
    print("|---" * (1 + len(PRINTED_AS)) + "|")
    for benchmark in chosen:
        if reason := benchmarks.missing(benchmark):
            print(f"| {benchmark} | {reason} |")
            continue
        cells = []
        apart.append([])
        for name, ours in zip(PRINTED_AS, measure(benchmark, options.draws, folds), strict=True):
            mean, std = (paper.loc[benchmark, f"{PRINTED_AS[name]} {of}"] for of in ("mean", "std"))
            apart[-1].append((ours - mean) / std)
            cells.append(f"{ours:.3f}, {mean:.3f} ± {std:.3f}, {apart[-1][-1]:+.1f}")
            for key, value in (("ours", ours), ("printed", mean), ("std", std)):
                figures[f"{benchmark}.{name}.{key}"] = float(value)
        print(f"| {benchmark} | {' | '.join(cells)} |", flush=True)
    within = (np.abs(apart) <= 1).sum(axis=0)
    print("| within one | " + " | ".join(f"{n} of {len(apart)}" for n in within) + " |")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
