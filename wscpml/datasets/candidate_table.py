"""The table that has a row for every candidate."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from wscpml.arrays import Array, Matrix, values_at


def candidate_table(
    instances: "Sequence[Any] | Array | pd.Index[Any]",
    label_names: Sequence[str],
    candidates: Matrix,
    **columns: Matrix,
) -> pd.DataFrame:
    """Instance and label of each candidate, row by row, and further columns.

    Candidates are dense or sparse. A column is given for all labels ``(n, q)``, or for the
    candidates alone in their order.
    """
    row, label = np.nonzero(candidates)
    return pd.DataFrame(
        {
            "instance": (instances if isinstance(instances, pd.Index) else np.asarray(instances))[
                row
            ],
            "label": pd.Categorical.from_codes(label, categories=pd.Index(label_names)),
            **{
                name: values_at(given, row, label) if np.ndim(given) == 2 else np.asarray(given)
                for name, given in columns.items()
            },
        }
    )
