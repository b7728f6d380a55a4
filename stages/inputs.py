"""What several stages read: the rows of one side of the split."""

from wscpml import artifacts
from wscpml.arrays import Array
from wscpml.features import FeatureMap


def rows(side: str) -> Array:
    """Which instances are on a side, `train` or `test`, a boolean ``(n,)``."""
    test: Array = artifacts.read("data/split.npy")
    return test if side == "test" else ~test


def raw_features(side: str) -> Array:
    """Features of the rows as the data set has them."""
    features: Array = artifacts.read("data/prepared/features.npy")[rows(side)]
    return features


def feature_map() -> FeatureMap:
    """The map from raw features to those that the method sees."""
    return FeatureMap(**artifacts.read("data/prototypes/feature_map.npz"))


def mapped_features(side: str) -> Array:
    """Features of the rows as the method sees them."""
    return feature_map()(raw_features(side))


def candidates(side: str) -> Array:
    """Candidate labels of the rows."""
    labels: Array = artifacts.read("data/candidates.npy")[rows(side)]
    return labels
