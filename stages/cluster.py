"""Stage 3 of the method: weakly-supervised clustering gives the pseudo-labels."""

import sys

from stages import inputs, run
from wscpml import artifacts
from wscpml.algorithm import clustering
from wscpml.settings import Settings


def cluster(settings: Settings) -> None:
    """Write pseudo-labels (a row per candidate), prototypes, and the course of the clustering."""
    candidates = inputs.candidates("train")
    confidence = artifacts.read("data/confidence.npy")
    result = clustering.cluster(
        inputs.scaled_features(),
        candidates,
        confidence,
        **settings.clustering.model_dump(),
        device=settings.device,
    )
    if not result.converged:
        print(
            f"clustering.max_iterations: F still changed by {result.course.change.iloc[-1]:.2g} "
            f"after {len(result.course)} iterations",
            file=sys.stderr,
        )
    table = inputs.candidate_pairs().assign(
        B=confidence[candidates == 1], pi=result.memberships.data, F=result.pseudo_labels.data
    )
    artifacts.write("models/wsc-pml/pseudo_labels.parquet", table)
    artifacts.write("models/wsc-pml/cluster_prototypes.npy", result.prototypes)
    artifacts.write("models/wsc-pml/clustering.csv", result.course)


if __name__ == "__main__":
    run(cluster)
