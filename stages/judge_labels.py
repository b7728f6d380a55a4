"""Judge every candidate: how likely it is to be true."""

import pandas as pd

from stages import inputs, run
from wscpml import artifacts
from wscpml.quality import judging
from wscpml.randomness import streams
from wscpml.settings import Settings


def judge_labels(settings: Settings) -> None:
    """Write the label confidence of each candidate, and how noisy each label is."""
    candidates = inputs.candidates("train")
    judged = judging.judge(inputs.training_rows(), candidates, streams(settings.seed).judging)
    rates = pd.DataFrame(
        {
            "label": artifacts.read("data/prepared/names.json")["labels"],
            "candidates": candidates.sum(axis=0, dtype=int),
            "noise_rate": judged.noise_rates,
        }
    )
    confidence = judged.label_confidence[candidates == 1]
    artifacts.write("models/wsc-pml/label_confidence.npy", confidence)
    artifacts.write("models/wsc-pml/noise_rates.csv", rates)


if __name__ == "__main__":
    run(judge_labels)
