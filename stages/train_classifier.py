"""Train the classifier on the pseudo-labels, or on the label confidences."""

from functools import partial

from tqdm import tqdm

from stages import inputs, run
from wscpml import artifacts
from wscpml.algorithm import composition
from wscpml.randomness import streams
from wscpml.serving.model import Model
from wscpml.settings import Settings

MADE = "models/wsc-pml"
USED = {"device", "features", "weak_supervision", "clustering", "classifier"}  # so far


def train_classifier(settings: Settings) -> None:
    """Write classifier/ (all that prediction needs), the course of the training, and settings."""
    rows = inputs.training_rows()
    trained = composition.train(
        rows,
        inputs.candidates("train"),
        inputs.of_candidates(inputs.pseudo_labels(f"{MADE}/pseudo_labels.parquet").F),
        inputs.of_candidates(artifacts.read(f"{MADE}/label_confidence.npy")),
        artifacts.read(f"{MADE}/noise.json")["weight"],
        settings.classifier,
        streams(settings.seed).classifier,
        settings.device,
        partial(tqdm, desc="epochs", disable=None, leave=False),
    )
    extra = {}
    if settings.classifier.kind == "kernel_ridge" and trained.closed_form:
        extra = {"leave_one_out.npy": trained.closed_form.left_out}
    names = artifacts.read("data/prepared/names.json")
    model = Model(rows.feature_map, trained.head, names["features"], names["labels"])
    artifacts.write_directory(f"{MADE}/classifier", model.to_files() | extra)
    artifacts.write(f"{MADE}/training.csv", trained.course)
    artifacts.write(f"{MADE}/params.yaml", settings.model_dump(include=USED))


if __name__ == "__main__":
    run(train_classifier)
