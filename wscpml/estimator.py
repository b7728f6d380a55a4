"""WSCPML: noisy labels in; which of them are wrong, and a model that ignores those, out."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from wscpml.algorithm import composition
from wscpml.arrays import EVEN_ODDS, Array, Matrix
from wscpml.devices import one_blas_thread
from wscpml.methods.base import OnKernelFeatures
from wscpml.parameters import (
    ClassifierSettings,
    ClusteringSettings,
    Device,
    FeatureSettings,
    ParameterError,
    WeakSupervisionSettings,
    part_of,
)
from wscpml.quality import evidence, issues, judging, queue
from wscpml.quality.decisions import Decided, decided, remarks, taken
from wscpml.randomness import streams


@dataclass(kw_only=True, eq=False, repr=False)
class WSCPML(
    OnKernelFeatures,
    FeatureSettings,
    WeakSupervisionSettings,
    ClusteringSettings,
    ClassifierSettings,
):
    """Find the wrong labels of a data set, and train a classifier without them.

    X and y may be tables: then labels and instances keep their names, and what comes out is
    tables too. Where both are tables, rows belong together that have the same index. With a whole
    number as `random_state` everything is what the pipeline gives for that `seed`.

    Parameters
    ----------
    labels : "cleaned" or "printed"
        What the classifier is trained on: the label confidences, with even odds where the fewest
        errors are to be expected; or F, the pseudo-labels of the paper, with nothing shifted.
    kind : "network" or "kernel_ridge"
        The classifier. This and all others are explained in params.yaml.

    Attributes
    ----------
    label_confidence_ : (n, q)
        The probability that a candidate is true; 0 where a label is no candidate. What a person
        has decided is 1 or 0.
    candidates_ : (n, q)
        The candidates, with the labels that a person has added.
    decided_ : Decided
        The pairs that a person has decided, by the numbers of their `row` and `label`.
    pseudo_labels_ : (n, q)
        What the classifier was trained on.
    noise_rates_ : table of q rows
        For each label: its `candidates`, the estimated share of them that are false,
        `noise_rate`, between `lower` and `upper` with 90 %, and the `chance` of the label to be a
        candidate where it is not true.
    noise_ : dict
        Which `kind` of noise was found, `common` to all labels, `per label` or `none seen`, and
        what speaks for it.
    remarks_ : list of str
        The same in words, what cannot be known from these data, and what is odd about decisions.
    prototypes_ : (q, d)
        Those of the clustering, among the scaled features.
    """

    TITLE = "WSC-PML"
    SOURCE = "WSC-PML for practitioners"

    device: Device = "auto"
    random_state: Any = None

    def fit(self, X: Any, y: Any, decisions: Any = None) -> Self:
        """Fit to features ``(n, d)`` and candidates ``(n, q)``, arrays or tables.

        What a person knows goes in as `decisions`: a table, or the name of its file, with the
        columns `instance` (as the index of the tables has it, or the number of the row), `label`
        and `decision`, true or false.
        """
        y = _matched(X, y)
        named = next((each for each in (X, y) if isinstance(each, pd.DataFrame)), None)
        self._tables = isinstance(y, pd.DataFrame)
        self._names = (
            named.index if named is not None else None,
            y.columns if self._tables else None,
        )
        self._decisions = None if decisions is None else taken(decisions)
        with one_blas_thread():
            super().fit(X, y)
        noise = self.judged_.noise
        self.noise_rates_ = noise.table(self.label_names_, self.candidates_).set_index("label")
        self.noise_, self.remarks_ = noise.summary(), noise.told(self.label_names_)
        if self._decisions:
            self.remarks_ += remarks(self._decisions[0])
            self.remarks_ += queue.told(self.candidates_, self.decided_, self.label_names_)
        self.label_confidence_, self.pseudo_labels_ = (
            self._named(values, self.instances_)
            for values in (self.judged_.label_confidence, self.pseudo_labels_)
        )
        return self

    def _fit(self, X: Matrix, candidates: Array, rng: np.random.Generator) -> Array:
        self.decided_ = self._decided_of(len(candidates))
        known = self.decided_.added_to(candidates)
        seed = self.random_state
        whole = isinstance(seed, int | np.integer)
        random = streams(int(seed if whole else rng.integers(2**31)))
        rows = self._represented(X, random.anchors)
        B = composition.supervise(rows.scaled, candidates, part_of(self, WeakSupervisionSettings))
        found = composition.cluster(
            rows.scaled, candidates, B, part_of(self, ClusteringSettings), self.device
        )
        self.judged_ = judging.judge(rows, candidates, random.judging, self.decided_)
        F = self.decided_.settle(found.pseudo_labels.toarray())
        self.head_ = composition.train(
            rows,
            known,
            F,
            self.judged_.label_confidence,
            self.judged_.noise.weight,
            part_of(self, ClassifierSettings),
            random.classifier,
            self.device,
        ).head
        self.objective_ = found.course.objective.tolist()
        self.candidates_, self.prototypes_ = known, found.prototypes
        self.evidence_ = evidence.gather(rows.scaled, found.prototypes)
        return self.judged_.to_learn(known) if self.labels == "cleaned" else F

    def _decided_of(self, n: int) -> Decided:
        """What is decided of n rows; these and the labels get their names."""
        index, columns = self._names
        classes = self.classes_[-1:] if self.binary_ else self.classes_
        self.instances_ = pd.RangeIndex(n) if index is None else index
        self.label_names_ = [str(name) for name in (classes if columns is None else columns)]
        if self._decisions is None:
            return Decided.nothing()
        table, where = self._decisions
        return decided(table, self.instances_, self.label_names_, where)

    def predict_proba(self, X: Any) -> Any:
        """Probability of each label, ``(n, q)``; of both classes where y was one column."""
        with one_blas_thread():
            return self._named(super().predict_proba(X), getattr(X, "index", None))

    def predict(self, X: Any) -> Any:
        """Labels as 0 and 1, ``(n, q)``; the class where y was one column."""
        return self._named(np.asarray(super().predict(X)), getattr(X, "index", None))

    def find_label_issues(self, below: float = EVEN_ODDS) -> pd.DataFrame:
        """Candidates that are probably wrong, the most suspicious first, and why.

        Those that a person has decided are not among them, whatever the decision was.

        Returns
        -------
        DataFrame
            `instance`, `label`, `label_confidence` (all below `below`); `nearest`: the labels
            whose prototypes are nearest to the instance, the nearest first; `prototype_rank`: the
            place of this label's own among all; `competing`: the instance's other candidates
            that are more likely to be true, the likeliest first.
        """
        check_is_fitted(self)
        return issues.find(
            self.judged_.label_confidence,
            self.decided_.undecided(self.candidates_),
            self.evidence_.nearest,
            self.label_names_,
            self.instances_,
            below,
        )

    def queue(self, size: int = 100) -> pd.DataFrame:
        """The undecided candidates whose answer is worth most, in the order of asking.

        Returns
        -------
        DataFrame
            `instance`, `label`, `decision` (empty, to be filled in: the table is one of decisions
            then), `label_confidence`, and `chosen`: `random` of a fifth of them, by which the share
            of wrong tags is estimated, else `worth`.
        """
        check_is_fitted(self)
        return queue.table(
            queue.choose(self.judged_.label_confidence, self.candidates_, self.decided_, size),
            self.judged_.label_confidence,
            self.instances_,
            self.label_names_,
        )

    def _named(self, values: Array, instances: Any) -> Any:
        return pd.DataFrame(values, instances, self.label_names_) if self._tables else values


def _matched(X: Any, y: Any) -> Any:
    """The labels in the order of the rows of X, where both say what their rows are called."""
    tables = isinstance(X, pd.DataFrame) and isinstance(y, pd.DataFrame | pd.Series)
    if not tables or X.index.equals(y.index):
        return y
    unknown = X.index.symmetric_difference(y.index)
    if len(unknown) or X.index.has_duplicates or y.index.has_duplicates:
        example = f"such as {unknown[0]!r}" if len(unknown) else "and some of them twice"
        raise ParameterError(
            f"X and y: their indexes name different rows, {example}; give both the same index, or "
            "y as an array in the order of X"
        )
    return y.loc[X.index]
