import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import approx_fprime
from scipy.special import expit

from tests.contract import NEAR_THE_TOP, Contract, assert_minimiser, small
from wscpml.methods import neighbours
from wscpml.methods.pml_lenfn import (
    PMLLENFN,
    LinearStep,
    enhanced_labels,
    hidden_gradient,
    label_laplacian,
    mean_nearest_distance,
    update_output,
)


class TestPMLLENFN(Contract):
    method = PMLLENFN()
    excused = NEAR_THE_TOP


class Problem:
    """Random parts of the objective, with weights that are all different."""

    ridge, relations, output_ridge, hidden_ridge = 1.5, 0.4, 0.3, 0.2

    def __init__(self, seed, n=9, d=4, q=3):
        rng = np.random.default_rng(seed)
        self.X, self.J = rng.normal(size=(n, d)), rng.random((n, q))
        self.L = label_laplacian(self.J)
        self.W, self.U, self.V = (rng.normal(size=s) for s in ((d, q), (q, q), (d, q)))
        self.H = expit(self.X @ self.V)

    def objective(self, W=None, U=None, V=None):
        """As the module's docstring has it, of parts as they are or given flat."""
        W, U, V = (
            own if given is None else given.reshape(own.shape)
            for own, given in ((self.W, W), (self.U, U), (self.V, V))
        )
        XW = self.X @ W
        return (
            np.linalg.norm(XW - self.J) ** 2
            + np.linalg.norm(XW - expit(self.X @ V) @ U) ** 2
            + self.ridge * np.linalg.norm(W) ** 2
            + self.relations * np.trace(W @ self.L @ W.T)
            + self.output_ridge * np.linalg.norm(U) ** 2
            + self.hidden_ridge * np.linalg.norm(V) ** 2
        )


def test_labels_are_enhanced_as_specified(monkeypatch):
    monkeypatch.setattr(neighbours, "BLOCK", 7)
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(20, 2)), (rng.random((20, 4)) < 0.5).astype(np.uint8)
    D = np.linalg.norm(X[:, None] - X, axis=2)
    sigma = np.mean([min(np.delete(row, i)) for i, row in enumerate(D)])
    S = np.exp(-D / (2 * sigma**2))
    expected = np.zeros(Y.shape)
    for i, row in enumerate(S):
        width = 0.3 * (row.max() - row.min())
        near, far = row >= row.max() - width, row <= row.min() + width
        a, b = Y[near].mean(axis=0), (1 - Y[far]).mean(axis=0)
        expected[i] = Y[i] * (0.6 * Y[i] + 0.25 * a + 0.15 * b)
    np.testing.assert_allclose(enhanced_labels(X, Y, 0.6, 0.15, 0.3), expected, rtol=1e-9)
    np.testing.assert_allclose(mean_nearest_distance(X), sigma, rtol=1e-9)


def test_only_equal_rows_are_near_where_every_row_has_one():
    X, Y = np.array([[0.0], [5], [0], [5]]), np.array([[1, 0], [1, 1], [1, 1], [0, 1]], np.uint8)
    J = enhanced_labels(X, Y, 0.5, 0.0, 0.2)
    np.testing.assert_allclose(J, [[1, 0], [0.75, 1], [1, 0.75], [0, 1]])


def test_relations_are_shares_of_a_labels_own_weight():
    L = label_laplacian(np.array([[1.0, 0.5, 0], [1, 0, 0]]))
    np.testing.assert_allclose(L, [[0.25, -0.25, 0], [-2, 2, 0], [0, 0, 0]])


@pytest.mark.parametrize("shape", [(9, 4), (4, 9)])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("seed", range(3))
def test_the_linear_step_is_the_minimiser(shape, kind, seed):
    p = Problem(seed, *shape)
    step = LinearStep(kind(p.X), p.L, p.ridge, p.relations)
    assert step.penalties.min() > 0  # else there is no minimum
    W = step(p.J + p.H @ p.U)
    assert_minimiser(lambda W: p.objective(W=W), W)


@pytest.mark.parametrize("seed", range(3))
def test_the_output_step_is_the_minimiser(seed):
    p = Problem(seed)
    U = update_output(p.H, p.X @ p.W, p.output_ridge)
    assert_minimiser(lambda U: p.objective(U=U), U)


@pytest.mark.parametrize("seed", range(3))
def test_the_hidden_step_goes_along_half_the_gradient(seed):
    p = Problem(seed)
    half = hidden_gradient(p.X, p.H, p.U, p.V, p.X @ p.W, p.hidden_ridge)
    numeric = approx_fprime(p.V.ravel(), lambda V: p.objective(V=V), 1e-7)
    np.testing.assert_allclose(2 * half.ravel(), numeric, rtol=1e-4, atol=1e-4)


def test_the_recorded_objective_is_the_stated_one():
    p = Problem(0)
    names = ("ridge", "relations", "output_ridge", "hidden_ridge")
    method = PMLLENFN(**{name: getattr(p, name) for name in names})
    value = method._objective(p.J, p.L, p.X @ p.W, p.W, p.H, p.U, p.V)
    np.testing.assert_allclose(value, p.objective(), rtol=1e-12)


def test_the_objective_never_rises_with_a_short_step():  # the default step promises nothing
    X, _, candidates = small(n=100)
    course = PMLLENFN(step=1e-5, tolerance=0.0, max_iterations=50, random_state=0)
    objective = course.fit(X, candidates).objective_
    assert len(objective) == 50
    assert (np.diff(objective) <= 0).all()


def test_it_stops_once_the_objective_falls_too_little():
    X, _, candidates = small(n=100)
    objective = np.array(PMLLENFN(tolerance=0.015, random_state=0).fit(X, candidates).objective_)
    falls = -np.diff(objective) / objective[:-1]
    assert 6 < len(objective) < 200
    assert (falls[4:-1] >= 0.015).all()
    assert falls[-1] < 0.015
    at_once = PMLLENFN(tolerance=1.0, random_state=0).fit(X, candidates)
    assert len(at_once.objective_) == 6
