"""Stage 2 of the method: how far each candidate can be trusted."""

from stages import inputs, run
from wscpml import artifacts
from wscpml.algorithm import weak_supervision
from wscpml.settings import Settings


def build_confidence(settings: Settings) -> None:
    """Write data/confidence.npy: B for the training rows."""
    B = weak_supervision.build(
        inputs.scaled_features(),
        inputs.candidates("train"),
        **artifacts.read("data/prototypes/prototypes.npz"),
        theta=settings.confidence.theta,
    )
    artifacts.write("data/confidence.npy", B)


if __name__ == "__main__":
    run(build_confidence)
