"""Stage 3 of the method: weakly-supervised clustering gives the pseudo-labels."""

import sys

from wscpml import artifacts
from wscpml.algorithm import composition
from wscpml.settings import Settings

from . import inputs, run


def cluster(settings: Settings) -> None:
    """Write pseudo-labels (a row per candidate), prototypes, and the course of the clustering."""
    candidates = inputs.candidates("train")
    B = artifacts.read("data/weak_supervision.npy")
    found = composition.cluster(
        inputs.scaled_features(),
        candidates,
        inputs.of_candidates(B, candidates),
        settings.clustering,
        settings.device,
    )
    if not found.converged:
        print(
            f"clustering.max_iterations: F still changed by {found.course.change.iloc[-1]:.2g} "
            f"after {len(found.course)} iterations",
            file=sys.stderr,
        )
    table = inputs.candidate_table(
        candidates, B=B, pi=found.memberships.data, F=found.pseudo_labels.data
    )
    artifacts.write("models/wsc-pml/pseudo_labels.parquet", table)
    artifacts.write("models/wsc-pml/cluster_prototypes.npy", found.prototypes)
    artifacts.write("models/wsc-pml/clustering.csv", found.course)


if __name__ == "__main__":
    run(cluster)
