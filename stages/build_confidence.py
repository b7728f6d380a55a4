"""Stage 2 of the method: how far each candidate can be trusted, the weak supervision B."""

from wscpml import artifacts
from wscpml.algorithm import weak_supervision
from wscpml.settings import Settings

from . import inputs, run


def build_confidence(settings: Settings) -> None:
    """Write data/weak_supervision.npy: B of each candidate of the training rows, row by row."""
    candidates = inputs.candidates("train")
    B = weak_supervision.build(
        inputs.scaled_features(),
        candidates,
        **artifacts.read("data/prototypes/prototypes.npz"),
        theta=settings.weak_supervision.theta,
    )
    artifacts.write("data/weak_supervision.npy", inputs.at_candidates(B, candidates))


if __name__ == "__main__":
    run(build_confidence)
