"""Judge every candidate: how likely it is to be true."""

import numpy as np
import pandas as pd

from stages import inputs, run
from wscpml import artifacts
from wscpml.algorithm import network
from wscpml.quality import judging
from wscpml.randomness import stream
from wscpml.settings import Settings


def judge_labels(settings: Settings) -> None:
    """Write the confidence of each candidate of the training rows, and how noisy labels are."""
    candidates = inputs.candidates("train")
    scaled, feature_map = inputs.scaled_features(), inputs.feature_map()
    room = artifacts.scratch((len(candidates), feature_map.size))
    mapped = feature_map.map_scaled(scaled, out=room)
    axes = network.principal_axes(mapped)
    seed = int(stream(settings.seed, "label_quality").integers(2**31))
    quality = judging.assess(scaled, mapped, axes, candidates, seed)
    labels = pd.DataFrame(
        {
            "label": artifacts.read("data/prepared/names.json")["labels"],
            "candidates": candidates.sum(axis=0, dtype=int),
            "noise_rate": judging.noise_rates(quality.confidence, candidates),
        }
    )
    confidence = quality.confidence[candidates == 1].astype(np.float32)
    artifacts.write("models/wsc-pml/label_confidence.npy", confidence)
    artifacts.write("models/wsc-pml/noise_rates.csv", labels)


if __name__ == "__main__":
    run(judge_labels)
