"""Score the predictions for the held-out rows, and the pseudo-labels of the training rows."""

import sys
from typing import Any

import pandas as pd

from stages import inputs, run
from wscpml import artifacts, figures, label_quality, metrics
from wscpml.settings import Settings


def evaluate(settings: Settings) -> None:  # noqa: ARG001
    """Write the metrics as files, and a picture of them all."""
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
        measured["confidence"] = label_quality.identification(true, quantities.confidence)
    per_label = pd.DataFrame(
        {
            "label": scores.columns,
            "frequency": truth.sum(axis=0) / max(len(truth), 1),
            "average_precision": metrics.label_average_precision(truth, scores.to_numpy()),
        }
    )
    shown = quantities.reindex(columns=["B", "pi", "F", "confidence"])
    histogram = metrics.candidate_histogram(true, shown)

    if not len(truth):
        print("no rows are held out: the predictions were not measured", file=sys.stderr)
    artifacts.write("metrics/per_label.csv", per_label)
    artifacts.write("metrics/candidates.csv", histogram)
    artifacts.write("metrics/overview.png", figures.overview(*courses, per_label, histogram))
    artifacts.write("metrics/evaluation.json", measured | {"noise_auc": noise_auc})


if __name__ == "__main__":
    run(evaluate)
