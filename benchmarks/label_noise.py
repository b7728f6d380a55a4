"""How well wrong labels are found, beside cleanlab, and what training without them is worth.

`python -m benchmarks.label_noise [--quick] [--json FILE] [--draws N] [--kinds KIND,...] [SET ...]`
makes candidates of a data set's truth by each kind of noise (`real`: the set brings its own), and
measures on the same candidates

1. our label confidence against cleanlab's scores from out-of-fold logistic regression (C = 0.01,
   which does better here than 1) and random forest, and against the frequency of the label alone:
   ROC AUC; `given` is ours by the forest's scores alone (`wscpml.label_confidence`), which are all
   that cleanlab has; of ours also precision and recall of the flags (below a half) and calibration
   error;
   processor seconds without imports and reading; which kind of noise was found;
2. kernel ridge regression trained on the candidates, on our cleaned labels and on the truth:
   average precision on rows that are held out, and which share of the gap between candidates and
   truth the cleaned labels close. `limit` is training on as many rows with the truth as the
   candidates are worth under uniform noise: a noisy label carries (1 - rho) p / (p + (1 - p) rho)
   of a clean one's information.

Figures are means over the draws of the noise. A measured row is kept in --json at once, and not
measured again while it is there. `--quick`: emotions, padded, one draw, one fold. `--given`
measures nothing but the forest and `given`, and how long cleanlab and we take for the same scores:
its `score` is a label's probability itself, its `issues` (`find_label_issues`) estimate the noise
in one process, and `called` is what that takes as it is called, with processes of its own, by the
clock.
`--limits` measures what can be known at best: ours; ours with the true chance of each label in the
place of what is believed of it; and, with that chance, an out-of-fold forest that has learned the
truth; and the calibration error of ours where no remark names the label.
"""

import argparse
import json
import time
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import get_args
from unittest.mock import patch

import numpy as np
from cleanlab.internal.multilabel_utils import onehot2int
from cleanlab.multilabel_classification.filter import find_label_issues
from cleanlab.multilabel_classification.rank import get_label_quality_scores_per_class
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tqdm import tqdm

from wscpml import label_confidence
from wscpml.algorithm import composition
from wscpml.algorithm.composition import TrainingRows
from wscpml.arrays import EVEN_ODDS, Array, Matrix, compact, to_dense
from wscpml.datasets import benchmarks, noise
from wscpml.datasets.registry import REGISTRY
from wscpml.devices import one_blas_thread
from wscpml.parameters import ClassifierSettings, FeatureSettings
from wscpml.quality import judging, noise_model
from wscpml.quality.judging import JudgedLabels
from wscpml.randomness import stream

CHOSEN_ON = ("emotions", "birds", "yeast")  # settings were chosen on these, the others are unseen
SETS = (*CHOSEN_ON, "image", "medical")
REAL = ("Mirflickr",)
KINDS: tuple[noise.Kind, ...] = get_args(noise.Kind)
RATES = {"per_label": 0.25, "per_row": 0.25, "twins": 0.5}  # of the others: see `rate_of`
MOST = 0.3  # share of the false labels that become candidates, at most
DRAWS, FOLDS = 3, 5
WIDE = 1000  # features from which sparse ones stay sparse


@dataclass(frozen=True)
class Noisy:
    """A data set with candidates."""

    X: Matrix  # (n, d)
    truth: Array  # (n, q)
    candidates: Array  # (n, q)


def load(name: str, kind: str, draw: int) -> Noisy:
    """A set with one draw of a kind of noise."""
    data = REGISTRY[name].load()
    X, truth = compact(data.features), data.truth
    assert truth is not None
    if kind == "real":
        assert data.candidates is not None
        return Noisy(X, truth, data.candidates)
    levels = REGISTRY[name].levels
    rate = RATES.get(kind, rate_of(truth))
    padded = levels[len(levels) // 2] if levels else None
    rng = stream(draw, "noise")
    return Noisy(X, truth, noise.inject(kind, truth, X, padded, rate, 0.0, rng))  # type: ignore[arg-type]


def rate_of(truth: Array) -> float:
    """Share of the false labels to add; of many labels at most twice as many as are true."""
    true = float(truth.sum(axis=1).mean())
    return min(MOST, 2 * true / (truth.shape[1] - true))


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
        "rf": RandomForestClassifier(200, min_samples_leaf=3, random_state=0, n_jobs=-1),
    }


def out_of_fold(model: object, X: Matrix, Y: Array) -> Array:
    """Probabilities of a model for each fifth of the rows, fitted to the others, ``(n, q)``."""
    found = np.zeros(Y.shape)
    for train, test in KFold(5, shuffle=True, random_state=0).split(X):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Label not", UserWarning)  # it is in all rows
            fitted = clone(model).fit(X[train], Y[train])
        probabilities = fitted.predict_proba(X[test])
        if isinstance(probabilities, list):  # of both values of each label, or of its only one
            pairs = zip(probabilities, fitted.classes_, strict=True)
            probabilities = np.column_stack([p @ (known == 1) for p, known in pairs])
        found[test] = probabilities
    return found


def ranking(given: Noisy) -> Iterator[tuple[str, float | str]]:
    """Figures of the first part."""
    Y, chosen = given.candidates, given.candidates == 1
    true = given.truth[chosen]
    start = time.process_time()
    _, judged = judge(given.X, Y)
    yield "ours.seconds", time.process_time() - start
    confidence = judged.label_confidence[chosen]
    for name, value in judging.identification(true, confidence).items():
        if value is not None:
            yield f"ours.{name}", value
    yield from flags(true, confidence)
    yield "false", (true == 0).mean()
    yield "estimated_false", 1 - confidence.mean()
    yield "weight", judged.noise.weight
    yield "kind", judged.noise.kind
    frequency = np.broadcast_to(Y.mean(axis=0), Y.shape)[chosen]
    yield "frequency.auc", roc_auc_score(true, frequency)
    yield from beside(given)


def flags(true: Array, confidence: Array) -> Iterator[tuple[str, float]]:
    """Precision and recall of what has a confidence below a half."""
    flagged, false = confidence < EVEN_ODDS, true == 0
    hits = (flagged & false).sum()
    yield "flags.precision", hits / flagged.sum() if flagged.any() else np.nan
    yield "flags.recall", hits / max(false.sum(), 1)


def beside(
    given: Noisy, names: tuple[str, ...] = ("lr", "rf"), as_called: bool = False
) -> Iterator[tuple[str, float]]:
    """Figures of cleanlab's scores by some models, and of ours by those of the forest."""
    X, Y, chosen = given.X, given.candidates, given.candidates == 1
    true = given.truth[chosen]
    stays_sparse = sparse.issparse(X) and X.shape[1] > WIDE
    X = sparse.csr_matrix(X) if stays_sparse else to_dense(X)
    for name in names:
        start = time.process_time()
        predicted = out_of_fold(peers(stays_sparse)[name], X, Y)
        middle = time.process_time()
        labels = onehot2int(Y)
        scores = get_label_quality_scores_per_class(labels, predicted)
        end = time.process_time()
        yield f"{name}.seconds", end - start
        yield f"{name}.scoring_seconds", end - middle
        yield f"{name}.auc", roc_auc_score(true, scores[chosen])
        if name == "rf":
            start = time.process_time()
            find_label_issues(labels, predicted, "self_confidence", n_jobs=1)
            yield "rf.issues_seconds", time.process_time() - start
            if as_called:
                start = time.perf_counter()
                find_label_issues(labels, predicted, "self_confidence")
                yield "rf.called_seconds", time.perf_counter() - start
            start = time.process_time()
            confidence = label_confidence(Y, predicted)
            yield "given.seconds", time.process_time() - start
            yield "given.auc", roc_auc_score(true, confidence[chosen])


def training(given: Noisy, folds: int, draw: int) -> dict[str, float]:
    """Average precision of kernel ridge regression on the kinds of labels."""
    found: dict[str, list[float | None]] = {}
    fold = stream(draw, "split").permutation(np.arange(len(given.truth)) % FOLDS)
    for held_out in range(folds):
        test = fold == held_out
        Y, truth = given.candidates[~test], given.truth[~test]
        rows, judged = judge(given.X[~test], Y)
        unseen = rows.feature_map(given.X[test])
        learned = {
            "candidates": ("printed", Y, Y),
            "cleaned": ("cleaned", Y, judged.label_confidence),
            "truth": ("printed", truth, truth),
        }
        for name, (labels, negatives, targets) in learned.items():
            settings = ClassifierSettings(kind="kernel_ridge", labels=labels)  # type: ignore[arg-type]
            head = composition.train(
                rows,
                negatives,
                targets,
                targets,
                judged.noise.weight,
                settings,
                np.random.default_rng(0),
            ).head
            precision = benchmarks.precision(given.truth[test], head.predict_proba(unseen))
            found.setdefault(name, []).append(precision)
        found.setdefault("limit", []).append(limit(given, test, truth, Y))
    return {f"ap.{name}": float(np.mean(values)) for name, values in found.items()}  # type: ignore[arg-type]


def limit(given: Noisy, test: Array, truth: Array, Y: Array) -> float | None:
    """Average precision of training on as many true rows as the candidates are worth."""
    p = truth.mean(axis=0)
    rho = float((truth < Y).sum() / max((truth == 0).sum(), 1))
    worth = (1 - rho) * p / np.maximum(p + (1 - p) * rho, 1e-12)
    share = float((worth * p).sum() / max(p.sum(), 1e-12))
    some = np.flatnonzero(~test)
    rng = np.random.default_rng(0)
    some = np.sort(rng.choice(some, max(2, round(share * len(some))), replace=False))
    rows = composition.represent(given.X[some], FeatureSettings(), np.random.default_rng(0))
    labels = given.truth[some]
    head = composition.closed_form(rows, labels, labels.astype(float)).head
    unseen = rows.feature_map(given.X[test])
    return benchmarks.precision(given.truth[test], head.predict_proba(unseen))


def measure(name: str, kind: str, draws: int, folds: int) -> dict[str, float | str]:
    """Means of all figures over the draws."""
    each: list[dict[str, float | str]] = []
    for draw in tqdm(range(draws), f"{name} {kind}", disable=None, leave=False):
        given = load(name, kind, draw)
        each.append(dict(ranking(given)) | training(given, folds, draw))
    kinds = [str(figures.pop("kind")) for figures in each]
    means: dict[str, float | str] = {
        key: _mean(float(figures[key]) for figures in each) for key in each[0]
    }
    candidates, cleaned, truth = (means[f"ap.{x}"] for x in ("candidates", "cleaned", "truth"))
    gap = truth - candidates  # type: ignore[operator]
    means["gap_closed"] = (cleaned - candidates) / gap if gap else np.nan  # type: ignore[operator]
    return means | {"kind": max(set(kinds), key=kinds.count), "draws": draws, "folds": folds}


HEAD = (
    f"{'':20}{'':>7}{'ROC AUC':>9}{'':>32}{'flags':>12}{'':>7}{'average precision':>34}{'gap':>7}"
    f"{'seconds':>9}\n"
    f"{'set and noise':20}{'false':>7}{'ours':>9}{'lr':>8}{'rf':>8}{'given':>8}{'freq.':>8}"
    f"{'P':>7}{'R':>6}{'error':>7}{'candid.':>9}{'cleaned':>9}{'limit':>8}{'truth':>8}{'closed':>8}{'ours':>7}"
    f"{'rf':>7}  found"
)


def row(name: str, kind: str, f: dict[str, float]) -> str:
    """A line of the table."""
    aucs = "".join(f"{f.get(f'{m}.auc', np.nan):8.3f}" for m in ("lr", "rf", "given", "frequency"))
    case = f"{name} {kind.replace('_dependent', '-dep.')}"
    return (
        f"{case:20}{f['false']:7.2f}{f['ours.auc']:9.3f}{aucs}"
        f"{f['flags.precision']:7.2f}{f['flags.recall']:6.2f}{f['ours.calibration_error']:7.3f}"
        f"{f['ap.candidates']:9.3f}{f['ap.cleaned']:9.3f}{f['ap.limit']:8.3f}{f['ap.truth']:8.3f}"
        f"{f['gap_closed']:8.0%}{f['ours.seconds']:7.1f}{f['rf.seconds']:7.1f}  {f['kind']}"
    )


def by_given_scores(names: Iterable[str], kinds: list[str], draws: int) -> dict[str, float]:
    """Print what we make of the forest's scores beside cleanlab, and give all of it."""
    found: dict[str, float] = {}
    print(f"{'':28}{'ROC AUC':>10}{'':>17}{'seconds':>8}")
    print(f"{'set and noise':28}{'cleanlab':>10}{'given':>8}{'more':>9}{'forest':>8}", end="")
    print(f"{'score':>8}{'issues':>8}{'called':>8}{'given':>8}")
    for name in names:
        for kind in ["real"] if name in REAL else kinds:
            cases = range(1 if kind == "real" else draws)
            each = [dict(beside(load(name, kind, draw), ("rf",), True)) for draw in cases]
            f = {key: float(np.mean([case[key] for case in each])) for key in each[0]}
            forest, more = f["rf.seconds"] - f["rf.scoring_seconds"], f["given.auc"] - f["rf.auc"]
            print(
                f"{f'{name} {kind}':28}{f['rf.auc']:10.4f}{f['given.auc']:8.4f}{more:+9.4f}"
                f"{forest:8.1f}{f['rf.scoring_seconds']:8.3f}{f['rf.issues_seconds']:8.3f}"
                f"{f['rf.called_seconds']:8.3f}{f['given.seconds']:8.3f}",
                flush=True,
            )
            found |= {f"{name} {kind}.{key}": value for key, value in f.items()}
    return found


def limits(given: Noisy) -> Iterator[tuple[str, float]]:
    """Figures of ours, with the true chances of labels, and with the truth learned besides."""
    Y, chosen = given.candidates, given.candidates == 1
    live = judging.can_be_judged(Y)
    chances = (given.truth < Y).sum(axis=0) / np.maximum((given.truth == 0).sum(axis=0), 1)
    nearest = abs(noise_model.RATES[:, None] - chances[live]).argmin(axis=0)
    beliefs = np.eye(len(noise_model.RATES))[:, nearest]
    found = judge(given.X, Y)[1]
    with (
        patch.object(noise_model, "believed", lambda *_: beliefs),
        patch.object(noise_model, "seen_noise", lambda _: 1.0),
    ):
        told = judge(given.X, Y)[1].label_confidence
    forest = peers(False)["rf"]
    learned = judging.posterior(out_of_fold(forest, to_dense(given.X), given.truth), chances)
    cases = {"ours": found.label_confidence, "chances": told, "truth": learned}
    for name, confidence in cases.items():
        true, sure = given.truth[chosen], confidence[chosen]
        yield f"{name}.error", judging.identification(true, sure)["calibration_error"] or np.nan
        for figure, value in flags(true, sure):
            yield f"{name}.{figure}", value
    quiet = chosen & ~named(found.noise, Y.shape[1])
    error = judging.identification(given.truth[quiet], found.label_confidence[quiet])
    yield "quiet.share", quiet.sum() / chosen.sum()
    yield "quiet.error", error["calibration_error"] or np.nan


def named(noise: judging.Noise, q: int) -> Array:
    """Which of q labels a remark is about, ``(q,)``; one without labels is about all of them."""
    found = np.zeros(q, bool)
    for remark in noise.warnings:
        found[remark.labels or slice(None)] = True
    return found


def at_best(names: Iterable[str], kinds: list[str], draws: int) -> dict[str, float]:
    """Print what can be known at best, and give all of it."""
    found: dict[str, float] = {}
    print(f"{'':28}{'ours':>13}{'':7}{'chances known':>20}{'truth learned':>20}{'no remark':>14}")
    print(
        f"{'set and noise':28}" + f"{'P':>7}{'R':>6}{'error':>7}" * 3 + f"{'share':>7}{'error':>7}"
    )
    for name, kind in product(names, kinds):
        each = [dict(limits(load(name, kind, draw))) for draw in range(draws)]
        f = {key: _mean(case[key] for case in each) for key in each[0]}
        ours, chances, truth = (
            f"{f[f'{m}.flags.precision']:7.2f}{f[f'{m}.flags.recall']:6.2f}{f[f'{m}.error']:7.3f}"
            for m in ("ours", "chances", "truth")
        )
        quiet = f"{f['quiet.share']:7.2f}{f['quiet.error']:7.3f}"
        print(f"{f'{name} {kind}':28}{ours}{chances}{truth}{quiet}", flush=True)
        found |= {f"{name} {kind}.{key}": value for key, value in f.items()}
    return found


def _mean(values: Iterable[float]) -> float:
    """The mean of the figures that there are."""
    there = [value for value in values if not np.isnan(value)]
    return float(np.mean(there)) if there else np.nan


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="emotions, padded, one draw and fold")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep the figures here too")
    parser.add_argument("--draws", type=int, default=DRAWS, metavar="N", help="of the noise")
    parser.add_argument("--kinds", default=",".join(KINDS), help="of noise, separated by commas")
    parser.add_argument(
        "--given", action="store_true", help="only what we make of the forest's scores"
    )
    parser.add_argument("--limits", action="store_true", help="only what can be known at best")
    parser.add_argument("names", nargs="*", metavar="SET", help="such as emotions")
    options = parser.parse_args()
    names = options.names or (SETS[:1] if options.quick else (*SETS, *REAL))
    kinds = ["pad"] if options.quick else options.kinds.split(",")
    draws, folds = (1, 1) if options.quick else (options.draws, FOLDS)
    kept = json.loads(options.json.read_text()) if options.json and options.json.exists() else {}
    judge(np.eye(20), np.eye(20, 3, dtype=np.uint8))  # what is imported late is, by now
    if options.given or options.limits:
        part = by_given_scores if options.given else at_best
        with one_blas_thread():
            figures = part(benchmarks.available(names), kinds, draws)
        if options.json:
            options.json.write_text(json.dumps(figures, indent=2) + "\n")
        return
    found: dict[str, dict[str, float]] = {}
    print(HEAD, flush=True)
    with one_blas_thread():  # threads that wait would count as seconds
        for name, kind in product(benchmarks.available(names), kinds):
            if name in REAL:
                kind = "real"
            if (key := f"{name} {kind}") in found:
                continue
            known = {k.partition(".")[2]: v for k, v in kept.items() if k.startswith(f"{key}.")}
            found[key] = known or measure(name, kind, 1 if kind == "real" else draws, folds)
            print(row(name, kind, found[key]), flush=True)
            if options.json:
                flat = {f"{k}.{figure}": v for k, f in found.items() for figure, v in f.items()}
                options.json.write_text(json.dumps(kept | flat, indent=2) + "\n")
    best = {key: max(f["lr.auc"], f["rf.auc"]) for key, f in found.items()}
    above = sum(f["ours.auc"] > best[key] for key, f in found.items())
    losses = [f["ap.cleaned"] - f["ap.candidates"] for f in found.values()]
    print(f"\nAUC above cleanlab's best model in {above} of {len(found)} cases;", end=" ")
    print(
        f"cleaned labels are worth {min(losses):+.4f} at least, {np.mean(losses):+.4f} on average"
    )


if __name__ == "__main__":
    main()
