"""WSC-PML as the paper prints it: its steps behind scikit-learn's fit and predict."""

from copy import deepcopy
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

import numpy as np
from sklearn.base import clone

from wscpml.algorithm import composition, network
from wscpml.algorithm.clustering import Clustering
from wscpml.algorithm.network import Problem
from wscpml.arrays import Array, Matrix, row_blocks
from wscpml.methods.base import OnKernelFeatures, Scored
from wscpml.parameters import (
    ClusteringSettings,
    FeatureSettings,
    NetworkSettings,
    WeakSupervisionSettings,
    part_of,
)


@dataclass(kw_only=True, eq=False, repr=False)
class AsPrinted(
    OnKernelFeatures, FeatureSettings, WeakSupervisionSettings, ClusteringSettings, NetworkSettings
):
    """Weakly-supervised clustering for partial multi-label learning.

    Pseudo-labels are F of Eq. 10; `objective_` is its value per iteration of the clustering. The
    parameters are those of the sections `features`, `weak_supervision`, `clustering` and
    `classifier` of params.yaml, which explains each.
    """

    TITLE = "WSC-PML"
    SOURCE = "Chen et al., weakly-supervised clustering for partial multi-label learning"
    GRID = {"alpha": [0.01, 0.1, 1.0, 10.0, 100.0], "beta": [0.01, 0.1, 1.0, 10.0, 100.0]}

    random_state: Any = None

    def _fit(self, X: Matrix, candidates: Array, rng: np.random.Generator) -> Array:
        rows = self._represented(X, rng)
        found = self._cluster(rows.scaled, candidates, self._supervised(rows.scaled, candidates))
        F = found.pseudo_labels.toarray()
        settings = part_of(self, NetworkSettings)
        self.head_ = composition.train_network(rows, candidates, F, settings, rng).head
        self.objective_ = found.course.objective.tolist()
        return F

    def _supervised(self, scaled: Matrix, candidates: Array) -> Array:
        settings = part_of(self, WeakSupervisionSettings)
        return composition.supervise(scaled, candidates, settings)

    def _cluster(self, scaled: Matrix, candidates: Array, B: Array) -> Clustering:
        return composition.cluster(scaled, candidates, B, part_of(self, ClusteringSettings))

    def score_grid(self, X: Matrix, y: Array, rest: Matrix) -> list[Scored]:
        """Fit at each point of the grid, and score the `rest`; what points share is done once.

        The criterion is the average precision with which the closed form that a network starts
        from ranks the candidates of each training row, left out of its fit, above other labels.
        """
        rng = np.random.default_rng(self.random_state)
        rows = self._represented(X, rng)
        B, unseen = self._supervised(rows.scaled, y), self.map_(rest)
        points = [dict(zip(self.GRID, v, strict=True)) for v in product(*self.GRID.values())]
        each = (clone(self).set_params(**point) for point in points)
        found = [point._cluster(rows.scaled, y, B).pseudo_labels.toarray() for point in each]
        distinct = {F.tobytes(): F for F in found}  # a large beta leaves all F at 1
        problems = [Problem(rows.mapped, y, F, deepcopy(rng), rows.axes) for F in distinct.values()]
        settings = asdict(part_of(self, NetworkSettings))
        scores: list[tuple[Array, float]] = []
        for some in row_blocks(len(problems), network.NETWORKS):  # more take memory, not time
            for trained, course in network.fit_all(problems[some], **settings):
                criterion = course.attrs["candidate_precision"]
                scores.append((trained.predict_proba(unseen), criterion))
        score_of = dict(zip(distinct, scores, strict=True))
        whole = zip(points, (score_of[F.tobytes()] for F in found), strict=True)
        return [Scored(point, S, self._choose(S), criterion) for point, (S, criterion) in whole]
