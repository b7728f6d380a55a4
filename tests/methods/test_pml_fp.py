import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import approx_fprime, minimize

from tests.contract import Contract, small
from tests.strategies import label_matrices
from wscpml.methods import pml_fp
from wscpml.methods.pml_fp import PMLfp


class TestPMLfp(Contract):
    method = PMLfp()


def confidences(labels, rng):
    """A feasible P, away from the bounds where it may be."""
    return pml_fp.project(labels * rng.uniform(0.2, 0.9, labels.shape), labels)


def hinge_losses(f, P):
    """The ranking term of each row, pair by pair; the threshold is the last label."""
    losses = []
    for scores, p in zip(f, P, strict=True):
        win, lose, value, total = [*p, 1], [*(1 - p), 1], 0.0, 0.0
        for j in range(len(scores)):
            for k in range(len(scores)):
                if j != k:
                    total += win[j] * lose[k]
                    value += win[j] * lose[k] * max(0, 1 - scores[j] + scores[k])
        losses.append(value / total)
    return np.array(losses)


def whole_objective(X, Y, P, prototypes, weight, centre, ranking, fidelity, prototype):
    f = (X - centre) @ weight[:-1] + weight[-1]
    away = ((X - P @ prototypes) ** 2).sum() / X.shape[1]
    return (
        (weight[:-1] ** 2).sum() / 2
        + ranking * hinge_losses(f, P).sum()
        + fidelity / 2 * ((P - Y) ** 2).sum()
        + prototype / 2 * away
    )


@given(label_matrices(), st.integers(0, 2**32 - 1), st.booleans())
def test_sorting_finds_the_sums_over_all_pairs(labels, seed, with_ties):
    rng = np.random.default_rng(seed)
    f = rng.normal(size=(len(labels), labels.shape[1] + 1))
    if with_ties:
        f = f.round()
    win, lose = rng.random(f.shape), rng.random(f.shape)
    hinge = np.maximum(0, 1 - f[:, :, None] + f[:, None, :])
    as_winner, as_loser, losers, winners = pml_fp.pair_sums(f, win, lose)
    np.testing.assert_allclose(as_winner, (hinge * lose[:, None, :]).sum(axis=2), atol=1e-12)
    np.testing.assert_allclose(as_loser, (hinge * win[:, :, None]).sum(axis=1), atol=1e-12)
    if not with_ties:
        np.testing.assert_allclose(losers, ((hinge > 0) * lose[:, None, :]).sum(axis=2))
        np.testing.assert_allclose(winners, ((hinge > 0) * win[:, :, None]).sum(axis=1))


@given(label_matrices(), st.integers(0, 2**32 - 1))
def test_rank_losses_are_the_pairs_and_their_slopes_the_finite_differences(labels, seed):
    rng = np.random.default_rng(seed)
    P, f = confidences(labels, rng), rng.normal(size=(len(labels), labels.shape[1] + 1))
    losses, in_scores, in_P = pml_fp.rank_losses(f, P)
    np.testing.assert_allclose(losses, hinge_losses(f, P), rtol=1e-10, atol=1e-12)
    gap = 1 - f[:, :, None] + f[:, None, :]
    assume(np.abs(gap).min() >= 1e-5)  # on a kink there is no one slope
    for i in range(min(len(labels), 3)):
        of_scores = approx_fprime(f[i], lambda v, i=i: hinge_losses([v], P[i : i + 1])[0], 1e-7)
        of_P = approx_fprime(P[i], lambda v, i=i: hinge_losses(f[i : i + 1], v[None])[0], 1e-7)
        np.testing.assert_allclose(in_scores[i], of_scores, atol=1e-5)
        np.testing.assert_allclose(in_P[i], of_P, atol=1e-5)


def test_blocks_of_rows_change_nothing(monkeypatch):
    rng = np.random.default_rng(0)
    f, P = rng.normal(size=(20, 5)), rng.random((20, 4))
    whole = pml_fp.rank_losses(f, P)
    monkeypatch.setattr(pml_fp, "ROWS_AT_ONCE", 3)
    for one, other in zip(pml_fp.rank_losses(f, P), whole, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.fixture
def problem():
    X, _, Y = small(n=30, d=3, q=3)
    return X + 2, Y, confidences(Y, np.random.default_rng(1)), (X + 2).mean(axis=0)


@pytest.mark.parametrize("as_matrix", [np.asarray, sparse.csr_array])
def test_the_slope_of_the_model_is_that_of_finite_differences(problem, as_matrix):
    X, _, P, centre = problem
    weight = np.random.default_rng(0).normal(size=(4, 4))

    def value(flat):
        w = flat.reshape(4, 4)
        f = (X - centre) @ w[:-1] + w[-1]
        return (w[:-1] ** 2).sum() / 2 + 2.0 * hinge_losses(f, P).sum()

    found, decay, slope = pml_fp.model_objective(as_matrix(X), centre, P, weight, 2.0)
    assert found == pytest.approx(value(weight.ravel()))
    assert decay == pytest.approx((weight[:-1] ** 2).sum() / 2)
    np.testing.assert_allclose(slope.ravel(), approx_fprime(weight.ravel(), value, 1e-7), atol=1e-4)


def test_the_model_step_goes_down_to_what_a_generic_optimiser_finds(problem):
    X, _, P, centre = problem
    start, values = np.zeros((4, 4)), []
    for steps in (0, 1, 3, 10, 30, 300):
        weight, _, _ = pml_fp.learn_model(X, centre, P, start, 1.0, steps, 0.9, 0.01)
        values.append(pml_fp.model_objective(X, centre, P, weight, 1.0)[0])
    assert (np.diff(values) <= 0).all()

    def value(flat):
        return pml_fp.model_objective(X, centre, P, flat.reshape(4, 4), 1.0)[0]

    best = minimize(value, weight.ravel(), method="Powell", options={"maxiter": 30})
    assert values[-1] <= best.fun * 1.005
    assert values[0] > best.fun * 1.1


@given(label_matrices(max_rows=4, max_labels=5), st.integers(0, 2**32 - 1))
def test_the_projection_is_the_nearest_feasible_point(labels, seed):
    V = np.random.default_rng(seed).normal(scale=0.7, size=labels.shape)
    P = pml_fp.project(V, labels)
    assert (P >= 0).all()
    assert (labels >= P).all()
    for v, y, p in zip(V, labels, P, strict=True):
        if not y.any():
            assert not p.any()
            continue
        assert p.sum() >= 1 - 1e-12
        best = minimize(
            lambda u, v=v: ((u - v) ** 2).sum(),
            y / y.sum(),
            jac=lambda u, v=v: 2 * (u - v),
            bounds=[(0, int(each)) for each in y],
            constraints={"type": "ineq", "fun": lambda u: u.sum() - 1},
            method="SLSQP",
            options={"ftol": 1e-14},
        )
        lacking = max(1 - best.x.sum(), 0)  # it may lie outside by rounding, and gains by that
        assert ((p - v) ** 2).sum() <= best.fun + 2 * abs(best.x - v).max() * lacking + 1e-9
        np.testing.assert_allclose(p, best.x, atol=1e-5)


def test_the_confidence_step_goes_down_row_by_row_to_a_stationary_point(problem):
    X, Y, P, _ = problem
    f = np.random.default_rng(2).normal(size=(30, 4))
    T = np.array([np.average(X, axis=0, weights=p) for p in P.T])

    def value(i, p):
        return (
            2.0 * hinge_losses(f[i : i + 1], p[None])[0]
            + 3.0 / 2 * ((p - Y[i]) ** 2).sum()
            + 5.0 / 2 * ((X[i] - p @ T) ** 2).sum() / X.shape[1]
        )

    course = []
    for steps in (0, 1, 2, 5, 500):
        found, values = pml_fp.learn_confidences(X, Y, P, f, (2.0, 3.0, 5.0), steps)
        np.testing.assert_allclose(values, [value(i, p) for i, p in enumerate(found)])
        course.append(values)
    assert (np.diff(course, axis=0) <= 0).all()
    for i in range(10):
        if Y[i].any():  # no generic optimiser finds anything better from there
            best = minimize(
                lambda p, i=i: value(i, p),
                found[i],
                bounds=[(0, int(each)) for each in Y[i]],
                constraints={"type": "ineq", "fun": lambda p: p.sum() - 1},
                method="SLSQP",
            )
            assert course[-1][i] <= best.fun + 1e-6


def test_the_recorded_objective_is_the_one_of_the_page():
    X, _, Y = small(n=25, d=4, q=3)
    settings = {"ranking": 2.0, "fidelity": 3.0, "prototype": 4.0}
    before = PMLfp(**settings, max_iterations=1).fit(X, Y)
    after = PMLfp(**settings, max_iterations=2, tolerance=0).fit(X, Y)
    scaled = after.scale_(X)
    T = np.array([np.average(scaled, axis=0, weights=p) for p in before.pseudo_labels_.T])
    expected = whole_objective(
        scaled, Y, after.pseudo_labels_, T, after.weight_, after.centre_, *settings.values()
    )
    assert after.objective_[1] == pytest.approx(expected)
    assert after.objective_[0] == before.objective_[0]


def test_it_stops_when_the_objective_settles():
    X, _, Y = small()
    fitted = PMLfp(max_iterations=50).fit(X, Y)
    changes = np.abs(np.diff(fitted.objective_)) / fitted.objective_[:-1]
    assert (changes[:-1] >= 1e-3).all()
    assert changes[-1] < 1e-3


def test_false_candidates_lose_confidence():
    X, truth, Y = small(n=300)
    P = PMLfp().fit(X, Y).pseudo_labels_
    assert P[(Y == 1) & (truth == 1)].mean() > P[(Y == 1) & (truth == 0)].mean() + 0.05


def test_sparse_and_dense_features_give_the_same_model():
    X, _, Y = small()
    X = np.where(np.abs(X) > 1, X, 0)
    X[0], X[1] = 1, -1  # then min-max scaling has nothing to shift
    X = np.clip(X, -1, 1)
    dense, thin = (PMLfp().fit(each, Y).predict_proba(X) for each in (X, sparse.csr_array(X)))
    np.testing.assert_allclose(dense, thin, atol=1e-6)
