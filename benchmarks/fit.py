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

from benchmarks import ROOT
from wscpml import classifier, clustering, confidence, features, metrics, noise, prototypes, ridge
from wscpml.arrays import Array, compact
from wscpml.datasets.registry import REGISTRY, SETTINGS
from wscpml.randomness import stream
from wscpml.settings import Settings, load

HEADS = ("network", "kernel_ridge")
NAMES = ("emotions-4", "birds-4", "yeast-9", "medical-7", "image-3", "Mirflickr")


def measure(name: str, folds: int, settings: Settings) -> dict[str, float]:
    """Mean figures of one setting over its first folds."""
    dataset, r = SETTINGS.get(name, (name, 0))
    data = REGISTRY[dataset].load()
    X, truth = compact(data.features), data.truth
    assert truth is not None
    candidates = data.candidates
    if candidates is None:
        candidates = noise.pad_candidates(truth, r, stream(settings.seed, "noise"))
    split = stream(settings.seed, "split").permutation(np.arange(len(truth)) % settings.split.folds)
    rows = [
        one_fold(X, truth, candidates, split == fold, settings)
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
        "auc.pi": metrics.noise_auc(T[chosen], found.memberships.data) or np.nan,
        "auc.F": metrics.noise_auc(T[chosen], found.pseudo_labels.data) or np.nan,
    }
    for labels, negatives, targets in (
        ("candidates", Y, Y.astype(float)),
        ("pseudo_labels", Y, found.pseudo_labels.toarray()),
        ("truth", T, T.astype(float)),
    ):
        network, _ = classifier.fit(
            mapped,
            negatives,
            targets,
            **settings.classifier.model_dump(exclude={"kind"}),
            rng=stream(settings.seed, "classifier"),
        )
        closed_form = ridge.fit(mapped, negatives, targets)
        if labels == "candidates":
            left_out = closed_form.left_out[chosen]
            figures["auc.leave_one_out"] = metrics.noise_auc(T[chosen], left_out) or np.nan
        for kind, head in (("network", network), ("kernel_ridge", closed_form.head)):
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
        dataset = SETTINGS.get(name, (name, 0))[0]
        if REGISTRY[dataset].availability() not in ("here", "built in"):
            print(f"{name:14}not measured: set WSCPML_DATA, or `wscpml fetch {dataset}`")
            continue
        found = measure(name, folds, settings)
        figures |= {f"{name}.{key}": value for key, value in found.items()}
        print(f"{name:14}" + "".join(f"{found[column]:8.3f}" for column in columns), flush=True)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
