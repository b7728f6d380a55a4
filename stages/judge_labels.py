"""Judge every candidate: how likely it is to be true."""

from stages import inputs, run
from wscpml import artifacts
from wscpml.quality import judging
from wscpml.randomness import streams
from wscpml.settings import Settings


def judge_labels(settings: Settings) -> None:
    """Write the label confidence of each candidate, how noisy labels are, and which noise it is."""
    candidates = inputs.candidates("train")
    judged = judging.judge(inputs.training_rows(), candidates, streams(settings.seed).judging)
    names = artifacts.read("data/prepared/names.json")["labels"]
    remarks = judged.noise.told(names)
    confidence = judged.label_confidence[candidates == 1]
    artifacts.write("models/wsc-pml/label_confidence.npy", confidence)
    artifacts.write("models/wsc-pml/noise_rates.csv", judged.noise.table(names, candidates))
    artifacts.write("models/wsc-pml/noise.json", judged.noise.summary() | {"remarks": remarks})
    print("\n".join(remarks))


if __name__ == "__main__":
    run(judge_labels)
