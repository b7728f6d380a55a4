"""What every method has to stand: subclass `Contract` in the method's own test file."""

from typing import ClassVar

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from wscpml.methods.base import Method

NOT_OURS = {  # scikit-learn skips these itself: we promise no array API and no decision_function
    "check_array_api_input",
    "check_classifiers_multilabel_output_format_decision_function",
}
NEAR_THE_TOP = {
    "check_classifier_multioutput": "labels are those near the row's best, not those above a half"
}


def small(seed=0, n=60, d=8, q=4):
    """Features, truth that a linear rule gives, and candidates with as much noise as truth."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    truth = (X @ rng.normal(size=(d, q)) > 0.3).astype(np.uint8)
    candidates = np.maximum(truth, rng.random((n, q)) < 0.25).astype(np.uint8)
    return X, truth, candidates


def assert_minimiser(objective, found):
    """No generic optimiser finds a lower value of the objective than at `found`, nor elsewhere."""
    best = minimize(objective, np.zeros(found.size), options={"gtol": 1e-6})
    np.testing.assert_allclose(found.ravel(), best.x, atol=1e-5)
    assert objective(found) <= best.fun + 1e-9


class Contract:
    """`method` is an estimator with settings that make it quick."""

    method: Method
    excused: ClassVar[dict[str, str]] = {}  # scikit-learn's checks that fail, each with the reason

    def fitted(self, X, candidates, **settings):
        return clone(self.method).set_params(random_state=0, **settings).fit(X, candidates)

    def test_it_passes_scikit_learns_own_checks(self):
        outcomes = check_estimator(
            clone(self.method), on_skip=None, expected_failed_checks=self.excused
        )
        left_out = {each["check_name"] for each in outcomes if each["status"] != "passed"}
        assert left_out - NOT_OURS == self.excused.keys()

    def test_it_learns_what_the_candidates_tell(self):
        X, truth, candidates = small(n=300)
        scores = self.fitted(X[:200], candidates[:200]).predict_proba(X[200:])
        above = scores[truth[200:] == 1].mean() - scores[truth[200:] == 0].mean()
        assert above > 0.05

    def test_the_same_seed_gives_the_same_bytes(self):
        X, _, candidates = small()
        one, other = (self.fitted(X, candidates).predict_proba(X).tobytes() for _ in range(2))
        assert one == other

    def test_pseudo_labels_are_shares_of_candidates(self):
        X, _, candidates = small()
        F = self.fitted(X, candidates).pseudo_labels_
        assert F.shape == candidates.shape
        assert (F >= 0).all()
        assert (candidates >= F).all()

    def test_the_recommended_values_are_parameters_with_the_default_among_them(self):
        defaults = type(self.method)().get_params()
        for name, values in self.method.GRID.items():
            assert defaults[name] in values

    @pytest.mark.parametrize(
        "odd",
        [
            "row without candidates",
            "label without instances",
            "constant feature",
            "all-candidate row",
            "sparse features",
            "one label",
            "fewer rows than features",
            "duplicates",
            "every label everywhere",
        ],
    )
    def test_odd_input_gives_finite_probabilities(self, odd):
        X, _, candidates = small()
        if odd == "row without candidates":
            candidates[:20] = 0
        elif odd == "label without instances":
            candidates[:, 1] = 0
        elif odd == "constant feature":
            X[:, 2] = 7.0
        elif odd == "all-candidate row":
            candidates[:20] = 1
        elif odd == "sparse features":
            X = sparse.csr_array(np.where(np.abs(X) > 1, X, 0))
        elif odd == "one label":
            candidates = candidates[:, :1]
        elif odd == "fewer rows than features":
            X, candidates = np.hstack([X] * 5)[:12], candidates[:12]
        elif odd == "duplicates":
            X, candidates = np.vstack([X, X]), np.vstack([candidates, candidates])
        else:
            candidates[:] = 1
        fitted = self.fitted(X, candidates)
        probabilities, labels = fitted.predict_proba(X), fitted.predict(X)
        assert probabilities.shape == labels.shape == candidates.shape
        assert ((probabilities >= 0) & (probabilities <= 1)).all()
        assert set(np.unique(labels)) <= {0, 1}
        assert np.isfinite(fitted.pseudo_labels_).all()

    def test_features_that_are_no_numbers_are_refused(self):
        X, _, candidates = small()
        X[3, 2] = np.nan
        with pytest.raises(ValueError, match="NaN"):
            self.fitted(X, candidates)
