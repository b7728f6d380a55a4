import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar

from tests.contract import NEAR_THE_TOP, Contract, small
from wscpml.methods import nlr
from wscpml.methods.linear import rotate

SHAPES = [(12, 3), (4, 9)]


class TestNLR(Contract):
    method = nlr.NLR()
    excused = NEAR_THE_TOP


def value(X, W, V, Y, N, beta, gamma, lam):
    """The objective as it is printed."""
    fit = ((X @ W - (Y - N)) ** 2).sum() + ((X @ V - (1 - Y + N)) ** 2).sum()
    complement = ((X @ W + X @ V - 1) ** 2).sum()
    return fit + beta * complement + gamma * ((W**2).sum() + (V**2).sum()) + lam * N.sum()


def problem(seed, n, d, q=2):
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(n, d)), (rng.random((n, q)) < 0.6).astype(float)
    N = Y * (rng.random((n, q)) < 0.4)
    W, V = rng.normal(size=(2, d, q))
    beta, gamma, lam = 10 ** rng.uniform(-1, 2), 10 ** rng.uniform(-1, 1), rng.uniform(0.5, 3)
    return X, Y, N, W, V, beta, gamma, lam


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(5))
def test_each_classifier_is_the_minimiser_of_its_sub_problem(seed, shape):
    X, Y, N, W, V, beta, gamma, lam = problem(seed, *shape)
    Z, strengths, Q = rotate(X)
    ones = Z.sum(axis=0)[:, None]

    def best(of):
        return minimize(lambda w: of(w.reshape(W.shape)), np.zeros(W.size), tol=1e-10)

    found = Q @ nlr.update_classifier(strengths, Z.T @ (Y - N), ones, Q.T @ V, beta, gamma)
    theirs = best(lambda W: value(X, W, V, Y, N, beta, gamma, lam))
    np.testing.assert_allclose(found, theirs.x.reshape(W.shape), atol=1e-5)
    assert value(X, found, V, Y, N, beta, gamma, lam) <= theirs.fun * (1 + 1e-12)

    found = Q @ nlr.update_classifier(strengths, Z.T @ (1 - Y + N), ones, Q.T @ W, beta, gamma)
    theirs = best(lambda V: value(X, W, V, Y, N, beta, gamma, lam))
    np.testing.assert_allclose(found, theirs.x.reshape(V.shape), atol=1e-5)
    assert value(X, W, found, Y, N, beta, gamma, lam) <= theirs.fun * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_the_noise_is_the_minimiser_of_its_relaxed_sub_problem(seed):
    rng = np.random.default_rng(seed)
    present, absent = rng.normal(0.5, 1, size=2)
    lam = rng.uniform(0.1, 4)

    def sub_problem(N):
        return (present - (1 - N)) ** 2 + (absent - N) ** 2 + lam * N

    best = minimize_scalar(sub_problem, bounds=(0, 10), method="bounded", options={"xatol": 1e-9})
    lead = np.array([[present - absent]])
    assert nlr.update_noise(lead, np.ones((1, 1)), lam).item() == pytest.approx(best.x, abs=1e-6)
    assert nlr.update_noise(lead, np.zeros((1, 1)), lam).item() == 0


@pytest.mark.parametrize("shape", SHAPES)
def test_the_objective_is_the_printed_one_and_falls_with_each_classifier(shape):
    X, Y, N, W, V, beta, gamma, lam = problem(0, *shape)
    Z, strengths, Q = rotate(X)
    ones, target = Z.sum(axis=0)[:, None], Z.T @ (Y - N)
    W, V = Q.T @ W, Q.T @ V
    course = []
    for step in range(6):
        found = nlr.objective(strengths, target, ones, W, V, Y - N, N, beta, gamma, lam)
        assert found == pytest.approx(value(X, Q @ W, Q @ V, Y, N, beta, gamma, lam))
        course.append(found)
        if step % 2:
            W = nlr.update_classifier(strengths, target, ones, V, beta, gamma)
        else:
            V = nlr.update_classifier(strengths, ones - target, ones, W, beta, gamma)
    assert (np.diff(course) < 0).all()


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("n", [40, 6])  # more rows than features, and fewer
def test_it_does_what_the_authors_iterations_do(n, intercept):
    X, _, Y = small(n=n)
    beta, gamma, lam = 100.0, 10.0, 2.0
    found = nlr.NLR(intercept=intercept).fit(X, Y)

    rows = found.scale_(X)
    if intercept:
        rows = np.hstack([rows, np.ones((n, 1))])
    M, E, Y = rows.T @ rows, np.ones(Y.shape), Y.astype(float)
    R = (1 + beta) * M + gamma * np.eye(len(M))
    W, V, N = np.zeros((len(M), 4)), np.zeros((len(M), 4)), np.zeros(Y.shape)
    for _ in range(100):
        W = np.linalg.solve(R, rows.T @ (Y - N) + beta * rows.T @ E - beta * M @ V)
        V = np.linalg.solve(R, rows.T @ (1 - Y + N) + beta * rows.T @ E - beta * M @ W)
        G = N - (4 * N - 2 * Y + 2 * (1 - Y) + 2 * rows @ W - 2 * rows @ V) / 4
        N = ((np.sign(G) * np.maximum(np.abs(G) - lam / 4, 0) > 0) & (Y == 1)).astype(float)
    assert 0 < N.sum() < Y.sum()
    np.testing.assert_array_equal(found.pseudo_labels_, Y - N)
    np.testing.assert_allclose(found.weight_, W[:8], atol=1e-9)
    np.testing.assert_allclose(found.bias_, W[8] if intercept else 0, atol=1e-9)
    assert len(found.objective_) == 100
    assert found.objective_[-1] == pytest.approx(value(rows, W, V, Y, N, beta, gamma, lam))
