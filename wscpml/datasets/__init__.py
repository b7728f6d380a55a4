"""Registry of the named data sets."""

from collections.abc import Callable

from wscpml.datasets import river
from wscpml.datasets.dataset import Dataset

REGISTRY: dict[str, Callable[[], Dataset]] = {
    "yeast": river.yeast,
}
