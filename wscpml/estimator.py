"""WSCPML: the stages of the method behind scikit-learn's fit and predict."""

from typing import Any, Literal

import numpy as np

from wscpml import clustering, confidence, prototypes
from wscpml.arrays import Array, Matrix
from wscpml.baselines.br import BR


class WSCPML(BR):
    """Weakly-supervised clustering for partial multi-label learning.

    Pseudo-labels are F of Eq. 10; `objective_` is its value per iteration of the clustering.

    Parameters
    ----------
    theta, alpha, beta, rule, max_iterations, tolerance
        Sections `confidence` and `clustering` of params.yaml, which explains each. The others are
        those of BR.
    """

    TITLE = "WSC-PML"
    SOURCE = "Chen et al., weakly-supervised clustering for partial multi-label learning"
    GRID = {"alpha": [0.01, 0.1, 1.0, 10.0, 100.0], "beta": [0.01, 0.1, 1.0, 10.0, 100.0]}

    def __init__(
        self,
        scaling: str = "quantile",
        kernel: str = "laplace",
        anchors_per_feature: int = 5,
        bandwidth: float = 0.5,
        energy: float = 0.999,
        theta: Literal["adaptive"] | float = "adaptive",
        alpha: float = 10.0,
        beta: float = 10.0,
        rule: str = "paper",
        max_iterations: int = 50,
        tolerance: float = 0.001,
        width: int = 10,
        learning_rate: float = 0.001,
        weight_decay: float = 0.01,
        batch_size: int = 256,
        max_epochs: int = 20,
        patience: int = 3,
        validation_share: float = 0.1,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            scaling,
            kernel,
            anchors_per_feature,
            bandwidth,
            energy,
            width,
            learning_rate,
            weight_decay,
            batch_size,
            max_epochs,
            patience,
            validation_share,
            random_state,
        )
        self.theta = theta
        self.alpha = alpha
        self.beta = beta
        self.rule = rule
        self.max_iterations = max_iterations
        self.tolerance = tolerance

    def _fit(self, X: Matrix, candidates: Array, rng: np.random.Generator) -> Array:
        scaled = self._scaled(X, rng)
        learned = prototypes.learn(scaled, candidates)
        B = confidence.build(scaled, candidates, *learned, self.theta)
        found = clustering.cluster(
            scaled,
            candidates,
            B,
            alpha=self.alpha,
            beta=self.beta,
            rule=self.rule,
            max_iterations=self.max_iterations,
            tolerance=self.tolerance,
        )
        F = found.pseudo_labels.toarray()
        self._train(self.map_.map_scaled(scaled), candidates, F, rng)
        self.objective_ = found.course.objective.tolist()
        return F
