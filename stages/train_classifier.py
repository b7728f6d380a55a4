"""Train the classifier on the pseudo-labels, or on the confidences."""

from functools import partial
from typing import Any

import numpy as np
from tqdm import tqdm

from stages import inputs, run
from wscpml import artifacts
from wscpml.algorithm import network, ridge
from wscpml.algorithm.network import Problem
from wscpml.quality import judging
from wscpml.randomness import stream
from wscpml.serving.model import Model, with_even_odds_at
from wscpml.settings import Settings

MADE = "models/wsc-pml"
USED = {"device", "features", "confidence", "clustering", "classifier"}  # by this stage or before


def train_classifier(settings: Settings) -> None:
    """Write classifier/ (all that prediction needs), the course of the training, and settings."""
    candidates = inputs.candidates("train")
    cleaned = settings.classifier.labels == "cleaned"
    confidence, pseudo_labels = np.zeros((2, *candidates.shape))
    confidence[candidates == 1] = artifacts.read(f"{MADE}/label_confidence.npy")
    pseudo_labels[candidates == 1] = inputs.pseudo_labels(f"{MADE}/pseudo_labels.parquet").F
    targets = confidence if cleaned else pseudo_labels
    feature_map = inputs.feature_map()
    room = artifacts.scratch((len(candidates), feature_map.size))
    X = feature_map.map_scaled(inputs.scaled_features(), out=room)
    head: Any
    extra = {}
    if settings.classifier.kind == "kernel_ridge":
        fitted = ridge.fit(X, candidates, targets)
        head, course, axes = fitted.head, fitted.course, fitted.axes
        extra = {"leave_one_out.npy": fitted.left_out}
    else:
        axes = network.principal_axes(X)
        problem = Problem(X, candidates, targets, stream(settings.seed, "classifier"), axes)
        ((head, course),) = network.fit_all(
            [problem],
            **settings.classifier.model_dump(exclude={"kind", "labels"}),
            device=settings.device,
            progress=partial(tqdm, desc="epochs", disable=None, leave=False),
        )
    if cleaned:
        even = judging.even_odds(head.predict_proba, X, axes, candidates, confidence)
        head = with_even_odds_at(even, head)
    names = artifacts.read("data/prepared/names.json")
    trained = Model(feature_map, head, names["features"], names["labels"])
    artifacts.write_directory(f"{MADE}/classifier", trained.to_files() | extra)
    artifacts.write(f"{MADE}/training.csv", course)
    artifacts.write(f"{MADE}/params.yaml", settings.model_dump(include=USED))


if __name__ == "__main__":
    run(train_classifier)
