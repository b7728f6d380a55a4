"""How well missing labels are found, beside cleanlab, and what it costs to look for them.

`python -m benchmarks.missing_labels [--quick] [--json FILE] [--draws N] [SET ...]` takes 20 % of
the true labels of a data set away (a row keeps at least one), with no other noise or after uniform
noise, and measures on the same candidates

1. which labels are true that are no candidates: ROC AUC of our probability and of cleanlab's scores
   from out-of-fold logistic regression and random forest; the share of true labels that is lost,
   and our estimate of it; how far probabilities are from the shares that are true, by tenths;
2. which candidates are false: ROC AUC of the label confidence, told that labels may be missing and
   told that none is; and the second again where none is missing.

Figures are means over the draws of the noise. `--quick`: emotions, uniform noise, one draw.
"""

import argparse
import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
from cleanlab.internal.multilabel_utils import onehot2int
from cleanlab.multilabel_classification.rank import get_label_quality_scores_per_class
from scipy import sparse
from sklearn.metrics import roc_auc_score
from tqdm import tqdm

from benchmarks.label_noise import DRAWS, SETS, WIDE, out_of_fold, peers, rate_of
from wscpml.algorithm import composition
from wscpml.arrays import Array, compact, to_dense
from wscpml.datasets import benchmarks, noise
from wscpml.datasets.registry import REGISTRY
from wscpml.devices import one_blas_thread
from wscpml.parameters import FeatureSettings
from wscpml.quality import judging
from wscpml.randomness import stream

LOST = 0.2  # share of the true labels
KINDS = ("none", "uniform")


def measure(name: str, kind: str, draw: int) -> Iterator[tuple[str, float]]:
    """All figures of one draw of the noise."""
    data = REGISTRY[name].load()
    X, truth = compact(data.features), data.truth
    assert truth is not None
    rng = stream(draw, "noise")
    noisy = noise.uniform(truth, rate_of(truth), rng) if kind == "uniform" else truth
    Y = noise.lose(truth, noisy, LOST, rng)
    rows = composition.represent(X, FeatureSettings(), np.random.default_rng(0))

    def judged(candidates: Array, complete: bool) -> judging.JudgedLabels:
        return judging.judge(rows, candidates, np.random.default_rng(0), complete=complete)

    ours, absent = judged(Y, complete=False), Y == 0
    assert ours.missing is not None
    yield "lost", ((truth == 1) & absent).sum() / truth.sum()
    yield "estimated_lost", ours.noise.lost or 0.0
    found = judging.identification(truth[absent], ours.missing[absent])
    yield "ours.auc", found["auc"] or np.nan
    yield "ours.calibration_error", found["calibration_error"] or np.nan
    stays_sparse = sparse.issparse(X) and X.shape[1] > WIDE
    features = sparse.csr_matrix(X) if stays_sparse else to_dense(X)
    for peer, model in peers(stays_sparse).items():
        scores = get_label_quality_scores_per_class(onehot2int(Y), out_of_fold(model, features, Y))
        yield f"{peer}.auc", roc_auc_score(truth[absent] == 0, scores[absent])
    if kind == "uniform":
        yield "wrong.told", wrong_found(truth, Y, ours)
        yield "wrong.not_told", wrong_found(truth, Y, judged(Y, complete=True))
        yield "wrong.none_lost.told", wrong_found(truth, noisy, judged(noisy, complete=False))
        yield "wrong.none_lost", wrong_found(truth, noisy, judged(noisy, complete=True))


def wrong_found(truth: Array, candidates: Array, judged: judging.JudgedLabels) -> float:
    """ROC AUC of the label confidence among the candidates."""
    chosen = candidates == 1
    return float(roc_auc_score(truth[chosen], judged.label_confidence[chosen]))


HEAD = (
    f"{'':18}{'':>7}{'':>10}{'missing labels':>24}{'':>7}{'wrong labels':>16}{'none missing':>18}\n"
    f"{'set and noise':18}{'lost':>7}{'estimate':>10}{'ours':>8}{'lr':>8}{'rf':>8}{'error':>7}"
    f"{'told':>8}{'not':>8}{'told':>10}{'not':>8}"
)


def row(case: str, f: dict[str, float]) -> str:
    """A line of the table."""
    line = f"{case:18}{f['lost']:7.2f}{f['estimated_lost']:10.2f}"
    line += "".join(f"{f[f'{each}.auc']:8.3f}" for each in ("ours", "lr", "rf"))
    line += f"{f['ours.calibration_error']:7.3f}"
    if "wrong.told" in f:
        line += f"{f['wrong.told']:8.3f}{f['wrong.not_told']:8.3f}"
        line += f"{f['wrong.none_lost.told']:10.3f}{f['wrong.none_lost']:8.3f}"
    return line


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="emotions, uniform noise, one draw")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep the figures here too")
    parser.add_argument("--draws", type=int, default=DRAWS, metavar="N", help="of the noise")
    parser.add_argument("names", nargs="*", metavar="SET", help="such as emotions")
    options = parser.parse_args()
    names = options.names or (SETS[:1] if options.quick else SETS)
    draws = 1 if options.quick else options.draws
    kept = json.loads(options.json.read_text()) if options.json and options.json.exists() else {}
    print(HEAD, flush=True)
    with one_blas_thread():
        for name, kind in product(benchmarks.available(names), KINDS[options.quick :]):
            case = f"{name} {kind}"
            if f"{case}.lost" not in kept:
                every = tqdm(range(draws), case, disable=None, leave=False)
                each = [dict(measure(name, kind, draw)) for draw in every]
                figures = {key: float(np.mean([one[key] for one in each])) for key in each[0]}
                kept |= {f"{case}.{key}": value for key, value in figures.items()}
                if options.json:
                    options.json.write_text(json.dumps(kept, indent=2) + "\n")
            found = {k.removeprefix(f"{case}."): v for k, v in kept.items() if k.startswith(case)}
            print(row(case, found), flush=True)


if __name__ == "__main__":
    main()
