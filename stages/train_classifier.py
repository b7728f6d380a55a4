"""Train the classifier on the pseudo-labels, or on the label confidences."""

import sys
from dataclasses import asdict, replace
from functools import partial

from tqdm import tqdm

from wscpml import artifacts
from wscpml.algorithm import composition
from wscpml.algorithm.composition import TrainedHead
from wscpml.arrays import unpack
from wscpml.blocks import Engine, budget
from wscpml.parameters import Labels
from wscpml.randomness import streams
from wscpml.serving.model import Model, save
from wscpml.settings import Settings

from . import inputs, run

MADE = "models/wsc-pml"
LEFT_OUT = "leave_one_out_average_precision"


def train_classifier(settings: Settings) -> None:
    """Write classifier/ (all that prediction needs), and the course of the training.

    training.json has how well the candidates of rows that are left out are ranked, and
    printed.safetensors has the classifier of the paper's own labels, to be measured beside it.
    """
    engine = Engine(budget(settings.memory), shown=sys.stderr.isatty())
    rows, candidates = inputs.training_rows(engine), inputs.candidates("train")
    decided = inputs.decided()
    known = decided.added_to(candidates)
    table = inputs.pseudo_labels(f"{MADE}/pseudo_labels.parquet", candidates)
    F = decided.settle(inputs.of_candidates(table.F, candidates))
    confidence = inputs.of_candidates(artifacts.read(f"{MADE}/label_confidence.npy"), known)
    missing = unpack("missing", artifacts.read(f"{MADE}/missing.npz"))
    if missing.shape[0]:
        confidence = confidence + missing
    weight = artifacts.read(f"{MADE}/noise.json")["weight"]

    def trained(labels: Labels) -> TrainedHead:
        return composition.train(
            rows,
            known,
            F,
            confidence,
            weight,
            replace(settings.classifier, labels=labels),
            streams(settings.seed).classifier,
            settings.device,
            partial(tqdm, desc=f"epochs, {labels} labels", disable=None, leave=False),
        )

    labels = settings.classifier.labels
    chosen = trained(labels)
    printed = chosen if labels == "printed" else trained("printed")
    extra = {}
    if settings.classifier.kind == "kernel_ridge" and chosen.closed_form:
        learned = composition.to_learn(F, known, confidence, weight, settings.classifier)
        left_out = composition.left_out(rows, chosen.closed_form, known, learned)
        extra = {"leave_one_out.npy": left_out}
    precision = None
    if chosen.closed_form:
        precision = composition.left_out_average_precision(rows, chosen.closed_form, known)
    names = artifacts.read("data/prepared/names.json")
    model = Model(
        rows.feature_map, chosen.head, names["features"], names["labels"], inputs.encoding()
    )
    save(f"{MADE}/classifier", model, extra)
    artifacts.write(f"{MADE}/printed.safetensors", asdict(printed.head))
    artifacts.write(f"{MADE}/training.csv", chosen.course)
    artifacts.write(f"{MADE}/training.json", {LEFT_OUT: precision})


if __name__ == "__main__":
    run(train_classifier)
