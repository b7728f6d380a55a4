from itertools import combinations

import numpy as np
import pytest

from tests.contract import Contract, small
from wscpml.methods import pamb
from wscpml.methods.linear import with_ones
from wscpml.methods.pamb import PAMB


class TestPAMB(Contract):
    method = PAMB()


def rng():
    return np.random.default_rng(0)


def random_targets(n, columns):
    return rng().integers(-1, 2, size=(n, columns)).astype(float)


@pytest.mark.parametrize("coded", [2, 3, 4, 6])
def test_adequacy_is_the_share_of_rows_over_all_columns_there_are(coded):
    q, sizes = 6, np.array([0, 1, 2, 4, 6])
    labels = (np.arange(q) < sizes[:, None]).astype(np.uint8)
    columns = [
        [1 if j in above else -1 if j in chosen else 0 for j in range(q)]
        for chosen in combinations(range(q), coded)
        for above in combinations(chosen, coded // 2)
    ]
    expected = (pamb.sides(labels, np.array(columns)) != 0).mean()
    assert pamb.adequacy(sizes, q, coded) == pytest.approx(expected)


def test_the_more_candidates_there_are_the_fewer_labels_are_coded():
    assert pamb.most_adequate(np.array([1, 1]), 20) == 20  # each row takes part, for certain
    assert pamb.most_adequate(np.array([10, 10]), 20) == 3
    assert pamb.most_adequate(np.array([18, 18]), 20) == 2
    # Two and three coded labels are as adequate; three tell more surely.
    assert pamb.adequacy(np.array([3]), 6, 2) == pytest.approx(pamb.adequacy(np.array([3]), 6, 3))
    assert pamb.most_adequate(np.array([3]), 6) == 3


def test_a_row_takes_part_where_its_candidates_meet_one_side_only():
    code = np.array([[1, -1, 0]])
    labels = np.array([[1, 0, 0], [0, 1, 1], [1, 1, 0], [0, 0, 1], [0, 0, 0], [1, 0, 1]])
    np.testing.assert_array_equal(pamb.sides(labels, code)[:, 0], [1, -1, 0, 0, 0, 1])


def test_columns_differ_and_have_enough_rows_on_both_sides():
    labels = (rng().random((80, 8)) < 0.3).astype(np.uint8)
    code = pamb.encode(labels, 4, 50, 5, rng())
    targets = pamb.sides(labels, code)
    assert code.shape == (50, 8)
    assert ((code != 0).sum(axis=1) == 4).all()
    assert (code.sum(axis=1) == 0).all()
    assert min((targets > 0).sum(axis=0).min(), (targets < 0).sum(axis=0).min()) >= 5
    both_signs = np.vstack([code, -code])  # which is one binary problem
    assert len(np.unique(both_signs, axis=0)) == 100


def test_there_are_no_more_columns_than_differ_and_weak_ones_if_there_are_no_strong_ones():
    labels = np.eye(3, dtype=np.uint8)
    pairs = [[0, 1, -1], [1, -1, 0], [1, 0, -1]]
    found = pamb.encode(labels, 2, 100, 5, rng())  # one row per side
    assert sorted(found.tolist()) == pairs
    assert not len(pamb.encode(np.ones((9, 3), np.uint8), 2, 100, 5, rng()))


def test_every_column_is_the_ridge_regression_on_its_own_rows():
    Z, targets = rng().normal(size=(50, 7)), random_targets(50, 9)
    weight = pamb.masked_ridge(Z, targets, 0.3, tolerance=1e-10)
    for column, found in zip(targets.T, weight.T, strict=True):
        rows = Z[column != 0]
        normal = rows.T @ rows + 0.3 * np.eye(7)
        expected = np.linalg.solve(normal, rows.T @ column[column != 0])
        np.testing.assert_allclose(found, expected, atol=1e-8)


def test_the_shared_basis_makes_that_few_iterations():
    X, _, candidates = small(n=200)
    method = PAMB(random_state=0, coded=3).fit(X, candidates)
    mapped = method.map_(method.scale_(X)).astype(float)
    Z = with_ones(mapped @ method.basis_)
    targets = random_targets(200, 30)
    exact = pamb.masked_ridge(Z, targets, 1.0, tolerance=1e-10)
    quick = pamb.masked_ridge(Z, targets, 1.0, max_iterations=10)
    assert np.abs(Z @ (quick - exact)).max() < 1e-2
    np.testing.assert_allclose(Z[:, :-1].T @ Z[:, :-1], np.diag((Z[:, :-1] ** 2).sum(0)), atol=1e-6)


def test_with_all_rows_as_anchors_the_penalty_is_that_of_kernel_ridge_regression():
    X, _, candidates = small(n=40)
    method = PAMB(random_state=0).fit(X, candidates)
    mapped = method.map_(method.scale_(X)).astype(float)
    Z, targets = mapped @ method.basis_, random_targets(40, 1)
    targets = np.where(targets == 0, 1, targets)
    found = Z @ pamb.masked_ridge(Z, targets, 0.5, tolerance=1e-12)
    kernel = mapped @ mapped.T
    expected = kernel @ np.linalg.solve(kernel + 0.5 * np.eye(40), targets)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_performance_is_the_share_of_a_labels_rows_on_its_side():
    candidates = np.array([[1, 0, 0], [1, 1, 0], [1, 0, 0], [0, 1, 0]])
    outputs = np.array([[1.0, -1.0], [1.0, 1.0], [-1.0, -1.0], [-2.0, -1.0]])
    code = np.array([[1, -1, 1], [-1, 0, -1]])
    found = pamb.performance(candidates, outputs, code)
    np.testing.assert_allclose(found[:, 0], [1 / 2, 1 / 2])  # right 2 of 3 times, and 2 of 3
    np.testing.assert_allclose(found[:, 1], [1, 0])  # in the second column it is not coded
    np.testing.assert_allclose(found[:, 2], 0)  # no rows, no weight


def test_decoding_sums_the_weighted_exponential_losses():
    outputs, code = rng().normal(size=(5, 4)), rng().integers(-1, 2, size=(4, 3))
    weights = rng().random((4, 3)) * (code != 0)
    expected = [
        [sum(weights[c, j] * np.exp(-code[c, j] * h[c]) for c in range(4)) for j in range(3)]
        for h in outputs
    ]
    np.testing.assert_allclose(pamb.decode(outputs, code, weights), expected)


def test_labels_that_no_column_tells_of_keep_their_share():
    X, _, candidates = small()
    candidates[:, 1] = 0
    np.testing.assert_array_equal(PAMB(random_state=0).fit(X, candidates).predict_proba(X)[:, 1], 0)
    everywhere = PAMB(random_state=0).fit(X, np.ones_like(candidates))
    np.testing.assert_array_equal(everywhere.predict_proba(X), 1)


def test_a_single_label_is_told_from_its_absence():
    X, truth, _ = small(n=200)
    scores = PAMB(random_state=0).fit(X, truth[:, :1]).predict_proba(X)
    assert ((scores >= 0.5) == truth[:, :1]).mean() > 0.9


def test_decoding_in_blocks_changes_nothing(monkeypatch):
    X, _, candidates = small()
    fitted = PAMB(random_state=0).fit(X, candidates)
    whole = fitted.predict_proba(X)
    monkeypatch.setattr(pamb, "ROWS_AT_ONCE", 7)
    np.testing.assert_allclose(fitted.predict_proba(X), whole, rtol=1e-9)
