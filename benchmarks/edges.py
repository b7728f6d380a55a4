"""Whether label confidences hold at the edges: rare tags, no noise at all, labels that say nothing.

`python -m benchmarks.edges [--quick] [--json FILE]` judges invented items, whose truth is known:

1. 3000 items with ten tidy tags, each of which is given to a fifth of the items that it is false
   of, beside tags that are used once or twice, beside one more spelling of a tag, and with
   frequencies as Zipf has them: precision and recall of the flags among the tidy ones, and how far
   their confidences change by it, on average;
2. labels without noise, of n rows and d features, in clusters or linear in the features; a few
   random rows, and rows that have every label: the share of the tags that is flagged;
3. labels of odd shape: the least and the greatest confidence, and whether all of them are
   probabilities, and every rate within its interval.

`--quick`: 400 items, and the smallest case of each kind.
"""

import argparse
import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
from tqdm import tqdm

from benchmarks.label_noise import judge
from wscpml.arrays import EVEN_ODDS, Array
from wscpml.devices import one_blas_thread
from wscpml.quality.judging import JudgedLabels

ITEMS, FEW, TIDY, DIMENSIONS, WRONG = 3000, 400, 10, 12, 0.2
RARE = (0, 1, 3, 25, 200)
ROWS, COLUMNS = (10, 60, 300, 2000), (2, 20, 500, 2000)
Figures = Iterator[tuple[str, dict[str, float]]]


def items(n: int, shares: Array, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Features, truth and candidates of n items; each tag is true of a share of them."""
    X = rng.normal(size=(n, DIMENSIONS))
    scores = X @ rng.normal(size=(DIMENSIONS, len(shares)))
    scores += 0.5 * rng.normal(size=scores.shape)
    ends = [np.quantile(column, 1 - p) for column, p in zip(scores.T, shares, strict=True)]
    truth = scores > ends
    given = truth | (rng.random(truth.shape) < WRONG * shares / shares.max())
    return X, truth.astype(np.uint8), given.astype(np.uint8)


def rare_tags(n: int, count: int, rng: np.random.Generator) -> Array:
    """Tags that are used once or twice, ``(n, count)``."""
    found = np.zeros((n, count), np.uint8)
    for j in range(count):
        found[rng.choice(n, 1 + j % 2, replace=False), j] = 1
    return found


def long_tail(n: int) -> Figures:
    """The tidy tags alone and beside others."""
    even = np.full(TIDY, 0.2)
    X, truth, Y = items(n, even, np.random.default_rng(0))
    alone = judge(X, Y)[1].label_confidence
    for count in RARE:
        beside = np.hstack([Y, rare_tags(n, count, np.random.default_rng(1))])
        found = alone if not count else judge(X, beside)[1].label_confidence[:, :TIDY]
        yield f"{count} rare tags", flags(truth, Y, found, alone)
    other = Y[:, :1] * (np.random.default_rng(2).random((n, 1)) < 0.02)
    spelt = np.hstack([Y, other.astype(np.uint8)])
    spelt[:, :1] -= spelt[:, TIDY:]
    found = judge(X, spelt)[1].label_confidence[:, :TIDY]
    yield "a second spelling", flags(truth, spelt[:, :TIDY], found, alone)
    X, truth, Y = items(n, 0.4 / np.arange(1, 3 * TIDY + 1), np.random.default_rng(3))
    found = judge(X, Y)[1].label_confidence
    yield "Zipf, 30 tags", flags(truth, Y, found, found)


def flags(truth: Array, Y: Array, confidence: Array, before: Array) -> dict[str, float]:
    """Precision and recall of what is flagged, and the mean change of confidences."""
    chosen = Y == 1
    flagged, false = confidence[chosen] < EVEN_ODDS, truth[chosen] == 0
    hits = float((flagged & false).sum())
    return {
        "precision": hits / max(flagged.sum(), 1),
        "recall": hits / max(false.sum(), 1),
        "change": float(abs(confidence - before)[chosen].mean()),
    }


def without_noise(quick: bool) -> Figures:
    """The share of right tags that is flagged."""
    sizes = [(10, 2), (60, 500)] if quick else list(product(ROWS, COLUMNS))
    for shape, (n, d) in product((linear, clusters), sizes):
        X, Y = shape(n, d, np.random.default_rng(n + d))
        yield f"{shape.__name__} {n} x {d}", {"flagged": flagged(X, Y)}
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 3))
    yield "12 random rows", {"flagged": flagged(X, (rng.random((12, 4)) < 0.5).astype(np.uint8))}
    X = rng.normal(size=(100, 5))
    yield "every label is given", {"flagged": flagged(X, np.ones((100, 4), np.uint8))}


def linear(n: int, d: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Features, and five labels that are linear in two of them."""
    X = rng.normal(size=(n, d))
    return X, (X[:, :2] @ rng.normal(size=(2, 5)) > 0.5).astype(np.uint8)


def clusters(n: int, d: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Features around five centres, and the labels of each centre."""
    of_each = rng.integers(5, size=n)
    labels = np.eye(5, dtype=np.uint8) | (rng.random((5, 5)) < 0.2)
    return rng.normal(size=(n, d)) + 3 * rng.normal(size=(5, d))[of_each], labels[of_each]


def flagged(X: Array, Y: Array) -> float:
    """The share of the tags with a label confidence below a half."""
    return float((judge(X, Y)[1].label_confidence[Y == 1] < EVEN_ODDS).mean())


def odd_labels(n: int) -> Figures:
    """What labels of odd shape get."""
    rng = np.random.default_rng(0)
    X, truth, Y = items(n, np.full(6, 0.25), rng)
    few = Y.copy()
    few[:, 0] = 0
    few[rng.choice(n, 3, replace=False), 0] = 1
    many = np.hstack([rare_tags(n, 1000, rng), (rng.random((n, 1000)) < 0.02).astype(np.uint8)])
    cases = {
        "all true": np.column_stack([truth[:, 0], Y[:, 1:]]),
        "all false": np.column_stack([(truth[:, 0] == 0) & (Y[:, 0] == 1), Y[:, 1:]]),
        "three candidates": few,
        "two columns alike": np.hstack([Y, Y[:, :1]]),
        "one set for all rows": np.tile(Y[:1] | np.eye(1, 6, dtype=np.uint8), (n, 1)),
        "one label": Y[:, :1],
        "2000, half of them once": many,
    }
    for name, labels in cases.items():
        labels = labels.astype(np.uint8)
        yield name, sound(judge(X, labels)[1], labels)


def sound(judged: JudgedLabels, Y: Array) -> dict[str, float]:
    """The extremes of confidence, and whether everything is a probability and in order."""
    given, noise = judged.label_confidence[Y == 1], judged.noise
    used = Y.any(axis=0)
    ends = [each[used] for each in (noise.lower, noise.rates, noise.upper)]
    ordered = all((low <= high + 1e-12).all() for low, high in zip(ends, ends[1:], strict=False))
    finite = np.isfinite(given).all() and (given > 0).all() and (given <= 1).all()
    return {"least": given.min(), "greatest": given.max(), "sound": float(finite and ordered)}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="the smallest cases")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep the figures here too")
    options = parser.parse_args()
    n = FEW if options.quick else ITEMS
    parts = {
        "rare tags": long_tail(n),
        "no noise": without_noise(options.quick),
        "odd labels": odd_labels(min(n, FEW)),
    }
    kept: dict[str, float] = {}
    with one_blas_thread():
        for part, cases in parts.items():
            print(part)
            for name, figures in tqdm(cases, part, disable=None, leave=False):
                told = "  ".join(f"{key} {value:.3f}" for key, value in figures.items())
                tqdm.write(f"  {name:26}{told}")
                kept |= {f"{name}.{key}": float(value) for key, value in figures.items()}
    if options.json:
        options.json.write_text(json.dumps(kept, indent=2) + "\n")


if __name__ == "__main__":
    main()
