"""Score the classifier on the held-out rows, and the pseudo-labels on the training rows."""

import pandas as pd

from stages import inputs, run
from wscpml import artifacts, figures, metrics
from wscpml.model import Model
from wscpml.settings import Settings


def evaluate(settings: Settings) -> None:
    """Write predictions, the metrics as files, and a picture of them all."""
    model = Model.from_files(artifacts.read_directory("models/classifier", Model.FILES))
    all_truth = artifacts.read("data/prepared/truth.npy")
    truth = all_truth[inputs.rows("test")]
    scores = model.predict_proba(inputs.raw_features("test"))

    candidates = inputs.candidates("train")
    pseudo_labels = artifacts.read("data/pseudo_labels.parquet")
    courses = [artifacts.read(f"metrics/{name}.csv") for name in ("clustering", "training")]
    true = all_truth[inputs.rows("train")][candidates == 1]

    measured = metrics.evaluate(truth, scores, settings.evaluation.threshold)
    noise_auc = {name: metrics.noise_auc(true, pseudo_labels[name]) for name in ("B", "pi", "F")}
    per_label = pd.DataFrame(
        {
            "label": model.label_names,
            "frequency": truth.mean(axis=0),
            "average_precision": metrics.label_average_precision(truth, scores),
        }
    )
    histogram = metrics.candidate_histogram(true, {k: pseudo_labels[k] for k in ("F", "pi")})
    predictions = pd.DataFrame(scores, columns=model.label_names)
    instances = artifacts.read("data/prepared/names.json")["instances"]
    predictions.insert(0, "instance", pd.array(instances)[inputs.rows("test")])

    artifacts.write("data/predictions.parquet", predictions)
    artifacts.write("metrics/per_label.csv", per_label)
    artifacts.write("metrics/candidates.csv", histogram)
    artifacts.write("metrics/overview.png", figures.overview(*courses, per_label, histogram))
    artifacts.write("metrics/evaluation.json", measured | {"noise_auc": noise_auc})


if __name__ == "__main__":
    run(evaluate)
