"""Judge every candidate: how likely it is to be true."""

import sys
from typing import Any

import numpy as np

from wscpml import artifacts, blocks
from wscpml.arrays import pack
from wscpml.errors import readable
from wscpml.quality import judging, queue
from wscpml.randomness import streams
from wscpml.settings import Settings

from . import inputs, run


def judge_labels(settings: Settings) -> None:
    """Write the label confidence of each candidate, how noisy labels are, and which noise it is.

    Candidates are also the labels that a person has added. Where there are decisions, noise.json
    has the share of them that we agree with when we know of none. How likely each other label is to
    be missing has no rows if candidates are complete.
    """
    candidates, decided = inputs.candidates("train"), inputs.decided()
    evidence: dict[str, Any] = {
        "complete": settings.dataset.complete,
        "votes": inputs.votes("train"),
    }
    before = None
    where = settings.memory, settings.scheduler, sys.stderr.isatty(), settings.checkpoint
    with blocks.engine(*where) as engine:
        rows, random = inputs.training_rows(engine), streams(settings.seed)
        judged = judging.judge(rows, candidates, random.judging, decided, **evidence)
        if len(decided.row):
            random = streams(settings.seed)
            before = judging.judge(rows, candidates, random.judging, **evidence)
    known = decided.added_to(candidates)
    names = artifacts.read("data/prepared/names.json")["labels"]
    instances = inputs.instances("train")
    remarks = judged.noise.told(names) + queue.told(candidates, decided, instances, names)
    noise: dict[str, Any] = judged.noise.summary() | {"remarks": remarks}
    if before:
        noise["agreement"] = decided.agreement(candidates, before.label_confidence)
    confidence = inputs.at_candidates(judged.label_confidence, known)
    artifacts.write("models/wsc-pml/label_confidence.npy", confidence)
    missing = np.zeros((0, len(names))) if judged.missing is None else judged.missing
    artifacts.write("models/wsc-pml/missing.npz", pack("missing", missing))
    artifacts.write("models/wsc-pml/noise_rates.csv", judged.noise.table(names, known))
    artifacts.write("models/wsc-pml/noise.json", noise)
    print("\n".join(map(readable, remarks)))


if __name__ == "__main__":
    run(judge_labels)
