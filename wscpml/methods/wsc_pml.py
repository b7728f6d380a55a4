"""WSC-PML as the paper prints it: its stages behind scikit-learn's fit and predict."""

from copy import deepcopy
from itertools import product
from typing import Any, Literal

import numpy as np
from sklearn.base import clone

from wscpml.algorithm import clustering, network, prototypes, weak_supervision
from wscpml.algorithm.clustering import Clustering
from wscpml.algorithm.network import Problem
from wscpml.arrays import Array, Matrix, row_blocks
from wscpml.methods.base import Scored
from wscpml.methods.br import BR, TRAINING


class AsPrinted(BR):
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
        width: int = 4,
        learning_rate: float = 0.001,
        weight_decay: float = 0.01,
        batch_size: int = 256,
        max_epochs: int = 20,
        patience: int = 2,
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
        found = self._cluster(scaled, candidates, self._confidence(scaled, candidates))
        F = found.pseudo_labels.toarray()
        self._train(self.map_.map_scaled(scaled), candidates, F, rng)
        self.objective_ = found.course.objective.tolist()
        return F

    def _confidence(self, scaled: Matrix, candidates: Array) -> Array:
        learned = prototypes.learn(scaled, candidates)
        return weak_supervision.build(scaled, candidates, *learned, self.theta)

    def _cluster(self, scaled: Matrix, candidates: Array, B: Array) -> Clustering:
        names = ("alpha", "beta", "rule", "max_iterations", "tolerance")
        return clustering.cluster(scaled, candidates, B, **self._chosen(names))

    def score_grid(self, X: Matrix, y: Array, rest: Matrix) -> list[Scored]:
        """Fit at each point of the grid, and score the `rest`; what points share is done once.

        The criterion is the average precision with which the closed form that a network starts
        from ranks the candidates of each training row, left out of its fit, above other labels.
        """
        rng = np.random.default_rng(self.random_state)
        scaled = self._scaled(X, rng)
        B = self._confidence(scaled, y)
        mapped, unseen = self.map_.map_scaled(scaled), self.map_(rest)
        axes = network.principal_axes(mapped)
        points = [dict(zip(self.GRID, v, strict=True)) for v in product(*self.GRID.values())]
        each = (clone(self).set_params(**point) for point in points)
        found = [point._cluster(scaled, y, B).pseudo_labels.toarray() for point in each]
        distinct = {F.tobytes(): F for F in found}  # a large beta leaves all F at 1
        problems = [Problem(mapped, y, F, deepcopy(rng), axes) for F in distinct.values()]
        scores: list[tuple[Array, float]] = []
        for some in row_blocks(len(problems), network.NETWORKS):  # more take memory, not time
            for trained, course in network.fit_all(problems[some], **self._chosen(TRAINING)):
                criterion = course.attrs["candidate_precision"]
                scores.append((trained.predict_proba(unseen), criterion))
        score_of = dict(zip(distinct, scores, strict=True))
        whole = zip(points, (score_of[F.tobytes()] for F in found), strict=True)
        return [Scored(point, S, self._choose(S), criterion) for point, (S, criterion) in whole]
