import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import minimize_scalar

from tests import reference
from tests.strategies import problems
from wscpml import devices
from wscpml.algorithm import clustering
from wscpml.algorithm.prototypes import centroids, memberships
from wscpml.arrays import squared_distances
from wscpml.errors import UserError

RULES = ("paper", "constrained")
weights = st.sampled_from([0.01, 0.1, 1.0, 10.0, 100.0])


def run(problem, alpha=1.0, beta=1.0, rule="paper", max_iterations=20, tolerance=1e-4):
    return clustering.cluster(
        problem.X,
        problem.candidates,
        problem.weak_supervision,
        alpha=alpha,
        beta=beta,
        rule=rule,
        max_iterations=max_iterations,
        tolerance=tolerance,
    )


@given(problems(), weights, weights, st.sampled_from(RULES))
def test_what_holds_of_every_result(problem, alpha, beta, rule):
    result = run(problem, alpha, beta, rule)
    F, pi = result.pseudo_labels.toarray(), result.memberships.toarray()
    Y = problem.candidates
    assert np.isfinite(F).all()
    assert np.isfinite(pi).all()
    assert (F >= 0).all()
    assert (F <= Y).all()
    assert (pi >= 0).all()
    assert (pi[Y == 0] == 0).all()
    row_sum = (pi if rule == "paper" else pi * F).sum(axis=1)
    np.testing.assert_allclose(row_sum, F.any(axis=1), rtol=1e-5)
    assert np.isfinite(result.course.to_numpy()).all()
    np.testing.assert_array_equal(result.course.iteration, np.arange(len(result.course)) + 1)


@given(problems(), weights, weights, st.sampled_from(RULES))
def test_prototypes_are_the_weighted_means_of_eq_12(problem, alpha, beta, rule):
    before = run(problem, alpha, beta, rule, max_iterations=2, tolerance=1e-300)
    after = run(problem, alpha, beta, rule, max_iterations=3, tolerance=1e-300)
    assume(len(after.course) == 3)
    weight = before.memberships.toarray() * before.pseudo_labels.toarray()
    for j in np.flatnonzero(weight.sum(axis=0)):
        expected = (
            sum(w * x for w, x in zip(weight[:, j], problem.X, strict=True)) / weight[:, j].sum()
        )
        close = 1e-5 * np.abs(problem.X).max()
        np.testing.assert_allclose(after.prototypes[j], expected, rtol=0, atol=close)


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
        *(torch.tensor([v], dtype=torch.float64) for v in (distance, B, pi)), alpha, beta
    ).item()
    best = minimize_scalar(
        sub_problem, bounds=(1e-12, 1), method="bounded", options={"xatol": 1e-12}
    )
    assert 0 <= found <= 1
    value = sub_problem(found) if found > 0 or B else sub_problem(0.0)
    slack = 1e-9 * max(1, abs(best.fun))
    assert value <= best.fun + slack


def test_the_f_step_at_its_corners():
    def step(distance, B, pi):
        values = (torch.tensor([float(v)]) for v in (distance, B, pi))
        return clustering.update_pseudo_labels(*values, alpha=1.0, beta=1.0).item()

    assert step(distance=1, B=1, pi=0) == 1  # only the barrier is left
    assert step(distance=1, B=0, pi=0) == 0  # nothing is left
    assert step(distance=3, B=0, pi=1) == 0  # no supervision and far away
    assert step(distance=1, B=0, pi=1) == pytest.approx(0.5)  # 1 - d / (2 alpha)
    assert step(distance=0, B=1, pi=1) == 1  # on the prototype
    assert step(distance=1e12, B=1, pi=1) == pytest.approx(1e-12, rel=1e-6)  # no cancellation


def shares(distances, F, alpha, rule):
    distances, F = torch.tensor(distances), torch.tensor(F)
    costs = clustering.membership_costs(distances, F, alpha)
    return clustering.update_memberships(costs, F, rule, lambda v: v.sum(1, keepdim=True)).numpy()


@pytest.mark.parametrize("rule", RULES)
def test_a_row_on_its_prototype_belongs_to_it(rule):
    pi = shares([[0.0, 1.0]], [[1.0, 1.0]], 1.0, rule)
    np.testing.assert_allclose(pi, [[1, 0]], atol=1e-9)


def test_the_membership_rules_are_those_of_the_page():
    distances, F = np.array([[1.0, 4.0]]), np.array([[0.5, 1.0]])
    cost = F * distances + 2.0 * (F - 1) ** 2
    paper, constrained = (shares(distances, F, 2.0, rule) for rule in RULES)
    np.testing.assert_allclose(paper, F / cost / (F / cost).sum())
    np.testing.assert_allclose(constrained, F / cost / (F**2 / cost).sum())


@given(problems(), weights, weights)
def test_the_recorded_objective_is_eq_10(problem, alpha, beta):
    result = run(problem, alpha, beta, max_iterations=3, tolerance=1e-300)
    F, pi = result.pseudo_labels.toarray(), result.memberships.toarray()
    Y, B = problem.candidates, problem.weak_supervision
    expected = 0.0
    for i, j in zip(*np.nonzero(Y), strict=True):
        if not np.isnan(result.prototypes[j]).any():
            distance = ((problem.X[i] - result.prototypes[j]) ** 2).sum()
            expected += pi[i, j] * F[i, j] * distance
        expected += alpha * pi[i, j] * (F[i, j] - 1) ** 2
        if B[i, j]:
            expected -= beta * B[i, j] * np.log(F[i, j])
    scale = alpha + beta + (problem.X**2).max()
    np.testing.assert_allclose(
        result.course.objective.iloc[-1], expected, rtol=1e-5, atol=1e-5 * scale
    )


def test_it_starts_from_f_equal_y_and_pi_equal_u():
    X, Y = np.array([[0.0], [1.0], [3.0]]), np.array([[1, 1], [1, 0], [0, 1]], dtype=np.uint8)
    result = clustering.cluster(X, Y, Y.astype(float), 1.0, 1.0, "paper", 1, 1e-9)
    O = centroids(X, memberships(Y))  # noqa: E741
    F = reference.pseudo_labels(squared_distances(X, O), Y, Y, memberships(Y), 1.0, 1.0)
    np.testing.assert_allclose(result.prototypes, O, rtol=1e-6)
    np.testing.assert_allclose(result.pseudo_labels.toarray(), F, rtol=1e-6)
    change = np.linalg.norm(F - Y) / np.linalg.norm(Y)
    np.testing.assert_allclose(result.course.change.item(), change, rtol=1e-5)


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
    F, pi = added.pseudo_labels.toarray(), added.memberships.toarray()
    np.testing.assert_allclose(F[:-1], plain.pseudo_labels.toarray(), rtol=1e-4)
    assert not F[-1].any()
    assert not pi[-1].any()


def test_a_row_of_all_candidates_may_lose_labels_for_good():
    X = np.array([[0.0], [0.1], [0.0], [10.0], [4.0]])
    Y = np.array([[1, 0], [1, 0], [1, 0], [0, 1], [1, 1]], dtype=np.uint8)
    B = np.array([[1, 0], [1, 0], [1, 0], [0, 1], [0, 0]], dtype=float)
    result = clustering.cluster(X, Y, B, 1.0, 1.0, "paper", 50, 1e-6)
    assert result.pseudo_labels.toarray()[-1].min() == 0
    assert result.converged


def example(n=700, d=20, q=12, share=0.3, seed=0):
    """Rows off the origin, some without candidates, some with all of them."""
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n, d)) + 3).astype(np.float32)
    Y = (rng.random((n, q)) < share).astype(np.uint8)
    Y[:5], Y[5:8] = 0, 1
    B = np.where(rng.random((n, q)) < 0.5, 1, 0.3) * Y
    B[6] = 0
    return X, Y, B


def assert_same(found, expected, within):
    for name in ("pseudo_labels", "memberships"):
        ours, theirs = getattr(found, name).toarray(), getattr(expected, name).toarray()
        assert np.linalg.norm(ours - theirs) <= within * np.linalg.norm(theirs)
    np.testing.assert_allclose(found.prototypes, expected.prototypes, rtol=within, atol=within)
    np.testing.assert_allclose(found.course.objective, expected.course.objective, rtol=within)


@pytest.fixture(params=["all values", "pairs"])
def path(request, monkeypatch):
    """Both ways to work on a block, with small blocks, so that there are many of them."""
    monkeypatch.setattr(clustering, "PAIRS_BELOW", float(request.param == "pairs") * 2)
    monkeypatch.setattr(clustering, "BLOCK", 64 * 20)
    monkeypatch.setattr(clustering, "PAIRS_BLOCK", 64 * 20)
    monkeypatch.setattr(clustering, "CHUNK", 64)
    return request.param


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("rule", RULES)
def test_both_paths_agree_with_plain_float64(path, kind, rule):
    X, Y, B = example()
    settings = (30.0, 10.0, rule, 15, 1e-12)
    found = clustering.cluster(kind(X), Y, B, *settings)
    assert_same(found, reference.cluster(X.astype(float), Y, B, *settings), 1e-5)


def test_an_example_without_any_candidate_or_with_sparse_ones_goes_through(path):
    X, Y, B = example(n=130)
    nothing = clustering.cluster(X, 0 * Y, 0 * B, 1.0, 1.0, "paper", 3, 1e-3)
    assert nothing.pseudo_labels.nnz == 0
    assert np.isnan(nothing.prototypes).all()
    dense = clustering.cluster(X, Y, B, 1.0, 1.0, "paper", 3, 1e-3)
    stored = clustering.cluster(
        X, sparse.csr_array(Y), sparse.csr_array(B), 1.0, 1.0, "paper", 3, 1e-3
    )
    assert_same(stored, dense, 1e-7)


def test_the_number_of_cores_changes_no_byte(path, monkeypatch):
    X, Y, B = example()
    results = []
    for cores in (1, 2, 3):
        monkeypatch.setattr(devices, "cores", lambda cores=cores: cores)
        results.append(clustering.cluster(X, Y, B, 1.0, 1.0, "paper", 5, 1e-9))
    for other in results[1:]:
        assert_same(other, results[0], 0)


def test_rows_may_stay_on_disk(path, tmp_path):
    X, Y, B = example()
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    settings = (1.0, 1.0, "paper", 5, 1e-9)
    from_disk, from_memory = (clustering.cluster(x, Y, B, *settings) for x in (mapped, X))
    assert_same(from_disk, from_memory, 0)


@pytest.mark.parametrize("kind", [np.copy, sparse.csr_array])
def test_inputs_stay_as_they_are(path, kind):
    X, Y, B = (kind(m.astype(np.float32)) if k else m for k, m in enumerate(example()))
    before = X.copy(), Y.copy(), B.copy()
    clustering.cluster(X, Y, B, 1.0, 1.0, "paper", 3, 1e-9)
    for now, then in zip((X, Y, B), before, strict=True):
        assert abs(now - then).max() == 0


def test_an_unknown_device_is_told():
    X, Y, B = example(n=10)
    if torch.cuda.is_available():
        pytest.skip("this machine has a CUDA device")
    with pytest.raises(UserError, match="no CUDA device"):
        clustering.cluster(X, Y, B, 1.0, 1.0, "paper", 1, 1e-3, device="cuda")
    clustering.cluster(X, Y, B, 1.0, 1.0, "paper", 1, 1e-3, device="auto")
