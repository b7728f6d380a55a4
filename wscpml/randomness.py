"""Where all random numbers come from."""

import numpy as np


def stream(seed: int, purpose: str) -> np.random.Generator:
    """Random numbers of its own for each purpose."""
    return np.random.default_rng([seed, *purpose.encode()])
