"""Make candidates of the truth, unless the data set brings its own."""

from pathlib import Path

from stages import run
from wscpml import artifacts, noise
from wscpml.settings import Settings


def inject_noise(settings: Settings) -> None:
    """Write data/candidates.npy, for all rows: noise comes before the folds."""
    if Path("data/prepared/candidates.npy").exists():
        candidates = artifacts.read("data/prepared/candidates.npy")
    else:
        truth = artifacts.read("data/prepared/truth.npy")
        candidates = noise.pad_candidates(truth, settings.noise.candidates, settings.rng("noise"))
    artifacts.write("data/candidates.npy", candidates)


if __name__ == "__main__":
    run(inject_noise)
