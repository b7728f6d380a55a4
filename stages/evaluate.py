"""Score the predictions for the held-out rows, and the pseudo-labels of the training rows."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from wscpml import artifacts
from wscpml.algorithm import composition, features, prototypes
from wscpml.arrays import Array, Matrix, known_rows, to_dense, values_at
from wscpml.evaluation import figures, metrics
from wscpml.quality import audit, evidence, issues, judging
from wscpml.quality.decisions import Decided
from wscpml.quality.evidence import Evidence
from wscpml.serving.model import load
from wscpml.settings import Settings

from . import inputs, run

MADE = Path("models/wsc-pml")
SHOWN = ("B", "pi", "F", "label_confidence")  # as histograms
PSEUDO_LABEL = "the pseudo-label F of the method, which is no probability"


def evaluate(settings: Settings) -> None:
    """Write the metrics as files, a picture of them all, and the audit of the training rows."""
    truth = to_dense(inputs.truth("test"))
    predictions = artifacts.read("data/predictions.parquet")
    scores = predictions.drop(columns="instance")
    labels = predicted_labels(scores, settings.evaluation.threshold)
    given, decided = inputs.candidates("train"), inputs.decided()
    candidates = decided.added_to(given)
    pseudo_labels = inputs.pseudo_labels("data/pseudo_labels.parquet", candidates)
    iterations, training = (
        artifacts.read(f"metrics/{name}.csv") for name in ("iterations", "training")
    )
    undecided = (pseudo_labels.decided == "").to_numpy()  # what a person decided is not found by us
    true = inputs.truth_of(candidates)[undecided]

    measured: dict[str, Any] = metrics.evaluate(truth, scores.to_numpy(), labels.to_numpy())
    told = pseudo_labels.drop(columns=["instance", "label", "decided"])
    quantities = {str(name): values.to_numpy() for name, values in told.items()}
    noise_auc = {
        name: metrics.noise_auc(true, each[undecided]) for name, each in quantities.items()
    }
    if settings.has_stages:
        measured["printed"] = of_printed_labels(truth, settings.evaluation.threshold)
        confidence = quantities["label_confidence"][undecided]
        found = judging.identification(true, confidence)
        found.pop("auc")  # is noise_auc.label_confidence below
        measured["label_confidence"] = found
    if len(decided.row):
        measured["decisions"] = of_decisions(settings, decided, given)
    known = truth[known_rows(truth)]
    per_label = pd.DataFrame(
        {
            "label": scores.columns,
            "frequency": known.sum(axis=0) / max(len(known), 1),
            "average_precision": metrics.label_average_precision(truth, scores.to_numpy()),
        }
    )
    nothing = np.full(len(true), np.nan)
    shown = {name: quantities[name][undecided] if name in quantities else nothing for name in SHOWN}
    histogram = metrics.candidate_histogram(true, shown)
    audited = audit_of(settings, candidates, quantities, decided)
    page = audit.render(audited)
    measured["labels"] = of_labels(settings, audited)

    if not len(truth):
        print("no rows are held out: the predictions were not measured", file=sys.stderr)
    predictions[scores.columns] = labels
    artifacts.write("data/predicted_labels.parquet", predictions)
    artifacts.write("metrics/per_label.csv", per_label)
    artifacts.write("metrics/candidates.csv", histogram)
    artifacts.write(
        "metrics/overview.png", figures.overview(iterations, training, per_label, histogram)
    )
    artifacts.write("metrics/audit.html", page)
    artifacts.write("metrics/evaluation.json", measured | {"noise_auc": noise_auc})


def predicted_labels(scores: pd.DataFrame, threshold: float) -> pd.DataFrame:
    """The labels that the method's own rule makes, or else the threshold."""
    by_rule = artifacts.read("data/labels_by_rule.parquet")
    if by_rule.empty:
        return (scores >= threshold).astype(np.uint8)
    return by_rule[scores.columns]


def of_decisions(settings: Settings, decided: Decided, candidates: Matrix) -> dict[str, Any]:
    """How many pairs of the training rows are decided, and how far we agreed before they were."""
    known = values_at(candidates, decided.row, decided.label)
    added = int((known == 0)[decided.true].sum())
    counts = {"count": len(decided.row), "true": int(decided.true.sum()), "added": added}
    if settings.has_stages:
        counts["agreement"] = artifacts.read(MADE / "noise.json")["agreement"]
    return counts


def of_labels(settings: Settings, audited: audit.Audit) -> dict[str, float | None]:
    """What can be said of the labels of the training rows without any truth.

    Only WSC-PML has probabilities that tags are true.
    """
    summary = audit.summary(audited)
    found: dict[str, float | None] = {"tags": summary.tags}
    if summary.decided:
        tagged = values_at(audited.candidates, audited.decided.row, audited.decided.label) == 1
        found["decided_share"] = int(tagged.sum()) / max(summary.tags, 1)
    if settings.has_stages:
        found["suspicious"] = summary.suspicious
        found["wrong_share"] = summary.wrong_share
        found["mean_confidence"] = 1 - summary.wrong_share
        found |= artifacts.read(MADE / "training.json")
    return found


def of_printed_labels(truth: Array, threshold: float) -> dict[str, float | None]:
    """The five metrics of the classifier that learned the paper's own labels."""
    model = load(MADE / "classifier")
    head = type(model.head)(**artifacts.read(MADE / "printed.safetensors"))
    scores = replace(model, head=head).predict_proba(inputs.raw_features("test")[:])
    return metrics.evaluate(truth, scores, scores >= threshold)


def audit_of(
    settings: Settings, candidates: Matrix, quantities: dict[str, Array], decided: Decided
) -> audit.Audit:
    """The audit of the training rows, by the label confidence of their candidates, or else by F."""
    judged = "label_confidence" in quantities
    values = quantities["label_confidence" if judged else "F"]
    confidence = decided.settle(inputs.of_candidates(values, candidates))
    instances = pd.Index(inputs.instances("train"))
    labels = artifacts.read("data/prepared/names.json")["labels"]
    noise = artifacts.read(MADE / "noise.json") if judged else {}
    absent = round(noise.get("missing", 0))
    missing = artifacts.read_matrix(MADE, "missing") if "lost" in noise else None
    listed = candidates if missing is None else candidates + (missing > 0)
    seen = evidence_of_stages(listed) if settings.has_stages else evidence_by(confidence, listed)
    return audit.Audit(
        settings.dataset.title if judged else f"{settings.dataset.title} by {settings.method}",
        instances,
        labels,
        candidates,
        confidence,
        issues.find(
            confidence,
            decided.undecided(candidates),
            seen,
            labels,
            instances,
            limit=audit.MOST_LISTED,
        ),
        seen,
        artifacts.read(MADE / "noise_rates.csv") if judged else None,
        noise.get("remarks", []),
        None if inputs.given("truth") is None else inputs.truth("train"),
        audit.PROBABILITY if judged else PSEUDO_LABEL,
        decided,
        inputs.shown("train"),
        None
        if missing is None
        else issues.find_missing(missing, seen, labels, instances, min(absent, audit.MOST_LISTED)),
        absent,
    )


def evidence_of_stages(listed: Matrix) -> Evidence:
    """The prototypes of the clustering, among the features that it saw."""
    feature_map = load(MADE / "classifier").feature_map
    scaled = composition.scaled_by(feature_map, inputs.raw_features("train"))
    return evidence.gather(scaled, artifacts.read(MADE / "cluster_prototypes.npy"), listed)


def evidence_by(weights: Matrix, listed: Matrix) -> Evidence:
    """For a method without prototypes, the centres of the labels by their weights."""
    X = inputs.raw_features("train")
    scaled = composition.scaled_by(features.fit_scaling(X, "quantile"), X)
    return evidence.gather(scaled, prototypes.centroids(scaled, weights), listed)


if __name__ == "__main__":
    run(evaluate)
