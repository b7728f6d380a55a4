import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from wscpml.algorithm import prototypes, undecomposed, weak_supervision
from wscpml.algorithm.undecomposed import update_memberships


def value(a, D, w):
    on = w > 0
    return a @ D - w[on] @ np.log(a[on])


def row(a):
    return np.array([a], float)


def updated(D, w, y):
    return update_memberships(row(D), row(w), row(y))[0]


rows = st.integers(1, 6).flatmap(
    lambda q: st.tuples(
        *(
            st.lists(st.floats(low, high), min_size=q, max_size=q).map(np.array)
            for low, high in ((0, 50), (0.01, 20))
        )
    )
)


@given(rows)
def test_memberships_share_one_and_none_that_share_one_do_better(given_row):
    D, w = given_row
    a = updated(D, w, np.ones_like(D))
    assert a.min() > 0
    assert a.sum() == pytest.approx(1, rel=1e-9)
    best = value(a, D, w)
    rng = np.random.default_rng(0)
    others = rng.dirichlet(np.ones(len(D)), 200)
    near = a * np.exp(rng.normal(scale=0.01, size=(200, len(D))))
    for other in (*others[others.min(axis=1) > 0], *(near / near.sum(axis=1, keepdims=True))):
        assert value(other, D, w) >= best - 1e-9 * max(1, abs(best))


def test_memberships_are_those_that_a_general_solver_finds():
    D, w = np.array([1.0, 2.0, 4.0]), np.array([0.3, 0.5, 1.0])
    found = minimize(
        lambda a: value(a, D, w),
        np.full(3, 1 / 3),
        bounds=[(1e-6, 1)] * 3,
        constraints={"type": "eq", "fun": lambda a: a.sum() - 1},
        tol=1e-12,
    ).x
    np.testing.assert_allclose(updated(D, w, np.ones(3)), found, atol=1e-5)


def test_a_candidate_without_weight_takes_what_the_others_leave_if_it_is_near():
    # a_2 = w_2 / (D_2 - mu), where mu may not pass D_1 = 1
    np.testing.assert_allclose(updated([1, 5], [0, 2], [1, 1]), [0.5, 0.5])
    np.testing.assert_allclose(updated([4.5, 5], [0, 2], [1, 1]), [0, 1])
    np.testing.assert_allclose(updated([3, 2, 9], [0, 0, 0], [1, 1, 1]), [0, 1, 0])


def test_labels_that_are_no_candidates_have_no_membership_whatever_their_distance():
    np.testing.assert_allclose(updated([0, 5, np.nan], [0, 2, 0], [0, 1, 0]), [0, 1, 0])
    np.testing.assert_array_equal(updated([1, 2], [0, 0], [0, 0]), [0, 0])


@pytest.mark.parametrize("theta", ["adaptive", 0.0])
def test_the_objective_never_rises_and_rows_of_pseudo_labels_share_one(theta):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 4))
    Y = (rng.random((80, 5)) < 0.5).astype(np.uint8)
    Y[0] = 0
    B = weak_supervision.build(X, Y, *prototypes.learn(X, Y), theta)
    found = undecomposed.cluster(X, Y, B, 0.5, 50, 1e-4)
    assert found.converged
    assert len(found.course) > 2
    assert (np.diff(found.course.objective) <= 1e-9).all()
    A = found.pseudo_labels.toarray()
    np.testing.assert_allclose(A[1:].sum(axis=1), (Y[1:].sum(axis=1) > 0).astype(float))
    assert not A[Y == 0].any()
