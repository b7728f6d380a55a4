"""Score the classifier on the held-out rows, and the pseudo-labels on the training rows."""

import sys

import pandas as pd

from stages import inputs, run
from wscpml import artifacts, figures, metrics
from wscpml.model import Model
from wscpml.ridge import Ridge
from wscpml.settings import Settings


def evaluate(settings: Settings) -> None:
    """Write predictions, the metrics as files, and a picture of them all."""
    model = Model.from_files(artifacts.read_directory("models/classifier", Model.FILES))
    truth = inputs.truth("test")
    scores = model.predict_proba(inputs.raw_features("test")[:])

    candidates = inputs.candidates("train")
    pseudo_labels = inputs.pseudo_labels()
    courses = [artifacts.read(f"metrics/{name}.csv") for name in ("clustering", "training")]
    true = inputs.truth("train")[candidates == 1]

    measured = metrics.evaluate(truth, scores, settings.evaluation.threshold)
    quantities = {name: pseudo_labels[name] for name in ("B", "pi", "F")}
    noise_auc = {name: metrics.noise_auc(true, score) for name, score in quantities.items()}
    if isinstance(model.head, Ridge):
        left_out = artifacts.read("models/classifier/leave_one_out.npy")[candidates == 1]
        noise_auc["leave_one_out"] = metrics.noise_auc(true, left_out)
    per_label = pd.DataFrame(
        {
            "label": model.label_names,
            "frequency": truth.sum(axis=0) / max(len(truth), 1),
            "average_precision": metrics.label_average_precision(truth, scores),
        }
    )
    histogram = metrics.candidate_histogram(true, quantities)
    predictions = pd.DataFrame(scores, columns=model.label_names)
    predictions.insert(0, "instance", inputs.instances("test"))

    if not len(truth):
        print("no rows are held out: the classifier was not measured", file=sys.stderr)
    artifacts.write("data/predictions.parquet", predictions)
    artifacts.write("metrics/per_label.csv", per_label)
    artifacts.write("metrics/candidates.csv", histogram)
    artifacts.write("metrics/overview.png", figures.overview(*courses, per_label, histogram))
    artifacts.write("metrics/evaluation.json", measured | {"noise_auc": noise_auc})


if __name__ == "__main__":
    run(evaluate)
