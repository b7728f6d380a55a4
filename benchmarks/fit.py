"""How well the classifiers do with the committed settings, on noisy and on true labels.

`python -m benchmarks.fit [--quick] [--json FILE] [SETTING ...]` trains both kinds of classifier on
each fold of each setting, on the candidates as they are, on the pseudo-labels, and on the truth
(the ceiling), and prints the mean average precision on the held-out rows; and how well pi, F and
the ridge's leave-one-out predictions tell true candidates from false ones (ROC AUC). Sets whose
files are not there are left out by name. `--quick`: two folds of yeast-9.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from benchmarks import ROOT, data
from wscpml import classifier, clustering, confidence, features, metrics, prototypes, ridge
from wscpml.arrays import Array
from wscpml.randomness import stream
from wscpml.settings import Settings, load

HEADS = ("network", "kernel_ridge")
NAMES = ("emotions-4", "birds-4", "yeast-9", "medical-7", "image-3", "Mirflickr")


def measure(name: str, folds: int, settings: Settings) -> dict[str, float]:
    """Mean figures of one setting over its first folds."""
    given = data.load(name, settings.seed, settings.split.folds)
    rows = [
        one_fold(given.X, given.truth, given.candidates, given.fold == fold, settings)
        for fold in tqdm(range(folds), desc=name, disable=None, leave=False)
    ]
    return {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}


def one_fold(
    X: Any, truth: Array, candidates: Array, test: Array, settings: Settings
) -> dict[str, float]:
    """Figures of one fold, as the pipeline's stages would reach them."""
    Y, T = candidates[~test], truth[~test]
    anchors = stream(settings.seed, "anchors")
    feature_map = features.fit(X[~test], **settings.features.model_dump(), rng=anchors)
    scaled, mapped = feature_map.scale(X[~test]), feature_map(X[~test])
    B = confidence.build(scaled, Y, *prototypes.learn(scaled, Y), settings.confidence.theta)
    found = clustering.cluster(scaled, Y, B, **settings.clustering.model_dump())
    chosen = Y == 1
    figures = {
        "auc.pi": metrics.noise_auc(T[chosen], found.memberships[chosen]) or np.nan,
        "auc.F": metrics.noise_auc(T[chosen], found.pseudo_labels[chosen]) or np.nan,
    }
    kernel = feature_map.anchor_kernel()
    for labels, negatives, targets in (
        ("candidates", Y, Y.astype(float)),
        ("pseudo_labels", Y, found.pseudo_labels),
        ("truth", T, T.astype(float)),
    ):
        network, _ = classifier.fit(
            mapped,
            negatives,
            targets,
            **settings.classifier.model_dump(exclude={"kind"}),
            rng=stream(settings.seed, "classifier"),
        )
        closed_form, left_out, _ = ridge.fit(mapped, negatives, targets, kernel)
        if labels == "candidates":
            figures["auc.leave_one_out"] = metrics.noise_auc(T[chosen], left_out[chosen]) or np.nan
        for kind, head in (("network", network), ("kernel_ridge", closed_form)):
            scores = head.predict_proba(feature_map(X[test]))
            measured = metrics.evaluate(truth[test], scores, settings.evaluation.threshold)
            figures[f"{kind}.{labels}"] = measured["average_precision"] or np.nan
    return figures


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="two folds of yeast-9")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here too")
    parser.add_argument(
        "names", nargs="*", default=NAMES, metavar="SETTING", help="such as birds-4"
    )
    options = parser.parse_args()
    settings = load(ROOT / "params.yaml")
    names, folds = (("yeast-9",), 2) if options.quick else (options.names, settings.split.folds)
    figures: dict[str, float] = {}
    kinds = [f"{k}.{on}" for on in ("candidates", "pseudo_labels", "truth") for k in HEADS]
    columns = [*kinds, "auc.pi", "auc.F", "auc.leave_one_out"]
    print(f"{'':14}{'candidates':>16}{'pseudo-labels':>16}{'truth':>16}{'AUC of':>10}")
    print(
        f"{'setting':14}" + "".join(f"{k:>8}" for k in ["net", "ridge"] * 3 + ["pi", "F", "l.o.o."])
    )
    for name in names:
        if reason := data.missing(name):
            print(f"{name:14}{reason}")
            continue
        found = measure(name, folds, settings)
        figures |= {f"{name}.{key}": value for key, value in found.items()}
        print(f"{name:14}" + "".join(f"{found[column]:8.3f}" for column in columns), flush=True)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
