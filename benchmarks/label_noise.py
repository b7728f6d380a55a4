"""How well wrong labels are found, beside cleanlab, and what training without them is worth.

`python -m benchmarks.label_noise [--quick] [--json FILE] [BENCHMARK ...]`, on the same candidates:

1. our confidence against cleanlab's scores from out-of-fold logistic regression (C = 0.01, which
   does better here than 1), MLP and random forest, and against the frequency of the label alone:
   ROC AUC; of ours also the average precision of the false candidates, precision among the 5 %
   that are suspected most, and calibration error; processor seconds, without imports and reading;
2. flags: candidates that are more likely false than true, against those of cleanlab's best
   combination of a model and a filter (by F1), and our first as many as that flags;
3. the network and kernel ridge trained on candidates, on our confidences and on the truth: average
   precision on rows that are held out, and Hamming loss relative to that of training on the truth.

Where rows times labels are below 10,000, all figures are means over five draws of noise and folds.

`--quick`: emotions-4, one draw, one fold.
"""

import argparse
import json
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from itertools import chain, product
from pathlib import Path

import numpy as np
from cleanlab.internal.multilabel_utils import onehot2int
from cleanlab.multilabel_classification.filter import find_multilabel_issues_per_class
from cleanlab.multilabel_classification.rank import get_label_quality_scores_per_class
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, precision_score, recall_score, roc_auc_score
from sklearn.model_selection import KFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tqdm import tqdm

from wscpml.algorithm import composition
from wscpml.algorithm.composition import TrainingRows
from wscpml.arrays import EVEN_ODDS, Array, Matrix, to_dense
from wscpml.datasets import benchmarks
from wscpml.devices import one_blas_thread
from wscpml.parameters import ClassifierSettings, FeatureSettings
from wscpml.quality import judging
from wscpml.quality.judging import JudgedLabels

BENCHMARKS = (
    "emotions-3",
    "emotions-4",
    "emotions-5",
    "birds-4",
    "medical-7",
    "image-3",
    "yeast-7",
    "yeast-9",
    "Mirflickr",
    "corel5k-9",
    "YeastBP",
)
FILTERS = (
    "prune_by_noise_rate",
    "prune_by_class",
    "both",
    "confident_learning",
    "predicted_neq_given",
)
KINDS = ("network", "kernel_ridge")
FEW_FOLDS, MANY_PAIRS = 2, 500_000  # of ten folds, where rows times labels are so many
DRAWS, FEW_PAIRS = 5, 10_000  # of the noise, where they are so few that one is a matter of luck
WIDE = 1000  # features from which sparse ones stay sparse


def judge(X: Matrix, candidates: Array) -> tuple[TrainingRows, JudgedLabels]:
    """The rows as the method takes them, and how likely each candidate is to be true."""
    rows = composition.represent(X, FeatureSettings(), np.random.default_rng(0))
    return rows, judging.judge(rows, candidates, np.random.default_rng(0))


def peers(sparse_features: bool) -> dict[str, object]:
    """The models behind cleanlab's scores."""
    scale = StandardScaler(with_mean=not sparse_features)
    regression = OneVsRestClassifier(LogisticRegression(C=0.01, max_iter=1000))
    return {
        "lr": make_pipeline(scale, regression),
        "mlp": make_pipeline(scale, MLPClassifier(random_state=0)),
        "rf": RandomForestClassifier(200, min_samples_leaf=3, random_state=0, n_jobs=-1),
    }


def out_of_fold(model: object, X: Matrix, Y: Array) -> Array:
    """Probabilities of a model for each fifth of the rows, fitted to the others, ``(n, q)``."""
    found = np.zeros(Y.shape)
    for train, test in KFold(5, shuffle=True, random_state=0).split(X):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # of the MLP
            fitted = clone(model).fit(X[train], Y[train])
        probabilities = fitted.predict_proba(X[test])
        if isinstance(probabilities, list):  # of both values of each label, or of its only one
            pairs = zip(probabilities, fitted.classes_, strict=True)
            probabilities = np.column_stack([p @ (known == 1) for p, known in pairs])
        found[test] = probabilities
    return found


def ranking(given: benchmarks.Benchmark) -> Iterator[tuple[str, float | Array]]:
    """Figures of the first part, and under other names what the second part needs."""
    Y, chosen = given.candidates, given.candidates == 1
    true = given.truth[chosen]
    start = time.process_time()
    _, judged = judge(given.X, Y)
    yield "ours.seconds", time.process_time() - start
    yield "label_confidence", judged.label_confidence
    ours = judging.identification(true, judged.label_confidence[chosen])
    yield from ((f"ours.{name}", value) for name, value in ours.items() if value is not None)
    yield "false", 1 - true.mean()
    yield "estimated_false", 1 - judged.label_confidence[chosen].mean()
    frequency = np.broadcast_to(Y.mean(axis=0), Y.shape)[chosen]
    yield "frequency.auc", roc_auc_score(true, frequency)
    X, labels = given.X, onehot2int(Y)
    stays_sparse = sparse.issparse(X) and X.shape[1] > WIDE
    X = sparse.csr_matrix(X) if stays_sparse else to_dense(X)
    best = -1.0
    for name, model in peers(stays_sparse).items():
        start = time.process_time()
        probabilities = out_of_fold(model, X, Y)
        scores = get_label_quality_scores_per_class(labels, probabilities)
        yield f"{name}.seconds", time.process_time() - start
        yield f"{name}.auc", roc_auc_score(true, scores[chosen])
        for way in FILTERS:
            flagged = find_multilabel_issues_per_class(
                labels, probabilities, filter_by=way, n_jobs=1
            )[chosen]
            if (f1 := f1_score(true == 0, flagged)) > best:
                best, best_flags, best_name = f1, flagged, f"{name} {way}"
    yield "cleanlab_best", best_name
    yield "cleanlab_flags", best_flags


def flags(true: Array, confidence: Array, theirs: Array) -> dict[str, float]:
    """Precision and recall of the flags, by the confidences of the candidates."""
    as_many = np.zeros(len(true), bool)
    as_many[np.argsort(confidence, kind="stable")[: int(theirs.sum())]] = True
    sets = {"ours": confidence < EVEN_ODDS, "ours_as_many": as_many, "cleanlab": theirs}
    return {
        f"flags.{name}.{measure.__name__.removesuffix('_score')}": measure(
            true == 0, flagged, zero_division=0
        )
        for name, flagged in sets.items()
        for measure in (precision_score, recall_score)
    }


def training(given: benchmarks.Benchmark, folds: int) -> dict[str, float]:
    """Average precision and Hamming loss of both classifiers on the kinds of labels."""
    found: dict[str, list[float]] = {}
    for fold in tqdm(range(folds), "folds", disable=None, leave=False):
        test = given.fold == fold
        Y, truth = given.candidates[~test], given.truth[~test]
        rows, judged = judge(given.X[~test], Y)
        unseen = rows.feature_map(given.X[test])
        learned = {
            "candidates": ("printed", Y, Y),
            "cleaned": ("cleaned", Y, judged.label_confidence),
            "truth": ("printed", truth, truth),
        }
        for kind, (name, (labels, given_labels, targets)) in product(KINDS, learned.items()):
            settings = ClassifierSettings(kind=kind, labels=labels)
            weight = judged.noise.weight
            head = composition.train(
                rows, given_labels, targets, targets, weight, settings, np.random.default_rng(0)
            ).head
            scores = head.predict_proba(unseen)
            wrong = (scores >= EVEN_ODDS) != given.truth[test]
            for figure, value in (
                ("average_precision", benchmarks.precision(given.truth[test], scores)),
                ("hamming_loss", wrong.mean()),
            ):
                found.setdefault(f"{kind}.{name}.{figure}", []).append(value)
    return {name: float(np.mean(values)) for name, values in found.items()}


def measure(given: benchmarks.Benchmark, quick: bool) -> dict[str, float | str]:
    """All figures of a benchmark."""
    figures = dict(ranking(given))
    confidence, theirs = figures.pop("label_confidence"), figures.pop("cleanlab_flags")
    chosen = given.candidates == 1
    figures |= flags(given.truth[chosen], confidence[chosen], theirs)
    folds = FEW_FOLDS if chosen.size > MANY_PAIRS else 10
    figures["folds"] = 1 if quick else folds
    return figures | training(given, int(figures["folds"]))


def over_draws(name: str, quick: bool) -> dict[str, float | str]:
    """Means of all figures over draws of the noise and the folds, of which few pairs need more."""
    given = benchmarks.load(name, 0)
    draws = DRAWS if given.candidates.size < FEW_PAIRS and not quick else 1
    rest = (benchmarks.load(name, seed) for seed in range(1, draws))
    each = [
        measure(one, quick)
        for one in tqdm(chain([given], rest), "draws", draws, disable=None, leave=False)
    ]
    ((best, times),) = Counter(figures.pop("cleanlab_best") for figures in each).most_common(1)
    means = {key: float(np.mean([figures[key] for figures in each])) for key in each[0]}
    told = best if draws == 1 else f"{best} ({times} of {draws} draws)"
    return means | {"cleanlab_best": told, "draws": draws}


RANKING = (
    f"{'':12}{'':>7}{'ROC AUC':>10}{'':>32}{'of ours':>24}{'seconds':>15}\n"
    f"{'benchmark':12}{'false':>7}{'ours':>10}{'lr':>8}{'mlp':>8}{'rf':>8}{'freq.':>8}"
    f"{'AP':>8}{'top 5%':>8}{'error':>8}{'ours':>8}{'rf':>8}"
)
FLAGS = f"{'benchmark':12}{'ours':>16}{'as many':>16}{'cleanlab':>16}  P / R; its model and filter"
TRAINING_ROW = (
    f"{'':12}{'':>7}{'network':>38}{'kernel ridge':>38}\n{'benchmark':12}{'folds':>7}"
    + f"{'candid.':>10}{'cleaned':>9}{'truth':>8}{'Hamming':>11}" * 2
)


def rows(name: str, f: dict[str, float]) -> tuple[str, str, str]:
    """A benchmark's rows of the three tables."""
    aucs = "".join(f"{f[f'{model}.auc']:8.4f}" for model in ("lr", "mlp", "rf", "frequency"))
    quality = "".join(
        f"{f[f'ours.{key}']:8.3f}"
        for key in ("average_precision", "precision_top_5", "calibration_error")
    )
    first = (
        f"{name:12}{f['false']:7.3f}{f['ours.auc']:10.4f}{aucs}{quality}"
        f"{f['ours.seconds']:8.1f}{f['rf.seconds']:8.1f}"
    )
    second = f"{name:12}"
    for kind in ("ours", "ours_as_many", "cleanlab"):
        pair = f"{f[f'flags.{kind}.precision']:.3f} / {f[f'flags.{kind}.recall']:.3f}"
        second += f"{pair:>16}"
    third = f"{name:12}{f['draws'] * f['folds']:7.0f}"
    for kind in ("network", "kernel_ridge"):
        candidates, cleaned, truth = (
            f[f"{kind}.{labels}.average_precision"] for labels in ("candidates", "cleaned", "truth")
        )
        times = f[f"{kind}.cleaned.hamming_loss"] / f[f"{kind}.truth.hamming_loss"]
        third += f"{candidates:10.4f}{cleaned:9.4f}{truth:8.4f}{times:9.2f} x"
    return first, f"{second}  {f['cleanlab_best']}", third


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="emotions-4, one draw, one fold")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here too")
    parser.add_argument("names", nargs="*", metavar="BENCHMARK", help="such as emotions-4")
    options = parser.parse_args()
    names = options.names or (BENCHMARKS[1:2] if options.quick else BENCHMARKS)
    judge(np.eye(20), np.eye(20, 3, dtype=np.uint8))  # what is imported late is, by now
    found = {}
    with one_blas_thread():  # threads that wait would count as seconds
        for name in tqdm(list(benchmarks.available(names)), disable=None, leave=False):
            found[name] = over_draws(name, options.quick)
    tables = zip(*(rows(name, figures) for name, figures in found.items()), strict=True)
    for head, lines in zip((RANKING, FLAGS, TRAINING_ROW), tables, strict=False):
        print("\n".join([head, *lines]), end="\n\n")
    best = {name: max(f[f"{m}.auc"] for m in ("lr", "mlp", "rf")) for name, f in found.items()}
    higher = sum(f["ours.auc"] > best[name] for name, f in found.items())
    quicker = sum(f["ours.seconds"] < f["rf.seconds"] for f in found.values())
    print(f"AUC above cleanlab's best model on {higher} of {len(found)} benchmarks,", end=" ")
    print(f"in less time than its forest on {quicker}")
    for kind in ("network", "kernel_ridge"):
        gains = [
            f[f"{kind}.cleaned.average_precision"] - f[f"{kind}.candidates.average_precision"]
            for f in found.values()
        ]
        won = sum(gain > 0 for gain in gains)
        print(f"{kind}: cleaned labels are worth more than candidates on {won}", end=" ")
        print(f"of {len(found)}; the least is {min(gains, default=np.nan):+.4f}")
    if options.json:
        flat = {f"{name}.{key}": value for name, f in found.items() for key, value in f.items()}
        options.json.write_text(json.dumps(flat, indent=2) + "\n")


if __name__ == "__main__":
    main()
