import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from tests.strategies import problems
from wscpml import clustering
from wscpml.arrays import squared_distances
from wscpml.prototypes import centroids, memberships

RULES = ("paper", "constrained")
weights = st.sampled_from([0.01, 0.1, 1.0, 10.0, 100.0])


def run(problem, alpha=1.0, beta=1.0, rule="paper", max_iterations=20, tolerance=1e-4):
    return clustering.cluster(
        problem.X,
        problem.candidates,
        problem.confidence,
        alpha=alpha,
        beta=beta,
        rule=rule,
        max_iterations=max_iterations,
        tolerance=tolerance,
    )


@given(problems(), weights, weights, st.sampled_from(RULES))
def test_what_holds_of_every_result(problem, alpha, beta, rule):
    result = run(problem, alpha, beta, rule)
    F, pi, Y = result.pseudo_labels, result.memberships, problem.candidates
    assert np.isfinite(F).all()
    assert np.isfinite(pi).all()
    assert (F >= 0).all()
    assert (F <= Y).all()
    assert (pi >= 0).all()
    assert (pi[Y == 0] == 0).all()
    row_sum = (pi if rule == "paper" else pi * F).sum(axis=1)
    np.testing.assert_allclose(row_sum, F.any(axis=1), rtol=1e-9)
    assert np.isfinite(result.course.to_numpy()).all()
    np.testing.assert_array_equal(result.course.iteration, np.arange(len(result.course)) + 1)


@given(problems(), weights, weights, st.sampled_from(RULES))
def test_prototypes_are_the_weighted_means_of_eq_12(problem, alpha, beta, rule):
    before = run(problem, alpha, beta, rule, max_iterations=2, tolerance=1e-300)
    after = run(problem, alpha, beta, rule, max_iterations=3, tolerance=1e-300)
    if len(after.course) < 3:
        return
    weight = before.memberships * before.pseudo_labels
    for j in np.flatnonzero(weight.sum(axis=0)):
        expected = (
            sum(w * x for w, x in zip(weight[:, j], problem.X, strict=True)) / weight[:, j].sum()
        )
        np.testing.assert_allclose(after.prototypes[j], expected, rtol=1e-7, atol=1e-9)


@given(st.data())
def test_the_f_step_is_the_minimiser_of_its_sub_problem(data):
    def number(low, high):
        return data.draw(st.floats(np.log10(low), np.log10(high)).map(lambda e: 10**e))

    distance, pi = number(1e-6, 1e4), number(1e-6, 1e2)
    alpha, beta = number(1e-2, 1e2), number(1e-2, 1e2)
    B = data.draw(st.one_of(st.just(0.0), st.floats(0.01, 1)))

    def sub_problem(f):  # Eq. 13 with y = 1
        barrier = beta * B * np.log(f) if B else 0.0
        return pi * f * distance + alpha * pi * (f - 1) ** 2 - barrier

    found = clustering.update_pseudo_labels(
        *(np.array([[v]]) for v in (distance, 1.0, B, pi)), alpha=alpha, beta=beta
    ).item()
    best = minimize_scalar(
        sub_problem, bounds=(1e-12, 1), method="bounded", options={"xatol": 1e-12}
    )
    assert 0 <= found <= 1
    value = sub_problem(found) if found > 0 or B else sub_problem(0.0)
    slack = 1e-9 * max(1, abs(best.fun))
    assert value <= best.fun + slack


def test_the_f_step_at_its_corners():
    def step(distance, B, pi, y=1.0):
        arrays = (np.array([[float(v)]]) for v in (distance, y, B, pi))
        return clustering.update_pseudo_labels(*arrays, alpha=1.0, beta=1.0).item()

    assert step(distance=1, B=1, pi=0) == 1  # only the barrier is left
    assert step(distance=1, B=0, pi=0) == 0  # nothing is left
    assert step(distance=3, B=0, pi=1) == 0  # no supervision and far away
    assert step(distance=1, B=0, pi=1) == pytest.approx(0.5)  # 1 - d / (2 alpha)
    assert step(distance=0, B=1, pi=1) == 1  # on the prototype
    assert step(distance=1e12, B=1, pi=1) == pytest.approx(1e-12, rel=1e-9)  # no cancellation
    assert step(distance=1, B=1, pi=1, y=0) == 0


@pytest.mark.parametrize("rule", RULES)
def test_a_row_on_its_prototype_belongs_to_it(rule):
    ones = np.ones((1, 2))
    pi = clustering.update_memberships(np.array([[0.0, 1.0]]), ones, ones, 1.0, rule)
    np.testing.assert_allclose(pi, [[1, 0]], atol=1e-9)


def test_the_membership_rules_are_those_of_the_page():
    distances, F = np.array([[1.0, 4.0]]), np.array([[0.5, 1.0]])
    cost = F * distances + 2.0 * (F - 1) ** 2
    paper = clustering.update_memberships(distances, np.ones((1, 2)), F, 2.0, "paper")
    np.testing.assert_allclose(paper, F / cost / (F / cost).sum())
    constrained = clustering.update_memberships(distances, np.ones((1, 2)), F, 2.0, "constrained")
    np.testing.assert_allclose(constrained, F / cost / (F**2 / cost).sum())


@given(problems(), weights, weights)
def test_the_recorded_objective_is_eq_10(problem, alpha, beta):
    result = run(problem, alpha, beta, max_iterations=3, tolerance=1e-300)
    F, pi, Y, B = result.pseudo_labels, result.memberships, problem.candidates, problem.confidence
    expected = 0.0
    for i, j in zip(*np.nonzero(Y), strict=True):
        if not np.isnan(result.prototypes[j]).any():
            distance = ((problem.X[i] - result.prototypes[j]) ** 2).sum()
            expected += pi[i, j] * F[i, j] * distance
        expected += alpha * pi[i, j] * (F[i, j] - 1) ** 2
        if B[i, j]:
            expected -= beta * B[i, j] * np.log(F[i, j])
    np.testing.assert_allclose(result.course.objective.iloc[-1], expected, rtol=1e-6, atol=1e-8)


def test_it_starts_from_f_equal_y_and_pi_equal_u():
    X, Y = np.array([[0.0], [1.0], [3.0]]), np.array([[1, 1], [1, 0], [0, 1]], dtype=np.uint8)
    result = clustering.cluster(X, Y, Y.astype(float), 1.0, 1.0, "paper", 1, 1e-9)
    O = centroids(X, memberships(Y))  # noqa: E741
    F = clustering.update_pseudo_labels(squared_distances(X, O), Y, Y, memberships(Y), 1.0, 1.0)
    np.testing.assert_allclose(result.prototypes, O)
    np.testing.assert_allclose(result.pseudo_labels, F)
    np.testing.assert_allclose(
        result.course.change.item(), np.linalg.norm(F - Y) / np.linalg.norm(Y)
    )


def test_it_stops_when_f_settles_and_says_whether_it_did():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(50, 3)), (rng.random((50, 4)) < 0.6).astype(np.uint8)
    B = Y * 0.5
    settled = clustering.cluster(X, Y, B, 1.0, 0.1, "paper", 100, 1e-3)
    assert settled.converged
    assert (settled.course.change[:-1] >= 1e-3).all()
    assert settled.course.change.iloc[-1] < 1e-3
    assert not clustering.cluster(X, Y, B, 1.0, 0.1, "paper", 2, 1e-12).converged


def test_rows_without_candidates_change_nothing():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(20, 3)), (rng.random((20, 4)) < 0.6).astype(np.uint8)
    with_empty = np.vstack([Y, np.zeros((1, 4), np.uint8)])
    far = np.vstack([X, np.full((1, 3), 1e3)])
    plain = clustering.cluster(X, Y, Y * 0.5, 1.0, 0.1, "paper", 30, 1e-6)
    added = clustering.cluster(far, with_empty, with_empty * 0.5, 1.0, 0.1, "paper", 30, 1e-6)
    np.testing.assert_allclose(added.pseudo_labels[:-1], plain.pseudo_labels, rtol=1e-6)
    assert not added.pseudo_labels[-1].any()
    assert not added.memberships[-1].any()


def test_a_row_of_all_candidates_may_lose_labels_for_good():
    X = np.array([[0.0], [0.1], [0.0], [10.0], [4.0]])
    Y = np.array([[1, 0], [1, 0], [1, 0], [0, 1], [1, 1]], dtype=np.uint8)
    B = np.array([[1, 0], [1, 0], [1, 0], [0, 1], [0, 0]], dtype=float)
    result = clustering.cluster(X, Y, B, 1.0, 1.0, "paper", 50, 1e-6)
    assert result.pseudo_labels[-1].min() == 0
    assert result.converged
