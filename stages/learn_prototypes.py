"""Stage 1 of the method: fit the feature map and learn the initial prototypes."""

from stages import inputs, run
from wscpml import artifacts, features, prototypes
from wscpml.randomness import stream
from wscpml.settings import Settings


def learn_prototypes(settings: Settings) -> None:
    """Write data/prototypes/: the fitted feature map and both kinds of prototypes."""
    X = inputs.raw_features("train")
    feature_map = features.fit(
        X, **settings.features.model_dump(), rng=stream(settings.seed, "anchors")
    )
    positive, negative = prototypes.learn(feature_map.scale(X), inputs.candidates("train"))
    artifacts.write_directory(
        "data/prototypes",
        {
            "feature_map.npz": feature_map.to_arrays(),
            "prototypes.npz": {"positive": positive, "negative": negative},
        },
    )


if __name__ == "__main__":
    run(learn_prototypes)
