"""Stage 3 of the method: weakly-supervised clustering gives the pseudo-labels."""

import sys

import numpy as np
import pandas as pd

from stages import inputs, run
from wscpml import artifacts, clustering
from wscpml.settings import Settings


def cluster(settings: Settings) -> None:
    """Write pseudo-labels (a row per candidate), prototypes, and the course of the clustering."""
    candidates = inputs.candidates("train")
    confidence = artifacts.read("data/confidence.npy")
    result = clustering.cluster(
        inputs.mapped_features("train"), candidates, confidence, **settings.clustering.model_dump()
    )
    if not result.converged:
        print(
            f"clustering.max_iterations: F still changed by {result.course.change.iloc[-1]:.2g} "
            f"after {len(result.course)} iterations",
            file=sys.stderr,
        )
    names = artifacts.read("data/prepared/names.json")
    row, label = np.nonzero(candidates)
    table = pd.DataFrame(
        {
            "instance": np.array(names["instances"])[inputs.rows("train")][row],
            "label": pd.Categorical.from_codes(label, categories=names["labels"]),
            "B": confidence[row, label],
            "pi": result.memberships[row, label],
            "F": result.pseudo_labels[row, label],
        }
    )
    artifacts.write("data/pseudo_labels.parquet", table)
    artifacts.write("data/cluster_prototypes.npy", result.prototypes)
    artifacts.write("metrics/clustering.csv", result.course)


if __name__ == "__main__":
    run(cluster)
