"""The table that has a row for every candidate."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from wscpml.arrays import Array


def candidate_table(
    instances: Sequence[Any] | Array,
    label_names: Sequence[str],
    candidates: Array,
    **columns: Array,
) -> pd.DataFrame:
    """Instance and label of each candidate, row by row, and further columns.

    A column is given for all labels ``(n, q)``, or for the candidates alone in their order.
    """
    row, label = np.nonzero(candidates)
    values = {name: np.asarray(given) for name, given in columns.items()}
    return pd.DataFrame(
        {
            "instance": np.asarray(instances)[row],
            "label": pd.Categorical.from_codes(label, categories=pd.Index(label_names)),
            **{name: each[row, label] if each.ndim == 2 else each for name, each in values.items()},
        }
    )
