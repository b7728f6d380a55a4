import numpy as np
from sklearn.ensemble import RandomForestClassifier

from tests.contract import Contract, small
from wscpml.methods.forest import Forest


class TestForest(Contract):
    method = Forest(trees=30)


def test_it_is_the_forest_of_scikit_learns_classifier():
    X, _, Y = small(n=300)
    found = Forest(trees=50, smallest_leaf=20, random_state=0).fit(X, Y)  # no two splits as good
    X, seed = found.scale_(X), int(np.random.default_rng(0).integers(2**31))
    theirs = RandomForestClassifier(50, min_samples_leaf=20, oob_score=True, random_state=seed)
    left_out = theirs.fit(X, Y).oob_decision_function_[:, 1]
    np.testing.assert_allclose(found.pseudo_labels_, left_out * Y, atol=1e-12)
    on = np.stack([each[:, 1] for each in theirs.predict_proba(X)], axis=1)
    np.testing.assert_allclose(found.forest_.predict(X), on, atol=1e-12)


def test_pseudo_labels_are_those_of_trees_that_have_not_seen_the_row():
    X, _, Y = small(n=200)
    rng = np.random.default_rng(1)
    Y[:] = rng.random(Y.shape) < 0.5  # nothing to learn but the rows themselves
    found = Forest(smallest_leaf=1, random_state=0).fit(X, Y)
    seen = found.predict_proba(X)[Y == 1].mean()
    assert seen > 0.7
    assert found.pseudo_labels_[Y == 1].mean() < 0.55


def test_a_label_that_never_changes_is_predicted_as_it_is():
    X, _, Y = small()
    Y[:, 0], Y[:, 2] = 1, 0
    proba = Forest(trees=30, random_state=0).fit(X, Y).predict_proba(X)
    assert (proba[:, 0] == 1).all()
    assert (proba[:, 2] == 0).all()
    assert 0 < proba[:, 1].mean() < 1
