"""Data at the edge: what comes out is finite and within its bounds, or one clear error."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from wscpml import WSCPML
from wscpml.quality import judging

RNG = np.random.default_rng(0)
N = 40
X = RNG.normal(size=(N, 4))
Y = (RNG.random((N, 3)) < 0.5).astype(np.uint8)
FEW, MANY = RNG.normal(size=(50, 4)), (RNG.random((50, 2000)) < 0.01).astype(np.uint8)

CASES = {
    "two rows": (X[:2], Y[:2]),
    "one label": (X, Y[:, :1]),
    "all are candidates": (X, np.ones_like(Y)),
    "there are no candidates": (X, np.zeros_like(Y)),
    "a row of all and a row of none": (X, np.vstack([Y[:-2], np.ones(3), np.zeros(3)])),
    "constants": (np.ones_like(X), Y),
    "columns of 1e30, 1e-30 and nothing": (X * [1e30, 1e-30, 1, 0], Y),
    "1e300": (X * 1e300, Y),
    "float16": (X.astype(np.float16), Y),
    "small whole numbers": ((5 * X).astype(np.int8), Y),
    "true and false": (X > 0, Y),
    "two rows again and again": (np.vstack([X[:2]] * (N // 2)), Y),
    "2000 labels of 50 rows": (FEW, MANY),
}


@pytest.mark.parametrize("case", CASES)
def test_what_comes_out_is_finite_and_within_its_bounds(case, monkeypatch):
    monkeypatch.setattr(judging, "TREES", 20)
    features, labels = CASES[case]
    model = WSCPML(max_epochs=1, random_state=0).fit(features, labels)
    found = [model.predict_proba(features), model.label_confidence_, model.pseudo_labels_]
    for values in found:
        assert np.isfinite(values).all()
        assert values.min() >= 0
        assert values.max() <= 1
    assert not model.label_confidence_[labels == 0].any()
    assert model.find_label_issues().label_confidence.between(0, 0.5).all()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_no_finite_number_is_refused(value):
    with pytest.raises(ValueError, match="Input X contains"):
        WSCPML().fit(np.where(X > 2, value, X), Y)


def test_a_single_row_is_refused():
    with pytest.raises(ValueError, match="a minimum of 2 is required"):
        WSCPML().fit(X[:1], Y[:1])


def test_labels_of_other_rows_are_refused_and_not_matched_by_their_place():
    with pytest.raises(ValueError, match="their indexes name different rows.*give both the same"):
        WSCPML().fit(pd.DataFrame(X), pd.DataFrame(Y, index=range(5, N + 5)))


def test_columns_are_taken_by_name_and_a_missing_one_is_refused(monkeypatch):
    monkeypatch.setattr(judging, "TREES", 20)
    table = pd.DataFrame(X, columns=list("abcd"))
    model = WSCPML(max_epochs=1, random_state=0).fit(table, Y)
    found, expected = (model.predict_proba(table[list(each)]) for each in ("dcba", "abcd"))
    np.testing.assert_array_equal(found, expected)
    with pytest.raises(ValueError, match=r"yet now missing:\n- d"):
        model.predict_proba(table[list("abc")])


@pytest.mark.parametrize("ask", ["find_label_issues", "find_missing_labels", "queue"])
def test_what_was_not_fitted_says_so(ask):
    with pytest.raises(NotFittedError):
        getattr(WSCPML(), ask)()
