"""Train the classifier on the pseudo-labels."""

from functools import partial

import numpy as np
from tqdm import tqdm

from stages import inputs, run
from wscpml import artifacts, classifier
from wscpml.model import Model
from wscpml.randomness import stream
from wscpml.settings import Settings


def train_classifier(settings: Settings) -> None:
    """Write models/classifier/ (all that prediction needs) and the course of the training."""
    candidates = inputs.candidates("train")
    pseudo_labels = np.zeros(candidates.shape)
    pseudo_labels[candidates == 1] = inputs.pseudo_labels().F
    network, course = classifier.fit(
        inputs.mapped_features("train"),
        candidates,
        pseudo_labels,
        **settings.classifier.model_dump(),
        rng=stream(settings.seed, "classifier"),
        progress=partial(tqdm, desc="epochs", disable=None, leave=False),
    )
    names = artifacts.read("data/prepared/names.json")
    trained = Model(inputs.feature_map(), network, names["features"], names["labels"])
    artifacts.write_directory("models/classifier", trained.to_files())
    artifacts.write("metrics/training.csv", course)


if __name__ == "__main__":
    run(train_classifier)
