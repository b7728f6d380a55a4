"""What the votes of several taggers are worth, beside the features.

`python -m benchmarks.votes [--quick] [--json FILE] [--draws N] [--kinds KIND,...] [SET ...]` makes
candidates as `benchmarks.label_noise` does, and says that each was given by at least one of five
taggers: one of them gives a true label with a chance of 60 %, and a false one with the chance at
which five of them give it as often as it is a candidate. On the same candidates, ROC AUC and
calibration error of the label confidence

    alone      without votes
    votes      with them
    nothing    with votes that are drawn alike for true and false candidates

and the ROC AUC of the count of votes by itself. Figures are means over the draws. `--quick`:
emotions, uniform noise, one draw.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from scipy.stats import binom
from sklearn.metrics import roc_auc_score
from tqdm import tqdm

from benchmarks.label_noise import SETS, Noisy, load
from wscpml.algorithm import composition
from wscpml.arrays import Array
from wscpml.datasets import benchmarks
from wscpml.devices import one_blas_thread
from wscpml.parameters import FeatureSettings
from wscpml.quality import judging

KINDS = ("pad", "uniform", "per_label", "label_dependent", "instance_dependent")
TAGGERS, GIVES = 5, 0.6  # how many there are, and their chance to give a true label
DRAWS = 3


def cast(given: Noisy, rng: np.random.Generator) -> Array:
    """Votes ``(n, q)``, at least one for each candidate."""
    false = given.truth == 0
    rate = ((given.candidates == 1) & false).sum(axis=0) / np.maximum(false.sum(axis=0), 1)
    chance = np.where(false, 1 - (1 - np.clip(rate, 1e-3, 0.999)) ** (1 / TAGGERS), GIVES)
    return at_least_one(chance, given.candidates, rng)


def at_least_one(chance: Array, candidates: Array, rng: np.random.Generator) -> Array:
    """How many of the taggers give a candidate, drawn as if it were known that one does."""
    none = binom.pmf(0, TAGGERS, chance)
    drawn = binom.ppf(none + (1 - none) * rng.random(chance.shape), TAGGERS, chance)
    return np.where(candidates == 1, drawn, 0)


def figures(given: Noisy, draw: int) -> dict[str, float]:
    """All figures of one draw."""
    rng, chosen = np.random.default_rng(draw), given.candidates == 1
    votes = cast(given, rng)
    nothing = at_least_one(np.full(votes.shape, GIVES / 2), given.candidates, rng)
    rows = composition.represent(given.X, FeatureSettings(), np.random.default_rng(0))
    true = given.truth[chosen]
    found = {"count.auc": float(roc_auc_score(true, votes[chosen]))}
    for name, each in (("alone", None), ("votes", votes), ("nothing", nothing)):
        judged = judging.judge(rows, given.candidates, np.random.default_rng(0), votes=each)
        told = judging.identification(true, judged.label_confidence[chosen])
        found |= {f"{name}.{key}": value for key, value in told.items() if value is not None}
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="emotions, uniform noise, one draw")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep the figures here too")
    parser.add_argument("--draws", type=int, default=DRAWS, metavar="N", help="of the noise")
    parser.add_argument("--kinds", default=",".join(KINDS), help="of noise, separated by commas")
    parser.add_argument("names", nargs="*", metavar="SET", help="such as emotions")
    options = parser.parse_args()
    names = options.names or (SETS[:1] if options.quick else SETS)
    kinds = ["uniform"] if options.quick else options.kinds.split(",")
    draws = 1 if options.quick else options.draws
    kept: dict[str, float] = {}
    print(f"{'':28}{'ROC AUC':>9}{'':24}{'calibration error':>17}")
    print(f"{'set and noise':28}{'alone':>9}{'votes':>8}{'nothing':>9}{'count':>8}", end="")
    print(f"{'alone':>8}{'votes':>8}{'nothing':>9}")
    with one_blas_thread():
        for name in benchmarks.available(names):
            for kind in kinds:
                cases = tqdm(range(draws), f"{name} {kind}", disable=None, leave=False)
                each = [figures(load(name, kind, draw), draw) for draw in cases]
                f = {key: float(np.mean([case[key] for case in each])) for key in each[0]}
                print(
                    f"{f'{name} {kind}':28}{f['alone.auc']:9.3f}{f['votes.auc']:8.3f}"
                    f"{f['nothing.auc']:9.3f}{f['count.auc']:8.3f}"
                    f"{f['alone.calibration_error']:8.3f}{f['votes.calibration_error']:8.3f}"
                    f"{f['nothing.calibration_error']:9.3f}",
                    flush=True,
                )
                kept |= {f"{name} {kind}.{key}": value for key, value in f.items()}
    if options.json:
        options.json.write_text(json.dumps(kept, indent=2) + "\n")


if __name__ == "__main__":
    main()
