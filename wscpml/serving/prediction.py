"""A model's predictions as a table: whatever the columns' order, under the user's own names."""

from typing import Any

import numpy as np
import pandas as pd

from wscpml.arrays import Array
from wscpml.datasets.dataset import few
from wscpml.errors import UserError
from wscpml.serving.model import Model

EVEN = 0.5  # a probability from here on is a label


def table(model: Model, features: pd.DataFrame, source: str, first: int = 1) -> pd.DataFrame:
    """The probability of each label, a column each, and the list of those that are predicted.

    `source` and the number of the `first` row are for messages about what cannot be taken.
    """
    probabilities = model.predict_proba(numbers(features, model.feature_names, source, first))
    names = np.array(model.label_names, dtype=object)
    predicted = pd.DataFrame(probabilities, features.index, model.label_names)
    predicted[labels_column(model)] = [names[row].tolist() for row in probabilities >= EVEN]
    return predicted


def labels_column(model: Model) -> str:
    """`labels`, unless that is what a label is called."""
    name = "labels"
    while name in model.label_names:
        name += "_"
    return name


def refuse_missing(names: list[str], there: list[str], source: str) -> None:
    """Tell which of the columns that the model needs a table does not have."""
    known = set(there)
    missing = [name for name in names if name not in known]
    if missing:
        raise UserError(
            f"{source}: has no column {few(missing)}, which the model needs; its columns are "
            f"{few(there)}"
        )


def numbers(features: pd.DataFrame, names: list[str], source: str, first: int = 1) -> Array:
    """The named columns as float64; other columns are ignored, and none may be missing."""
    refuse_missing(names, list(map(str, features)), source)
    chosen = features[names]
    for name, kind in chosen.dtypes.items():
        if getattr(kind, "kind", "O") not in "biufO":
            raise UserError(f"{source}: column {name!r} holds {kind}, not numbers")
    try:
        X = chosen.to_numpy(dtype=np.float64, na_value=np.nan)
    except (ValueError, TypeError):
        forced = chosen.apply(pd.to_numeric, errors="coerce")
        X = forced.to_numpy(dtype=np.float64, na_value=np.nan)
    finite = np.isfinite(X)
    if not finite.all():
        i, j = np.argwhere(~finite)[0]
        value: Any = chosen.iat[i, j]
        told = repr(value) if isinstance(value, str) else str(value)
        what = "is empty" if pd.isna(value) else f"{told} is not a finite number"
        raise UserError(f"{source}: row {first + i}, column {names[j]!r}: {what}; mend that value")
    return X
