"""Stage 1 of the method: fit the feature map and learn the initial prototypes."""

import numpy as np
from scipy import sparse

from stages import inputs, run
from wscpml import artifacts
from wscpml.algorithm import features, prototypes
from wscpml.arrays import Rows, row_blocks
from wscpml.randomness import stream
from wscpml.settings import Settings

BLOCK = 4096  # rows that are scaled at a time


def learn_prototypes(settings: Settings) -> None:
    """Write data/scaled/, and data/prototypes/: the feature map and both kinds of prototypes."""
    X = inputs.raw_features("train")
    feature_map = features.fit(
        X, **settings.features.model_dump(), rng=stream(settings.seed, "anchors")
    )
    if sparse.issparse(X):
        stored = scaled = feature_map.scale(X)
    else:
        scaled = Rows(X.matrix, X.chosen, feature_map.scale)
        blocks = (scaled[rows].astype(np.float32) for rows in row_blocks(len(X.chosen), BLOCK))
        stored = artifacts.Blocks(X.shape, blocks)
    positive, negative = prototypes.learn(scaled, inputs.candidates("train"))
    artifacts.write_directory("data/scaled", artifacts.matrix_file("features", stored))
    artifacts.write_directory(
        "data/prototypes",
        {
            "feature_map.npz": feature_map.to_arrays(),
            "prototypes.npz": {"positive": positive, "negative": negative},
        },
    )


if __name__ == "__main__":
    run(learn_prototypes)
