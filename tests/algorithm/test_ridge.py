import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge

from wscpml.algorithm import features, ridge
from wscpml.arrays import to_unit_interval


def problem(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    truth = np.column_stack([X[:, 0] > 0, X[:, 1] > 0.5, X[:, 2] * X[:, 3] > 0]).astype(np.uint8)
    candidates = truth | (rng.random(truth.shape) < 0.2)
    return X, candidates.astype(np.uint8)


def kernel_map(X):
    """A kernel map with every training row as an anchor: then it is exact."""
    return features.fit(X, "minmax", "rbf", len(X), 1.0, 1.0, np.random.default_rng(0))


def test_with_all_rows_as_anchors_it_is_kernel_ridge_regression(monkeypatch):
    X, Y = problem()
    Z = kernel_map(X)(X).astype(float)
    monkeypatch.setattr(ridge, "PENALTIES", np.array([0.3]))
    head = ridge.fit(Z, Y, Y).head
    # Centred kernel, centred targets: ridge regression with a free intercept.
    theirs = KernelRidge(alpha=0.3, kernel="precomputed").fit(Z @ Z.T, Y - Y.mean(axis=0))
    expected = to_unit_interval(theirs.predict(Z @ Z.T) + Y.mean(axis=0))
    np.testing.assert_allclose(head.predict_proba(Z), expected, atol=1e-6)


@pytest.mark.parametrize("kernel", ["rbf", "none"])
def test_leave_one_out_predictions_are_those_of_fits_without_the_row(monkeypatch, kernel):
    X, Y = problem(25)
    mapped = features.fit(X, "minmax", kernel, 3, 1.0, 1.0, np.random.default_rng(0))(X)
    monkeypatch.setattr(ridge, "PENALTIES", np.array([0.5]))
    left_out = ridge.fit(mapped, Y, Y).left_out
    for i in (0, 7, 24):
        rest = np.arange(25) != i
        head = ridge.fit(mapped[rest], Y[rest], Y[rest]).head
        np.testing.assert_allclose(left_out[i], mapped[i] @ head.weight + head.bias, atol=1e-6)


def test_a_fit_without_some_rows_comes_from_the_one_with_all(monkeypatch):
    X, Y = problem(40)
    monkeypatch.setattr(ridge, "PENALTIES", np.array([0.5]))
    rows = np.array([3, 11, 12, 39])
    found = ridge.fit(X, Y, Y).without(rows)
    rest = np.setdiff1d(np.arange(40), rows)
    expected = ridge.fit(X[rest], Y[rest], Y[rest]).head
    np.testing.assert_allclose(found.weight, expected.weight, atol=1e-9)
    np.testing.assert_allclose(found.bias, expected.bias, atol=1e-9)


def test_the_penalty_is_in_the_middle_of_those_that_rank_the_candidates_best(monkeypatch):
    X, Y = problem(200)
    Z = kernel_map(X)(X)
    fitted = ridge.fit(Z, Y, Y)
    course = fitted.course
    assert course.penalty.tolist() == ridge.PENALTIES.tolist()
    assert course.training_loss.is_monotonic_increasing
    best = course.penalty[course.validation_loss <= course.validation_loss.min() + ridge.AS_GOOD]
    assert 0 < len(best) < len(course)
    monkeypatch.setattr(ridge, "PENALTIES", np.array([np.exp(np.log(best).mean())]))
    np.testing.assert_allclose(fitted.left_out, ridge.fit(Z, Y, Y).left_out)


def test_the_recorded_loss_is_that_of_the_leave_one_out_ranking(monkeypatch):
    X, Y = problem(200)
    monkeypatch.setattr(ridge, "PENALTIES", np.array([0.5]))
    fitted = ridge.fit(kernel_map(X)(X), Y, Y)
    rankable = (Y.min(axis=1) == 0) & (Y.max(axis=1) == 1)
    found = ridge.average_precision(Y[rankable], fitted.left_out[rankable])
    assert fitted.course.validation_loss[0] == pytest.approx(1 - found)


def test_of_very_many_rows_evenly_spaced_ones_choose_the_penalty(monkeypatch):
    X, Y = problem(200)
    Z = kernel_map(X)(X)
    monkeypatch.setattr(ridge, "PENALTIES", np.array([0.5]))
    left_out = ridge.fit(Z, Y, Y).left_out[::4]
    monkeypatch.setattr(ridge, "MOST_RANKED", 50)
    rankable = (Y[::4].min(axis=1) == 0) & (Y[::4].max(axis=1) == 1)
    found = ridge.average_precision(Y[::4][rankable], left_out[rankable])
    assert ridge.fit(Z, Y, Y).course.validation_loss[0] == pytest.approx(1 - found)


def test_features_along_the_axes_already_are_not_turned():
    X, Y = problem(80)
    Z = kernel_map(X)(X)
    turned = Z @ np.linalg.qr(np.random.default_rng(0).normal(size=(Z.shape[1],) * 2))[0]
    assert ridge.factorise(Z).directions is None
    assert ridge.factorise(turned).directions is not None
    expected = ridge.fit(turned, Y, Y)
    np.testing.assert_allclose(ridge.fit(Z, Y, Y).left_out, expected.left_out, atol=1e-4)


def test_of_very_many_rows_axes_are_made_in_blocks(monkeypatch):
    X, Y = problem(200)
    Z = X @ np.random.default_rng(0).normal(size=(4, 9))
    whole = ridge.fit(Z, Y, 0.9 * Y)
    monkeypatch.setattr(ridge, "FEW", 100)
    monkeypatch.setattr(ridge, "ROWS_AT_ONCE", 30)
    found = ridge.fit(Z, Y, 0.9 * Y)
    assert (whole.axes.U.dtype, found.axes.U.dtype) == (np.float64, np.float32)
    np.testing.assert_allclose(found.left_out, whole.left_out, atol=1e-5)
    rows = np.arange(0, 200, 7)
    np.testing.assert_allclose(found.without(rows).weight, whole.without(rows).weight, atol=1e-5)


def test_rows_that_cannot_be_ranked_and_labels_that_never_change_do_no_harm():
    X, Y = problem(30)
    Y[:, 0], Y[:, 1], Y[:, 2] = 1, 1, 1
    feature_map = kernel_map(X)
    fitted = ridge.fit(feature_map(X), Y, Y)
    predicted = fitted.head.predict_proba(feature_map(X))
    np.testing.assert_allclose(predicted, to_unit_interval(np.ones(Y.shape)))
    np.testing.assert_allclose(fitted.left_out, 1)


def test_rows_all_alike_do_no_harm():
    same = np.ones((5, 3))
    feature_map = kernel_map(same)
    Y = np.array([[1, 0], [1, 0], [0, 1], [1, 1], [0, 0]], dtype=np.uint8)
    fitted = ridge.fit(feature_map(same), Y, Y)
    expected = to_unit_interval(np.array([[0.6, 0.4]] * 5))
    predicted = fitted.head.predict_proba(feature_map(same))
    np.testing.assert_allclose(predicted, expected, atol=1e-6)
    assert np.isfinite(fitted.left_out).all()
