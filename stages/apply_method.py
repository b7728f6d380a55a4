"""Apply the method: its pseudo-labels for the training rows, its predictions for the others.

WSC-PML has been fitted by stages of its own; any other method is fitted here.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from wscpml import artifacts
from wscpml.algorithm.ridge import Ridge
from wscpml.arrays import Array, to_dense
from wscpml.errors import UserError
from wscpml.methods import method
from wscpml.randomness import stream
from wscpml.serving.model import load
from wscpml.settings import Settings, parameters

from . import inputs, run

MADE = Path("models/wsc-pml")  # by the stages of WSC-PML
MOST_IN_CSV = 1_000_000  # candidates


@dataclass(frozen=True)
class Applied:
    """What a method says, whichever it is."""

    pseudo_labels: pd.DataFrame  # a row for each candidate of the training rows, given or added
    probabilities: Array  # (n, q), of the test rows
    labels: Array | None  # (n, q), of the test rows, where the method has a rule of its own
    iterations: pd.DataFrame
    training: pd.DataFrame


def apply_method(settings: Settings) -> None:
    """Write pseudo-labels, predictions, and the course of the method."""
    applied = from_stages() if settings.has_stages else fitted_here(settings)
    artifacts.write("data/pseudo_labels.parquet", applied.pseudo_labels)
    artifacts.write("data/pseudo_labels.csv", for_people(applied.pseudo_labels))
    artifacts.write("data/predictions.parquet", of_test_rows(applied.probabilities))
    by_rule = pd.DataFrame()
    if applied.labels is not None:
        by_rule = of_test_rows(applied.labels.astype(np.uint8))
    artifacts.write("data/labels_by_rule.parquet", by_rule)
    artifacts.write("metrics/iterations.csv", applied.iterations)
    artifacts.write("metrics/training.csv", applied.training)


def for_people(pseudo_labels: pd.DataFrame) -> pd.DataFrame:
    """The rows that the CSV file has: all, or of very many the most suspicious, in their order."""
    if len(pseudo_labels) <= MOST_IN_CSV:
        return pseudo_labels
    print(
        f"data/pseudo_labels.csv: has the {MOST_IN_CSV} most suspicious of {len(pseudo_labels)} "
        "candidates; data/pseudo_labels.parquet has all",
        file=sys.stderr,
    )
    judged = "label_confidence" if "label_confidence" in pseudo_labels else "F"
    worst_first = np.argsort(pseudo_labels[judged].to_numpy(), kind="stable")
    return pseudo_labels.iloc[np.sort(worst_first[:MOST_IN_CSV])]


def from_stages() -> Applied:
    """What the stages of WSC-PML have made."""
    model = load(MADE / "classifier")
    candidates, decided = inputs.candidates("train"), inputs.decided()
    known = decided.added_to(candidates)
    table = inputs.pseudo_labels(MADE / "pseudo_labels.parquet", candidates)
    columns = {}
    for name in ("B", "pi", "F"):
        whole = inputs.of_candidates(table[name], candidates)
        columns[name] = inputs.at_candidates(whole, known).astype(table[name].to_numpy().dtype)
    columns["label_confidence"] = artifacts.read(MADE / "label_confidence.npy")
    if isinstance(model.head, Ridge):
        left_out = artifacts.read(MADE / "classifier/leave_one_out.npy")
        columns["leave_one_out"] = left_out
    pseudo_labels = inputs.candidate_table(known, **columns, decided=decided.words(known))
    return Applied(
        pseudo_labels,
        model.predict_proba(inputs.raw_features("test")[:]),
        None,
        artifacts.read(MADE / "clustering.csv"),
        artifacts.read(MADE / "training.csv"),
    )


def fitted_here(settings: Settings) -> Applied:
    """What a method to compare with finds on the raw features."""
    kind = method(settings.method)
    fitted = kind(**parameters(settings.method))
    fitted.set_params(random_state=stream(settings.seed, "method"))
    candidates, decided = inputs.candidates("train"), inputs.decided()
    known = decided.added_to(candidates)
    given = to_dense(inputs.truth("train")) if kind.NEEDS_TRUTH else decided.settle(candidates)
    if kind.NEEDS_TRUTH and (given < 0).any():
        raise UserError(f"method: {settings.method} needs true labels, and the data set has none")
    fitted.fit(inputs.raw_features("train")[:], given)

    X = inputs.raw_features("test")[:]
    probabilities = labels = np.empty((0, candidates.shape[1]))
    if X.shape[0]:
        probabilities, labels = fitted.predict_proba(X), fitted.predict(X)
    course = {"iteration": range(1, len(fitted.objective_) + 1), "objective": fitted.objective_}
    return Applied(
        inputs.candidate_table(
            known,
            F=inputs.at_candidates(fitted.pseudo_labels_, known),
            decided=decided.words(known),
        ),
        probabilities,
        labels if kind.OWN_RULE else None,
        pd.DataFrame(course),
        pd.DataFrame(columns=["step", "training_loss", "validation_loss"]),
    )


def of_test_rows(values: Array) -> pd.DataFrame:
    """A column for each label, beside the instances' ids."""
    names = artifacts.read("data/prepared/names.json")
    table = pd.DataFrame(values, columns=names["labels"])
    table.insert(0, "instance", inputs.instances("test"))
    return table


if __name__ == "__main__":
    run(apply_method)
