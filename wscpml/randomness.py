"""Where all random numbers come from."""

from dataclasses import dataclass

import numpy as np

from wscpml.arrays import Array


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


def mixed_bits(x: Array) -> Array:
    """Numbers, uint64, whose every bit depends on every bit of others (splitmix64's finaliser)."""
    with np.errstate(over="ignore"):
        x = (x ^ x >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ x >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return x ^ x >> np.uint64(31)
