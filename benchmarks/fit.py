"""How well the classifiers do with the committed settings, on noisy and on true labels.

`python -m benchmarks.fit [--quick] [--json FILE] [BENCHMARK ...]` trains both kinds of classifier
on every fold of each benchmark, the networks of all folds at once: on the candidates as they are,
on the pseudo-labels, and on the truth (the ceiling). It prints the mean average precision on the
held-out rows, and how well pi, F and the ridge's leave-one-out predictions tell true candidates
from false ones (ROC AUC). Sets whose files are not there are left out by name. `--quick`: two folds
of yeast-9.
"""

import argparse
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from tqdm import tqdm

from benchmarks import ROOT
from wscpml.algorithm import composition, network, ridge
from wscpml.arrays import Array, Matrix
from wscpml.datasets import benchmarks
from wscpml.devices import one_blas_thread
from wscpml.evaluation import metrics
from wscpml.parameters import NetworkSettings, part_of
from wscpml.randomness import streams
from wscpml.settings import Settings, load

HEADS = ("network", "kernel_ridge")
LABELS = ("candidates", "pseudo_labels", "truth")
NAMES = ("emotions-4", "birds-4", "yeast-9", "medical-7", "image-3", "Mirflickr", "corel5k-9")


@dataclass(frozen=True)
class Fold:
    """One fold on its way: mapped features of both sides, labels, and what the clustering found."""

    mapped: Array
    test: Array
    candidates: Array
    truth: Array
    test_truth: Array
    memberships: Array
    pseudo_labels: Array


def one_fold(X: Matrix, truth: Array, candidates: Array, test: Array, settings: Settings) -> Fold:
    """Map and cluster as the pipeline's stages do."""
    Y = candidates[~test]
    rows = composition.represent(X[~test], settings.features, streams(settings.seed).anchors)
    B = composition.supervise(rows.scaled, Y, settings.weak_supervision)
    found = composition.cluster(rows.scaled, Y, B, settings.clustering)
    return Fold(
        mapped=rows.mapped,
        test=rows.feature_map(X[test]),
        candidates=Y,
        truth=truth[~test],
        test_truth=truth[test],
        memberships=found.memberships.data,
        pseudo_labels=found.pseudo_labels.toarray(),
    )


def first_folds(name: str, count: int, settings: Settings) -> list[Fold]:
    """The first folds of a benchmark."""
    given = benchmarks.load(name, settings.seed, settings.split.folds)
    return [
        one_fold(given.X, given.truth, given.candidates, given.fold == fold, settings)
        for fold in tqdm(range(count), desc=name, disable=None, leave=False)
    ]


def measure(folds: list[Fold], settings: Settings) -> dict[str, float]:
    """Mean figures of some folds."""
    figures = {
        "auc.pi": _mean(metrics.noise_auc(_of_candidates(f), f.memberships) for f in folds),
        "auc.F": _mean(
            metrics.noise_auc(_of_candidates(f), f.pseudo_labels[f.candidates == 1]) for f in folds
        ),
    }
    for labels in LABELS:
        targets = [getattr(fold, labels) for fold in folds]
        negatives = [f.truth if labels == "truth" else f.candidates for f in folds]
        pairs = list(zip(folds, negatives, targets, strict=True))
        networks = network.fit_all(
            [
                network.Problem(f.mapped, Y, F, streams(settings.seed).classifier)
                for f, Y, F in pairs
            ],
            **asdict(part_of(settings.classifier, NetworkSettings)),
        )
        closed_forms = [ridge.fit(f.mapped, Y, F) for f, Y, F in pairs]
        if labels == "candidates":
            figures["auc.leave_one_out"] = _mean(
                metrics.noise_auc(_of_candidates(f), fitted.left_out[f.candidates == 1])
                for f, fitted in zip(folds, closed_forms, strict=True)
            )
        heads = {
            "network": [trained for trained, _ in networks],
            "kernel_ridge": [fitted.head for fitted in closed_forms],
        }
        for kind in HEADS:
            figures[f"{kind}.{labels}"] = _mean(
                benchmarks.precision(fold.test_truth, head.predict_proba(fold.test))
                for fold, head in zip(folds, heads[kind], strict=True)
            )
    return figures


def _of_candidates(fold: Fold) -> Array:
    """Which candidates of the training rows are true."""
    return fold.truth[fold.candidates == 1]


def _mean(values: Iterable[float | None]) -> float:
    return float(np.mean([np.nan if value is None else value for value in values]))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="two folds of yeast-9")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here too")
    parser.add_argument(
        "names", nargs="*", default=NAMES, metavar="BENCHMARK", help="such as birds-4"
    )
    options = parser.parse_args()
    settings = load(ROOT / "params.yaml")
    names, folds = (("yeast-9",), 2) if options.quick else (options.names, settings.split.folds)
    figures: dict[str, float] = {}
    kinds = [f"{k}.{on}" for on in LABELS for k in HEADS]
    columns = [*kinds, "auc.pi", "auc.F", "auc.leave_one_out"]
    print(f"{'':14}{'candidates':>16}{'pseudo-labels':>16}{'truth':>16}{'AUC of':>10}")
    print(
        f"{'benchmark':14}"
        + "".join(f"{k:>8}" for k in ["net", "ridge"] * 3 + ["pi", "F", "l.o.o."])
    )
    for name in benchmarks.available(names):
        with one_blas_thread():  # as the stages do
            found = measure(first_folds(name, folds, settings), settings)
        figures |= {f"{name}.{key}": value for key, value in found.items()}
        print(f"{name:14}" + "".join(f"{found[column]:8.3f}" for column in columns), flush=True)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
