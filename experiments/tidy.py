"""Results as they go into files."""

from typing import Any

import numpy as np

DIGITS = 6


def tidy(value: Any) -> Any:
    """The same with keys in order and figures rounded."""
    if isinstance(value, dict):
        return {key: tidy(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [tidy(each) for each in value]
    return round(float(value), DIGITS) if isinstance(value, float | np.floating) else value
