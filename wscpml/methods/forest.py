"""RF-C: a random forest straight on the candidates, a plain reference."""

from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestRegressor

from wscpml.arrays import Array, Matrix
from wscpml.methods.base import Method


class Forest(Method):
    """scikit-learn's random forest for all labels at once, as they are; no de-noising.

    Squared error of 0 and 1 is half the Gini impurity, so these are a classifier's trees (ties
    apart) in half its memory, and a label that never changes needs no care. Pseudo-labels come
    from the trees that have not seen the row.

    Parameters
    ----------
    trees, smallest_leaf
        How many trees there are, and how many rows a leaf has at least.
    """

    TITLE = "RF-C"
    SOURCE = "random forest on the candidates"

    def __init__(self, trees: int = 200, smallest_leaf: int = 3, random_state: Any = None) -> None:
        self.trees = trees
        self.smallest_leaf = smallest_leaf
        self.random_state = random_state

    def _fit(self, X: Matrix, candidates: Array, rng: np.random.Generator) -> Array:
        self.forest_ = RandomForestRegressor(
            n_estimators=self.trees,
            min_samples_leaf=self.smallest_leaf,
            max_features="sqrt",
            oob_score=True,
            random_state=int(rng.integers(2**31)),
        )
        one_label = candidates.shape[1] == 1
        self.forest_.fit(X, candidates[:, 0] if one_label else candidates)
        return self.forest_.oob_prediction_.reshape(candidates.shape) * candidates

    def _probabilities(self, X: Matrix) -> Array:
        return self.forest_.predict(X).reshape(X.shape[0], -1)
