"""What a data set is, whatever file it came from."""

from dataclasses import dataclass
from typing import Any

from wscpml.arrays import Array


@dataclass(frozen=True)
class Dataset:
    """n instances with d features and q labels."""

    features: Array  # (n, d)
    truth: Array | None  # 0/1 (n, q), None where it is not known
    candidates: Array | None  # 0/1 (n, q), None where noise is still to be injected
    feature_names: list[str]
    label_names: list[str]
    instance_ids: list[Any]
