import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar

from tests.contract import Contract, small
from wscpml.methods import pml_ni
from wscpml.methods.linear import rotate, with_ones


class TestPMLNI(Contract):
    method = pml_ni.PMLNI()


@pytest.mark.parametrize("shape", [(12, 3), (4, 9)])
@pytest.mark.parametrize("seed", range(5))
def test_the_sum_is_the_minimiser_of_its_sub_problem(seed, shape):
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=shape), rng.normal(size=(shape[0], 2))
    U, V, L = rng.normal(size=(3, shape[1], 2))
    lam, mu = 10 ** rng.uniform(-1, 1, size=2)

    def lagrangian(w):
        W = w.reshape(U.shape)
        gap = U + V - W
        fit = ((Y - X @ W) ** 2).sum() + lam * (W**2).sum()
        return fit / 2 + (L * gap).sum() + mu / 2 * (gap**2).sum()

    _, strengths, Q = rotate(X)
    pull = X.T @ Y + mu * (U + V) + L
    found, square = pml_ni.update_sum(strengths, Q, pull, lam + mu)
    best = minimize(lagrangian, np.zeros(U.size), tol=1e-10)
    np.testing.assert_allclose(found.ravel(), best.x, atol=1e-5)
    assert lagrangian(found) <= best.fun + 1e-9
    assert square == pytest.approx(((X @ found) ** 2).sum())
    rotated, again = pml_ni.update_sum(strengths, None, Q.T @ pull, lam + mu)
    np.testing.assert_allclose(rotated, Q.T @ found, atol=1e-12)
    assert again == pytest.approx(square)


@pytest.mark.parametrize("shape", [(7, 4), (3, 8)])
@pytest.mark.parametrize("threshold", [0.1, 1.0, 100.0])
def test_the_classifier_is_the_minimiser_of_its_sub_problem(shape, threshold):
    goal = np.random.default_rng(0).normal(size=shape)
    U, trace_norm = pml_ni.update_classifier(goal, threshold)
    assert trace_norm == pytest.approx(np.linalg.norm(U, "nuc"))
    # (goal - U) / threshold is a subgradient of the trace norm at U: necessary and sufficient.
    subgradient = (goal - U) / threshold
    assert np.linalg.norm(subgradient, 2) <= 1 + 1e-12
    assert (subgradient * U).sum() == pytest.approx(trace_norm)
    assert U.any() == (threshold < 100)


@pytest.mark.parametrize("goal", [-2.0, -0.3, 0.0, 0.4, 5.0])
def test_the_noise_is_the_minimiser_of_its_sub_problem(goal):
    best = minimize_scalar(
        lambda v: 0.7 * abs(v) + (v - goal) ** 2 / 2,
        bounds=(-6, 6),
        method="bounded",
        options={"xatol": 1e-9},
    )
    assert pml_ni.update_noise(np.array(goal), 0.7) == pytest.approx(best.x, abs=1e-6)


@pytest.mark.parametrize("gamma", [0.5, 0.25])  # without noise and with it
@pytest.mark.parametrize("n", [40, 6])  # more rows than features, and fewer
def test_it_does_what_the_authors_iterations_do_and_finds_the_minimum(n, gamma):
    X, _, Y = small(n=n)
    lam, beta, mu = 10.0, 0.5, 1e-4
    found = pml_ni.PMLNI(gamma=gamma).fit(X, Y)

    rows = with_ones(found.scale_(X))
    U = V = L = np.zeros((4, 9))
    for step in range(1, 501):  # noqa: B007
        A = rows.T @ rows + (lam + mu) * np.eye(9)
        W = (Y.T @ rows + mu * (U + V) + L) @ np.linalg.inv(A)
        before = U
        left, values, right = np.linalg.svd(W - V - L / mu, full_matrices=False)
        U = left @ np.diag(np.maximum(values - beta / mu, 0)) @ right
        goal = W - U - L / mu
        V = np.sign(goal) * np.maximum(np.abs(goal) - gamma / mu, 0)
        c2 = mu * np.linalg.norm(U - before) / np.linalg.norm(W) < 1e-5
        c1 = np.linalg.norm(W - U - V) / np.linalg.norm(W) < 1e-7
        mu = min(1.1 * mu, 1e10) if c2 else mu
        L = L + mu * (U + V - W)
        if c1 and c2:
            break
    assert V.any() == (gamma < 0.5)
    assert len(found.objective_) == step < 500
    np.testing.assert_allclose(found.weight_, U[:, :-1].T, atol=1e-9)
    np.testing.assert_allclose(found.bias_, U[:, -1], atol=1e-9)

    # The objective may rise on the way, but W = U + V in the end, and no such point is lower:
    # what the smooth part pulls at is a subgradient of both norms.
    W, trace_norm, entries = U + V, np.linalg.norm(U, "nuc"), np.abs(V).sum()
    value = ((Y - rows @ W.T) ** 2).sum() / 2 + lam / 2 * (W**2).sum()
    value += beta * trace_norm + gamma * entries
    assert found.objective_[-1] == pytest.approx(value, rel=1e-6)
    pull = (Y - rows @ W.T).T @ rows - lam * W
    assert np.linalg.norm(pull, 2) <= beta * (1 + 1e-5)
    assert np.abs(pull).max() <= gamma * (1 + 1e-5)
    assert (pull * U).sum() == pytest.approx(beta * trace_norm, rel=1e-5)
    assert (pull * V).sum() == pytest.approx(gamma * entries, rel=1e-5)
