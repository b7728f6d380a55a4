"""BR and Oracle: our network straight on the candidates, or on the true labels; no de-noising."""

from typing import Any

import numpy as np
import pandas as pd

from wscpml.algorithm import features, network
from wscpml.arrays import Array, Matrix
from wscpml.methods.base import Method

FEATURES = ("scaling", "kernel", "anchors_per_feature", "bandwidth", "energy")
TRAINING = (
    "width",
    "learning_rate",
    "weight_decay",
    "batch_size",
    "max_epochs",
    "patience",
    "validation_share",
)


class BR(Method):
    """The pipeline's feature map and network on the labels as they are, the paper's NC.

    Pseudo-labels are its predictions for the training rows.

    Parameters
    ----------
    scaling, kernel, anchors_per_feature, bandwidth, energy
        Section `features` of params.yaml, which explains each.
    width, learning_rate, weight_decay, batch_size, max_epochs, patience, validation_share
        Those of section `classifier`.
    """

    TITLE = "BR"
    SOURCE = "the network on the candidates: the paper's NC"
    SCALING = "none"  # the feature map scales
    FEWEST_ROWS = 2  # one is held out

    def __init__(
        self,
        scaling: str = "quantile",
        kernel: str = "laplace",
        anchors_per_feature: int = 5,
        bandwidth: float = 0.5,
        energy: float = 0.999,
        width: int = 4,
        learning_rate: float = 0.001,
        weight_decay: float = 0.01,
        batch_size: int = 256,
        max_epochs: int = 20,
        patience: int = 2,
        validation_share: float = 0.1,
        random_state: Any = None,
    ) -> None:
        self.scaling = scaling
        self.kernel = kernel
        self.anchors_per_feature = anchors_per_feature
        self.bandwidth = bandwidth
        self.energy = energy
        self.width = width
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.patience = patience
        self.validation_share = validation_share
        self.random_state = random_state

    def _fit(self, X: Matrix, candidates: Array, rng: np.random.Generator) -> Array:
        scaled = self._scaled(X, rng)
        mapped = self.map_.map_scaled(scaled)
        course = self._train(mapped, candidates, candidates.astype(float), rng)
        self.objective_ = course.training_loss.tolist()
        return self.head_.predict_proba(mapped) * candidates

    def _scaled(self, X: Matrix, rng: np.random.Generator) -> Matrix:
        """Fit the feature map, and scale the rows with it."""
        self.map_ = features.fit(X, **self._chosen(FEATURES), rng=rng)
        return self.map_.scale(X)

    def _train(
        self, mapped: Array, candidates: Array, pseudo_labels: Array, rng: np.random.Generator
    ) -> pd.DataFrame:
        """Train the network; returns its losses per epoch."""
        self.head_, course = network.fit(
            mapped,
            candidates,
            pseudo_labels,
            rng=rng,
            **self._chosen(TRAINING),
        )
        return course

    def _chosen(self, names: tuple[str, ...]) -> dict[str, Any]:
        """Some of the parameters."""
        return {name: getattr(self, name) for name in names}

    def _probabilities(self, X: Matrix) -> Array:
        return self.head_.predict_proba(self.map_(X))


class Oracle(BR):
    """BR that is given the true labels in place of candidates: the ceiling of all methods."""

    TITLE = "Oracle"
    SOURCE = "the network on the true labels: the ceiling"
    NEEDS_TRUTH = True
