"""A model's predictions as a table: whatever the columns' order, under the user's own names."""

import numpy as np
import pandas as pd

from wscpml.arrays import EVEN_ODDS, Array
from wscpml.datasets.tables import numbers, refuse_missing
from wscpml.errors import UserError
from wscpml.serving.model import Model


def table(model: Model, features: pd.DataFrame, source: str, first: int = 1) -> pd.DataFrame:
    """The probability of each label, a column each, and the list of those that are predicted.

    `source` and the number of the `first` row are for messages about what cannot be taken.
    """
    if model.encoding is None:
        X = _finite(features, model.feature_names, source, first)
    else:
        X = model.encoding(features, source, first)
    probabilities = model.predict_proba(X)
    names = np.array(model.label_names, dtype=object)
    predicted = pd.DataFrame(probabilities, features.index, model.label_names)
    predicted[labels_column(model)] = [names[row].tolist() for row in probabilities >= EVEN_ODDS]
    return predicted


def labels_column(model: Model) -> str:
    """`labels`, unless that is what a label is called."""
    name = "labels"
    while name in model.label_names:
        name += "_"
    return name


def _finite(features: pd.DataFrame, names: list[str], source: str, first: int) -> Array:
    """The named columns as float64; other columns are ignored, and nothing may be missing."""
    refuse_missing(names, list(map(str, features)), source)
    X = numbers(features[names], source, range(first, first + len(features)))
    wrong = ~np.isfinite(X)
    if wrong.any():
        i, j = np.argwhere(wrong)[0]
        what = "is empty" if np.isnan(X[i, j]) else f"{X[i, j]} is not a finite number"
        raise UserError(f"{source}: row {first + i}, column {names[j]!r}: {what}; mend that value")
    return X
