"""What the answers of a person are worth: a simulated reviewer on real sets.

`python -m benchmarks.review [--quick] [--json FILE] [--draws N] [CASE ...]` makes candidates of a
data set's truth by a kind of noise, a CASE such as emotions:pad (`real`: the set brings its own;
emotions:pad:2 is its third draw alone), and has a reviewer who knows the truth answer 50, 100, 200
and 500 questions, in the order of

    queue        `wscpml queue`: what is worth most, spread over labels, a fifth of it random
    erring       the same, but one answer in twenty is wrong
    random       any undecided candidate
    suspicious   the lowest label confidence first
    cleanlab     the lowest of cleanlab's scores first, by an out-of-fold random forest

Whatever the order, all candidates are judged again in the light of the answers after each round.
Told of the candidates that are not decided: ROC AUC and calibration error. Of all: how many tags
are handled wrongly (false ones that are kept and, after the +, true ones that are dropped). Of
kernel ridge regression that is trained on the result: average precision on a fifth of the rows that
is held out. Figures are means over draws of the noise and of that fifth. A measured case is kept in
--json at once, and not measured again while it is there. `--quick`: emotions, padded, one draw, two
orders. `--limits` tells what answers could give at best: the ROC AUC of predictions alone, as if
all labels had one chance of noise; that of the label confidence without answers; that of logistic
regression on its log odds, with an offset for each label, which has been told the truth of all
candidates that it is measured on; how many tags these two handle wrongly; and how many times as
many wrong tags as in random order the best order of asking finds, by the share that is false.
"""

import argparse
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from cleanlab.internal.multilabel_utils import onehot2int
from cleanlab.multilabel_classification.rank import get_label_quality_scores_per_class
from scipy import sparse
from scipy.special import logit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from tqdm import tqdm

from benchmarks import label_noise
from wscpml.algorithm import composition
from wscpml.algorithm.composition import TrainingRows
from wscpml.arrays import EVEN_ODDS, Array, to_dense
from wscpml.datasets import benchmarks
from wscpml.devices import one_blas_thread
from wscpml.parameters import ClassifierSettings, FeatureSettings
from wscpml.quality import judging, queue
from wscpml.quality.decisions import Decided
from wscpml.quality.judging import JudgedLabels, Opinion, Predict, Predictor
from wscpml.randomness import stream

CASES = (
    "emotions:pad",
    "emotions:per_label",
    "emotions:label_dependent",
    "medical:pad",
    "image:pad",
    "image:per_label",
    "image:label_dependent",
    "yeast:pad",
    "yeast:per_label",
    "yeast:label_dependent",
    "Mirflickr:real",
    "YeastBP:real",
)
ORDERS = ("queue", "erring", "random", "suspicious", "cleanlab")
ANSWERS = (0, 50, 100, 200, 500)
ERRS = 1 / 20
DRAWS, FOLDS = 3, 5
LIMITS = ("one_chance", "start", "all", "wrong_start", "wrong_all", "times_random")
FIGURES = ("auc", "error", "kept", "dropped", "found", "precision")


class Reviewed:
    """Candidates of a set, a fifth of whose rows is held out, and who is asked about them."""

    def __init__(self, name: str, kind: str, draw: int) -> None:
        given = label_noise.load(name, kind, draw)
        fold = stream(draw, "split").permutation(np.arange(len(given.truth)) % FOLDS)
        self.test = fold == draw % FOLDS
        self.given, self.rng = given, np.random.default_rng(draw)
        self.Y, self.truth = given.candidates[~self.test], given.truth[~self.test]
        X = given.X[~self.test]
        self.rows = composition.represent(X, FeatureSettings(), np.random.default_rng(0))
        self.unseen = self.rows.feature_map(given.X[self.test])
        self.lottery = queue.Lottery(*map(range, self.Y.shape))
        self.predict = first_kept(self.rows, self.Y)
        self.unanswered = judging.judge_by(self.predict, self.Y, Decided.nothing())

    def predictions(self) -> Array:
        """The chance of each label to be a candidate, by the features alone, ``(n, q)``."""
        live, found = judging.can_be_judged(self.Y), np.zeros(self.Y.shape)
        found[:, live] = self.predict(self.Y[:, live].astype(float), None).unseen
        return found

    def by_cleanlab(self) -> Array:
        """cleanlab's scores of the candidates, ``(n, q)``."""
        X = to_dense(self.given.X[~self.test])
        forest = label_noise.peers(sparse_features=False)["rf"]
        probabilities = label_noise.out_of_fold(forest, X, self.Y)
        return get_label_quality_scores_per_class(onehot2int(self.Y), probabilities)

    def figures(self, judged: JudgedLabels, decided: Decided) -> dict[str, float]:
        """What is told of one round."""
        confidence, rest = judged.label_confidence, decided.undecided(self.Y) == 1
        found = judging.identification(self.truth[rest], confidence[rest])
        kept, every = confidence >= EVEN_ODDS, self.Y == 1
        settings = ClassifierSettings(kind="kernel_ridge", labels="cleaned")
        targets = (self.Y, confidence, confidence, judged.noise.weight)
        head = composition.train(self.rows, *targets, settings, np.random.default_rng(0)).head
        truth = self.given.truth[self.test]
        values = (
            found["auc"],
            found["calibration_error"],
            (every & kept & (self.truth == 0)).sum(),
            (every & ~kept & (self.truth == 1)).sum(),
            (self.truth[decided.row, decided.label] == 0).sum(),
            benchmarks.precision(truth, head.predict_proba(self.unseen)),
        )
        return {name: float(value) for name, value in zip(FIGURES, values, strict=True)}  # type: ignore[arg-type]

    def course(self, order: str) -> list[dict[str, float]]:
        """The figures after each number of answers."""
        scores = self.by_cleanlab() if order == "cleanlab" else None
        decided, judged = Decided.nothing(), self.unanswered
        told = [self.figures(judged, decided)]
        for answers in ANSWERS[1:]:
            more = answers - len(decided.row)
            row, label = self.asked(order, judged, decided, more, scores)
            true = self.truth[row, label] == 1
            if order == "erring":
                true ^= self.rng.random(len(true)) < ERRS
            decided = Decided(
                np.append(decided.row, row),
                np.append(decided.label, label),
                np.append(decided.true, true),
            )
            judged = judging.judge_by(self.predict, self.Y, decided)
            told.append(self.figures(judged, decided))
        return told

    def asked(
        self, order: str, judged: JudgedLabels, decided: Decided, more: int, scores: Array | None
    ) -> tuple[Array, Array]:
        """Row and label of the next candidates."""
        if order in ("queue", "erring"):
            return queue.choose(judged.label_confidence, self.Y, decided, more, self.lottery)[:2]
        row, label = np.nonzero(decided.undecided(self.Y))
        if order == "random":
            first = self.rng.permutation(len(row))
        else:
            by = judged.label_confidence if scores is None else scores
            first = np.argsort(by[row, label], kind="stable")
        return row[first[:more]], label[first[:more]]


def drawn(case: str, draws: int) -> Iterator[Reviewed]:
    """So many draws of a case, or the one that it names."""
    name, kind, *one = case.split(":")
    chosen = [int(draw) for draw in one] or range(draws)
    for draw in tqdm(chosen, case, disable=None, leave=False):
        yield Reviewed(name, kind, draw)


def first_kept(rows: TrainingRows, Y: Array) -> Predict:
    """The predictor of `judging.judge`, whose predictions of the candidates are made only once."""
    given = Y[:, judging.can_be_judged(Y)]
    made: list[Opinion] = []

    def predict(targets: Array, before: Predictor | None) -> Opinion:
        if before is not None:
            return judging.predict_unseen(rows, given, targets, before, seed=0)
        if not made:
            made.append(judging.predict_unseen(rows, given, targets, seed=0))
        return made[0]

    return predict


def at_best(case: str, draws: int) -> dict[str, float]:
    """What is known without answers, and what could be known with all of them, means over draws."""
    each = []
    for reviewed in drawn(case, draws):
        row, label = np.nonzero(reviewed.Y)
        true = reviewed.truth[row, label]
        sure = reviewed.unanswered.label_confidence[row, label]
        offsets = sparse.csr_array((np.ones(len(label)), (np.arange(len(label)), label)))
        known = sparse.hstack([logit(sure)[:, None], offsets], format="csr")
        told = LogisticRegression(C=100, max_iter=1000).fit(known, true).decision_function(known)
        scores = reviewed.predictions()[row, label], sure, told
        wrong = [((logit(sure) >= 0) != true).sum(), ((told >= 0) != true).sum()]
        ranked = [roc_auc_score(true, score) for score in scores]
        each.append((*ranked, *wrong, 1 / (true == 0).mean()))
    return dict(zip(LIMITS, np.mean(each, axis=0).tolist(), strict=True))


def measure(case: str, draws: int, orders: tuple[str, ...]) -> dict[str, float]:
    """Means of all figures over the draws, by order, answers and figure."""
    each = [
        {
            f"{order}.{answers}.{figure}": value
            for order in orders
            for answers, told in zip(ANSWERS, reviewed.course(order), strict=True)
            for figure, value in told.items()
        }
        for reviewed in drawn(case, draws)
    ]
    return {key: float(np.mean([figures[key] for figures in each])) for key in each[0]}


def rows(case: str, found: dict[str, float], orders: tuple[str, ...]) -> str:
    """The lines of a case, one for each order."""

    def cells(order: str, form: Any) -> str:
        return "".join(form(lambda f, k=k: found[f"{order}.{k}.{f}"]) for k in ANSWERS)

    return "\n".join(
        f"{case if order == orders[0] else '':26}{order:11}"
        + cells(order, lambda of: f"{of('auc'):6.3f}")
        + " |"
        + cells(order, lambda of: f"{of('error'):6.3f}")
        + " |"
        + cells(order, lambda of: f"{of('kept'):6.0f}{'+' + format(of('dropped'), '.0f'):<6}")
        + "|"
        + cells(order, lambda of: f"{of('precision'):6.3f}")
        for order in orders
    )


HEAD = "\n".join(
    [
        f"{'':37}{'ROC AUC of the rest':>30} |{'calibration error of the rest':>30} |"
        f"{'tags handled wrongly, of all':>60}|{'average precision':>30}",
        f"{'set and noise':26}{'order':11}"
        + "".join(f"{k:6}" for k in ANSWERS)
        + " |"
        + "".join(f"{k:6}" for k in ANSWERS)
        + " |"
        + "".join(f"{k:6}{'':6}" for k in ANSWERS)
        + "|"
        + "".join(f"{k:6}" for k in ANSWERS),
    ]
)


def limits(cases: Iterable[str], draws: int) -> dict[str, float]:
    """Print what answers could give at best, and give all of it."""
    kept: dict[str, float] = {}
    print(f"{'':26}{'ROC AUC':>28}{'handled wrongly':>20}")
    print(
        f"{'set and noise':26}{'one chance':>11}{'no answer':>10}{'all':>7}"
        f"{'no answer':>14}{'all':>6}{'times random':>14}"
    )
    for case in cases:
        found = at_best(case, draws)
        form = "{one_chance:11.3f}{start:10.3f}{all:7.3f}{wrong_start:14.0f}{wrong_all:6.0f}"
        told = (form + "{times_random:14.1f}").format(**found)
        print(f"{case:26}{told}", flush=True)
        kept |= {f"{case}.{key}": value for key, value in found.items()}
    return kept


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one set, one draw, two orders")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep the figures here too")
    parser.add_argument("--draws", type=int, default=DRAWS, metavar="N", help="of the noise")
    parser.add_argument(
        "--limits", action="store_true", help="only what answers could give at best"
    )
    parser.add_argument("cases", nargs="*", metavar="CASE", help="such as emotions:pad")
    options = parser.parse_args()
    cases = options.cases or (CASES[:1] if options.quick else CASES)
    draws, orders = (1, ("queue", "random")) if options.quick else (options.draws, ORDERS)
    kept = json.loads(options.json.read_text()) if options.json and options.json.exists() else {}
    there = set(benchmarks.available(dict.fromkeys(case.split(":")[0] for case in cases)))
    cases = tuple(case for case in cases if case.split(":")[0] in there)
    if options.limits:
        with one_blas_thread():
            figures = limits(cases, draws)
        if options.json:
            options.json.write_text(json.dumps(figures, indent=2) + "\n")
        return
    print(HEAD, flush=True)
    with one_blas_thread():
        for case in cases:
            mine = f"{case}."
            known = {k.removeprefix(mine): v for k, v in kept.items() if k.startswith(mine)}
            found = known or measure(case, draws, orders)
            print(rows(case, found, orders), flush=True)
            kept |= {f"{case}.{key}": value for key, value in found.items()}
            if options.json:
                options.json.write_text(json.dumps(kept, indent=2) + "\n")


if __name__ == "__main__":
    main()
