"""Make candidates of the truth, unless the data set brings its own."""

from scipy import sparse

from wscpml import artifacts
from wscpml.arrays import Array, pack, to_dense
from wscpml.datasets import noise
from wscpml.randomness import stream
from wscpml.settings import Settings

from . import inputs, run


def inject_noise(settings: Settings) -> None:
    """Write data/candidates.npz, for all rows: noise comes before the folds."""
    truth, candidates = inputs.given("truth"), inputs.given("candidates")
    if candidates is None:
        assert truth is not None  # a data set brings at least one of them
        candidates = noisy(to_dense(truth), settings)
    elif sparse.issparse(candidates):
        candidates = candidates.sorted_indices()
    reached = {} if truth is None else noise.summary(truth, candidates)
    artifacts.write("data/candidates.npz", pack("candidates", candidates))
    artifacts.write("metrics/noise.json", reached)
    if reached:
        print(
            f"{reached['average_candidates']:.2f} candidates a row, {reached['false_share']:.1%} "
            f"of them false; {reached['rate']:.1%} of all false labels are candidates"
        )


def noisy(truth: Array, settings: Settings) -> Array:
    """Candidates by the noise model that the settings name."""
    X = artifacts.read_matrix("data/prepared", "features")
    chosen = settings.noise.model_dump()
    return noise.inject(truth=truth, X=X, rng=stream(settings.seed, "noise"), **chosen)


if __name__ == "__main__":
    run(inject_noise)
