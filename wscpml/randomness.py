"""Where all random numbers come from."""

from dataclasses import dataclass

import numpy as np


def stream(seed: int, purpose: str) -> np.random.Generator:
    """Random numbers of its own for each purpose."""
    return np.random.default_rng([seed, *purpose.encode()])


@dataclass(frozen=True)
class Streams:
    """Random numbers for each step of the method that takes some."""

    anchors: np.random.Generator
    judging: np.random.Generator
    classifier: np.random.Generator


def streams(seed: int) -> Streams:
    """Those that belong to a seed, the same through every door."""
    return Streams(*(stream(seed, step) for step in ("anchors", "judging", "classifier")))
