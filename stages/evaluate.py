"""Score the predictions for the held-out rows, and the pseudo-labels of the training rows."""

import sys
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from stages import inputs, run
from wscpml import artifacts
from wscpml.algorithm import features, prototypes
from wscpml.arrays import Array, Rows
from wscpml.evaluation import figures, metrics
from wscpml.quality import audit, issues, judging
from wscpml.settings import Settings

PSEUDO_LABEL = "the pseudo-label F of the method, which is no probability"


def evaluate(settings: Settings) -> None:
    """Write the metrics as files, a picture of them all, and the audit of the training rows."""
    truth = inputs.truth("test")
    scores, labels = (
        artifacts.read(f"data/{name}.parquet").drop(columns="instance")
        for name in ("predictions", "predicted_labels")
    )
    candidates = inputs.candidates("train")
    pseudo_labels = inputs.pseudo_labels("data/pseudo_labels.parquet")
    courses = [artifacts.read(f"metrics/{name}.csv") for name in ("iterations", "training")]
    true = inputs.truth("train")[candidates == 1]

    measured: dict[str, Any] = metrics.evaluate(truth, scores.to_numpy(), labels.to_numpy())
    quantities = pseudo_labels.drop(columns=["instance", "label"])
    noise_auc = {name: metrics.noise_auc(true, quantities[name]) for name in quantities}
    if "confidence" in quantities:
        measured["confidence"] = judging.identification(true, quantities.confidence)
    per_label = pd.DataFrame(
        {
            "label": scores.columns,
            "frequency": truth.sum(axis=0) / max(len(truth), 1),
            "average_precision": metrics.label_average_precision(truth, scores.to_numpy()),
        }
    )
    shown = quantities.reindex(columns=["B", "pi", "F", "confidence"])
    histogram = metrics.candidate_histogram(true, shown)
    page = audit.render(audited(settings, candidates, quantities))

    if not len(truth):
        print("no rows are held out: the predictions were not measured", file=sys.stderr)
    artifacts.write("metrics/per_label.csv", per_label)
    artifacts.write("metrics/candidates.csv", histogram)
    artifacts.write("metrics/overview.png", figures.overview(*courses, per_label, histogram))
    artifacts.write("metrics/audit.html", page)
    artifacts.write("metrics/evaluation.json", measured | {"noise_auc": noise_auc})


def audited(settings: Settings, candidates: Array, quantities: pd.DataFrame) -> audit.Audit:
    """The audit of the training rows, by the confidence of their candidates, or else by F."""
    judged = "confidence" in quantities
    confidence = np.zeros(candidates.shape)
    confidence[candidates == 1] = quantities["confidence" if judged else "F"]
    X = inputs.raw_features("train")
    scale = features.fit_scaling(X, "quantile").scale
    scaled = scale(X) if sparse.issparse(X) else Rows(X.matrix, X.chosen, scale)
    centres = prototypes.centroids(scaled, confidence)
    instances = pd.Index(inputs.instances("train"))
    labels = artifacts.read("data/prepared/names.json")["labels"]
    order = issues.by_distance(scaled, centres)
    return audit.Audit(
        settings.dataset.title if judged else f"{settings.dataset.title} by {settings.method}",
        instances,
        labels,
        candidates,
        confidence,
        issues.find(confidence, candidates, order, labels, instances),
        *audit.positions(scaled, centres),
        None if inputs.given("truth") is None else inputs.truth("train"),
        audit.PROBABILITY if judged else PSEUDO_LABEL,
    )


if __name__ == "__main__":
    run(evaluate)
