"""Stage 1 of the method: fit the feature map and learn the initial prototypes."""

from scipy import sparse

from wscpml import artifacts
from wscpml.algorithm import composition, prototypes
from wscpml.arrays import row_blocks
from wscpml.randomness import streams
from wscpml.settings import Settings

from . import inputs, run

BLOCK = 4096  # rows that are scaled at a time


def learn_prototypes(settings: Settings) -> None:
    """Write data/scaled/, and data/prototypes/: the feature map and both kinds of prototypes."""
    X = inputs.raw_features("train")
    feature_map = composition.fit_features(X, settings.features, streams(settings.seed).anchors)
    stored = scaled = composition.scaled_by(feature_map, X)
    learned = prototypes.learn(scaled, inputs.candidates("train"))
    if not sparse.issparse(X):
        blocks = (scaled[some] for some in row_blocks(X.shape[0], BLOCK))
        stored = artifacts.Blocks(X.shape, blocks)
    artifacts.write_directory("data/scaled", artifacts.matrix_file("features", stored))
    artifacts.write_directory(
        "data/prototypes",
        {"feature_map.npz": feature_map.to_arrays(), "prototypes.npz": learned._asdict()},
    )


if __name__ == "__main__":
    run(learn_prototypes)
