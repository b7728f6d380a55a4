import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

from tests.contract import Contract, assert_minimiser, small
from wscpml.algorithm.prototypes import centroids, memberships
from wscpml.arrays import squared_distances
from wscpml.methods.fbd import FBD, RidgeStep, multiplicative_step, shared, update_labels
from wscpml.methods.neighbours import neighbour_graph


class TestFBD(Contract):
    method = FBD()


class Problem:
    """Random parts of the objective, with weights that are all different."""

    weights = {
        "feature_clusters": 0.3,
        "label_clusters": 0.7,
        "manifold": 0.4,
        "fidelity": 0.6,
        "ridge": 1.5,
    }
    m = 2.0

    def __init__(self, seed, n=8, d=3, q=3):
        rng = np.random.default_rng(seed)
        self.X, self.Y = rng.normal(size=(n, d)), (rng.random((n, q)) < 0.7).astype(np.uint8)
        self.F, self.P = self.Y * rng.random((n, q)), shared(self.Y * rng.random((n, q)))
        self.W, self.Vx, self.Vf = (rng.normal(size=s) for s in ((d, q), (q, d), (q, q)))
        self.graph = neighbour_graph(self.X, 3, 1.0)

    @property
    def cost(self):
        by_feature = self.weights["feature_clusters"] * squared_distances(self.X, self.Vx)
        return by_feature + self.weights["label_clusters"] * squared_distances(self.F, self.Vf)

    def objective(self, **given):
        """As the module's docstring has it, of parts as they are or given flat."""
        names = ("W", "F", "P", "Vx", "Vf")
        own = {name: getattr(self, name) for name in names}
        W, F, P, Vx, Vf = (given.get(name, own[name]).reshape(own[name].shape) for name in names)
        value = np.linalg.norm(self.X @ W - F) ** 2
        value += self.weights["ridge"] * np.linalg.norm(W) ** 2
        value += self.weights["fidelity"] * np.linalg.norm(F - self.Y) ** 2
        value += self.weights["fidelity"] * np.linalg.norm(F - P) ** 2
        S = self.graph.toarray()
        value += self.weights["manifold"] * np.trace(P.T @ (np.diag(S.sum(axis=1)) - S) @ P)
        for (i, j), p in np.ndenumerate(P):
            by_feature = self.weights["feature_clusters"] * np.sum((self.X[i] - Vx[j]) ** 2)
            by_label = self.weights["label_clusters"] * np.sum((F[i] - Vf[j]) ** 2)
            value += p**self.m * (by_feature + by_label)
        return value

    def step_on_p(self, P):
        manifold, fidelity = self.weights["manifold"], self.weights["fidelity"]
        return multiplicative_step(self.F, P, self.cost, self.graph, self.m, manifold, fidelity)


@pytest.mark.parametrize("shape", [(8, 3), (4, 7)])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_the_ridge_step_is_the_minimiser(shape, kind):
    p = Problem(0, *shape)
    W = RidgeStep(kind(p.X), p.weights["ridge"])(p.F)
    assert_minimiser(lambda W: p.objective(W=W), W)


@pytest.mark.parametrize("seed", range(3))
def test_the_label_step_is_the_minimiser_within_its_bounds(seed):
    p = Problem(seed)
    a2, a4 = p.weights["label_clusters"], p.weights["fidelity"]
    F = update_labels(p.X @ p.W, p.Y, p.P, p.P**p.m, p.Vf, a2, a4)
    best = minimize(
        lambda F: p.objective(F=F),
        p.F.ravel(),
        method="L-BFGS-B",
        bounds=[(0, y) for y in p.Y.ravel()],
        options={"ftol": 1e-14, "gtol": 1e-8},
    )
    np.testing.assert_allclose(F.ravel(), best.x, atol=1e-4)
    assert p.objective(F=F) <= best.fun + 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_the_prototype_step_is_the_minimiser(seed):
    p = Problem(seed)
    for name, points in (("Vx", p.X), ("Vf", p.F)):
        assert_minimiser(lambda V, name=name: p.objective(**{name: V}), centroids(points, p.P**p.m))


@pytest.mark.parametrize("seed", range(10))
def test_the_multiplicative_step_never_raises_its_sub_problem(seed):
    p = Problem(seed, n=15, q=4)
    P, value = p.P, p.objective()
    for _ in range(10):
        P = p.step_on_p(P)
        lowered = p.objective(P=P)
        assert (P >= 0).all()
        assert not P[p.Y == 0].any()
        assert lowered <= value + 1e-12
        value = lowered


@pytest.mark.parametrize("m", [1.5, 2.0, 3.0])
def test_the_multiplicative_step_rests_at_the_minimum(m):
    p = Problem(0)
    p.m = m
    best = minimize(
        lambda P: p.objective(P=P),
        p.P.ravel(),
        method="L-BFGS-B",
        bounds=[(0, y) for y in p.Y.ravel()],
        options={"ftol": 1e-15, "gtol": 1e-9, "maxfun": 10**6},
    )
    P = p.P
    for _ in range(500):
        P = p.step_on_p(P)
    assert P.max() < 1  # no row reached the bound that only the optimiser has
    np.testing.assert_allclose(P.ravel(), best.x, atol=1e-4)


def test_rows_of_the_confidence_sum_to_one_or_nothing():
    np.testing.assert_array_equal(shared(np.array([[1.0, 3], [0, 0]])), [[0.25, 0.75], [0, 0]])


def test_the_recorded_objective_is_the_stated_one():
    p = Problem(0)
    value = FBD(**p.weights)._objective(p.Y, p.X @ p.W, p.W, p.F, p.P, p.cost, p.graph)
    np.testing.assert_allclose(value, p.objective(), rtol=1e-12)


def test_it_starts_from_the_candidates():
    X, _, candidates = small()
    method = FBD(max_iterations=1).fit(X, candidates)
    scaled = method.scale_(X)
    extended = np.hstack([scaled, np.ones((len(X), 1))])
    W = RidgeStep(extended, 10.0)(candidates.astype(float))
    np.testing.assert_allclose(np.vstack([method.weight_, method.bias_]), W)
    P = memberships(candidates)
    Vf = centroids(candidates.astype(float), P**2)
    F = update_labels(extended @ W, candidates, P, P**2, Vf, 1.0, 1.0)
    np.testing.assert_allclose(method.pseudo_labels_, F)


# Scaling the rows of P to 1 after its step may raise the objective; it promises no descent.
def test_it_stops_when_the_objective_settles():
    X, _, candidates = small(n=100)
    objective = np.array(FBD().fit(X, candidates).objective_)
    changes = np.abs(np.diff(objective)) / objective[1:]
    assert len(objective) < 50
    assert (changes[:-1] > 1e-4).all()
    assert changes[-1] <= 1e-4
    assert len(FBD(max_iterations=2).fit(X, candidates).objective_) == 2
