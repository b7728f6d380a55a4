"""WSCPML: noisy labels in; which of them are wrong, and a model that ignores those, out."""

from typing import Any, Literal, Self

import numpy as np
import pandas as pd

from wscpml.algorithm import network, ridge
from wscpml.algorithm.network import Problem
from wscpml.arrays import Array, Matrix
from wscpml.methods.br import TRAINING
from wscpml.methods.wsc_pml import AsPrinted
from wscpml.quality import audit, issues, judging
from wscpml.serving.model import Head, with_even_odds_at


class WSCPML(AsPrinted):
    """Find the wrong labels of a data set, and train a classifier without them.

    X and y may be tables: then labels and instances keep their names, and what comes out is
    tables too.

    Parameters
    ----------
    labels : "cleaned" or "printed"
        What the classifier is trained on: the confidence of each candidate, or F, the
        pseudo-labels of the paper.
    kind : "network" or "kernel_ridge"
        The classifier. This and all others are explained in params.yaml.

    Attributes
    ----------
    label_confidence_ : (n, q)
        The probability that a candidate is true; 0 where a label is no candidate.
    pseudo_labels_ : (n, q)
        What the classifier was trained on.
    noise_rates_ : (q,)
        The estimated share of each label's candidates that are false.
    """

    def __init__(
        self,
        labels: Literal["cleaned", "printed"] = "cleaned",
        kind: Literal["network", "kernel_ridge"] = "network",
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
        given = {k: v for k, v in locals().items() if k not in ("self", "__class__")}
        self.labels, self.kind = given.pop("labels"), given.pop("kind")
        super().__init__(**given)

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to features ``(n, d)`` and candidates ``(n, q)``, arrays or tables."""
        super().fit(X, y)
        tables = isinstance(y, pd.DataFrame) and not self.binary_
        classes = self.classes_[-1:] if self.binary_ else self.classes_
        self.label_names_ = [str(name) for name in (y.columns if tables else classes)]
        named = next((each for each in (X, y) if isinstance(each, pd.DataFrame)), None)
        self.instances_ = pd.RangeIndex(len(self._Y)) if named is None else named.index
        self._tables = tables
        self.label_confidence_, self.pseudo_labels_ = (
            self._named(values, self.instances_)
            for values in (self.quality_.confidence, self.pseudo_labels_)
        )
        return self

    def _fit(self, X: Matrix, candidates: Array, rng: np.random.Generator) -> Array:
        scaled = self._scaled(X, rng)
        found = self._cluster(scaled, candidates, self._confidence(scaled, candidates))
        mapped = self.map_.map_scaled(scaled)
        axes = network.principal_axes(mapped)
        seed = int(rng.integers(2**31))
        self.quality_ = judging.assess(scaled, mapped, axes, candidates, seed)
        self.noise_rates_ = judging.noise_rates(self.quality_.confidence, candidates)
        cleaned = self.labels == "cleaned"
        labels = self.quality_.confidence if cleaned else found.pseudo_labels.toarray()
        if self.kind == "kernel_ridge":
            head: Head = ridge.fit(mapped, candidates, labels).head
        else:
            problem = Problem(mapped, candidates, labels, rng, axes)
            ((head, _),) = network.fit_all([problem], **self._chosen(TRAINING))
        even = judging.even_odds(
            head.predict_proba, mapped, axes, candidates, self.quality_.confidence
        )
        self.head_ = with_even_odds_at(even, head)  # type: ignore[assignment]
        self.objective_ = found.course.objective.tolist()
        self._Y, self._order = candidates, issues.by_distance(scaled, found.prototypes)
        self._positions = audit.positions(scaled, found.prototypes)
        return labels

    def predict_proba(self, X: Any) -> Any:
        """Probability of each label, ``(n, q)``; of both classes where y was one column."""
        return self._named(super().predict_proba(X), getattr(X, "index", None))

    def predict(self, X: Any) -> Any:
        """Labels as 0 and 1, ``(n, q)``; the class where y was one column."""
        return self._named(np.asarray(super().predict(X)), getattr(X, "index", None))

    def find_label_issues(self, below: float = issues.EVEN) -> pd.DataFrame:
        """Candidates that are probably wrong, the most suspicious first, and why.

        Returns
        -------
        DataFrame
            `instance`, `label`, `confidence` (all below `below`); `nearest`: the labels whose
            prototypes are nearest to the instance, the nearest first; `prototype_rank`: the
            place of this label's own among all; `competing`: the instance's other candidates
            that are more likely to be true, the likeliest first.
        """
        confidence = self.quality_.confidence
        return issues.find(
            confidence, self._Y, self._order, self.label_names_, self.instances_, below
        )

    def _named(self, values: Array, instances: Any) -> Any:
        return pd.DataFrame(values, instances, self.label_names_) if self._tables else values
