"""What every method shares: checks of the input, scaled features, and from scores to labels."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from wscpml.algorithm import composition, features
from wscpml.algorithm.composition import Head, TrainingRows
from wscpml.algorithm.features import FeatureMap
from wscpml.arrays import EVEN_ODDS, Array, Matrix, to_dense
from wscpml.datasets.dataset import lean
from wscpml.parameters import FeatureSettings, check_estimator, part_of


@dataclass(frozen=True)
class Scored:
    """What a method says of rows that it has not seen, at one setting of its parameters."""

    settings: dict[str, Any]  # those that were searched
    probabilities: Array  # (n, q)
    labels: Array  # (n, q)
    criterion: float | None  # how well it did by candidates alone, higher is better; None: unknown


class Method(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A partial multi-label method with the ways of a scikit-learn classifier.

    `fit` takes candidates ``(n, q)`` of 0 and 1, dense or sparse; one column of any two values
    makes it a binary classifier. A method says how in `_fit` and `_probabilities`, both of which
    see scaled features; `_choose` is its rule from probabilities to labels.

    Attributes
    ----------
    pseudo_labels_ : array (n, q)
        In [0, 1], and 0 where a label is no candidate.
    objective_ : list of float
        Value of the method's objective after each iteration; empty for one without iterations.
    """

    TITLE: ClassVar[str]  # what people read
    SOURCE: ClassVar[str]  # whose method it is
    GRID: ClassVar[dict[str, list[Any]]] = {}  # the recommended values of its parameters
    SCALING: ClassVar[str] = "minmax"
    TAKES: ClassVar[Any] = np.float64  # the type of dense features, or several
    FEWEST_ROWS: ClassVar[int] = 1
    NEEDS_TRUTH: ClassVar[bool] = False  # whether `fit` is to be given the truth for candidates
    SPARSE_LABELS: ClassVar[bool] = False  # whether `_fit` takes very many candidates as CSR
    OWN_RULE: ClassVar[bool] = False  # whether `_choose` is other than a threshold

    random_state: Any

    @abstractmethod
    def _fit(self, X: Matrix, candidates: Matrix, rng: np.random.Generator) -> Matrix:
        """Fit to scaled features ``(n, d)`` and candidates ``(n, q)``; returns pseudo-labels."""

    @abstractmethod
    def _probabilities(self, X: Matrix) -> Array:
        """Score each label of scaled rows, ``(n, q)`` in [0, 1]."""

    def _choose(self, probabilities: Array) -> Array:
        """Which labels are on, a boolean ``(n, q)``."""
        return probabilities >= EVEN_ODDS

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to features ``(n, d)`` and candidates ``(n, q)``."""
        check_estimator(self)
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse="csr",
            multi_output=True,
            dtype=self.TAKES,
            ensure_min_samples=self.FEWEST_ROWS,
        )
        candidates = self._encoded(y)
        rng = np.random.default_rng(self.random_state)
        X = sparse.csr_array(X) if sparse.issparse(X) else X
        self.scale_ = features.fit_scaling(X, self.SCALING).scale
        self.objective_: list[float] = []
        if self.SCALING != "none":
            X = self.scale_(X)
        self.pseudo_labels_ = self._fit(X, candidates, rng)
        return self

    def predict_proba(self, X: Any) -> Array:
        """Probability of each label, ``(n, q)``; of both classes where y was one column."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        X = sparse.csr_array(X) if sparse.issparse(X) else X
        probabilities = self._probabilities(self.scale_(X))
        if self.binary_ and len(self.classes_) == 2:
            return np.hstack([1 - probabilities, probabilities])
        return np.ones((X.shape[0], 1)) if self.binary_ else probabilities

    def predict(self, X: Any) -> Array:
        """Labels as 0 and 1, ``(n, q)``; the class where y was one column."""
        probabilities = self.predict_proba(X)
        if self.binary_:
            return self.classes_[probabilities.argmax(axis=1)]
        return self._choose(probabilities).astype(np.int64)

    def score_grid(self, X: Any, y: Any, rest: Any) -> list[Scored]:
        """Fit to `X` and `y` at each setting that is to be searched, and score the `rest`.

        A method with recommended parameters is fitted just once, with these.
        """
        self.fit(X, y)
        return [Scored({}, self.predict_proba(rest), self.predict(rest), None)]

    def _encoded(self, y: Any) -> Matrix:
        """Candidates as 0/1 uint8 ``(n, q)``, and what they were called."""
        y = lean(y) if self.SPARSE_LABELS and sparse.issparse(y) else to_dense(y)
        if sparse.issparse(y):
            if not np.isin(y.data, (0, 1)).all():
                raise ValueError("Unknown label type: candidates must be 0 or 1")
            self.binary_, self.classes_ = False, np.arange(y.shape[1])
            return y.astype(np.uint8)
        check_classification_targets(y)
        kind = type_of_target(y, input_name="y")
        self.binary_ = y.ndim == 1
        if y.ndim == 2:
            if not np.isin(y, (0, 1)).all():
                raise ValueError(f"Unknown label type: candidates must be 0 or 1, got {kind}")
            self.classes_ = np.arange(y.shape[1])
            return y.astype(np.uint8)
        self.classes_, encoded = np.unique(y, return_inverse=True)
        if len(self.classes_) > 2:
            raise ValueError(
                "Only binary classification is supported. "
                f"The type of the target is {kind}; give candidates as 0/1 columns"
            )
        return encoded.astype(np.uint8)[:, None]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.multi_label = True
        tags.target_tags.multi_output = True
        tags.input_tags.sparse = True
        return tags


class OnKernelFeatures(Method):
    """A method whose classifier takes the kernel features that section `features` describes."""

    SCALING = "none"  # the feature map scales
    TAKES: ClassVar[Any] = (np.float64, np.float32)
    FEWEST_ROWS = 2  # one is held out

    map_: FeatureMap
    head_: Head

    def _represented(self, X: Matrix, rng: np.random.Generator) -> TrainingRows:
        """Fit the feature map, and take the rows through it."""
        rows = composition.represent(X, part_of(self, FeatureSettings), rng)
        self.map_ = rows.feature_map
        return rows

    def _probabilities(self, X: Matrix) -> Array:
        return self.head_.predict_proba(self.map_(X))
