"""BR and Oracle: our network straight on the candidates, or on the true labels; no de-noising."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from wscpml.algorithm import composition
from wscpml.arrays import Array, Matrix
from wscpml.methods.base import OnKernelFeatures
from wscpml.parameters import FeatureSettings, NetworkSettings, part_of


@dataclass(kw_only=True, eq=False, repr=False)
class BR(OnKernelFeatures, FeatureSettings, NetworkSettings):
    """The pipeline's feature map and network on the labels as they are, the paper's NC.

    Pseudo-labels are its predictions for the training rows. The parameters are those of the
    sections `features` and `classifier` of params.yaml, which explains each.
    """

    TITLE = "BR"
    SOURCE = "the network on the candidates: the paper's NC"

    random_state: Any = None

    def _fit(self, X: Matrix, candidates: Array, rng: np.random.Generator) -> Array:
        rows, settings = self._represented(X, rng), part_of(self, NetworkSettings)
        labels = candidates.astype(float)
        trained = composition.train_network(rows, candidates, labels, settings, rng)
        self.head_, self.objective_ = trained.head, trained.course.training_loss.tolist()
        return self.head_.predict_proba(rows.mapped) * candidates


class Oracle(BR):
    """BR that is given the true labels in place of candidates: the ceiling of all methods."""

    TITLE = "Oracle"
    SOURCE = "the network on the true labels: the ceiling"
    NEEDS_TRUTH = True
