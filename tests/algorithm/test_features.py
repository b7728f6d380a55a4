import numpy as np
import pytest
from scipy import sparse

from wscpml import arrays
from wscpml.algorithm import clustering, features, prototypes, weak_supervision
from wscpml.arrays import squared_distances


def rng():
    return np.random.default_rng(0)


X = rng().normal(size=(30, 3)) * [1, 10, 100] + [0, 5, -50]


def fit(rows=X, scaling="minmax", kernel="none", energy=1.0):
    return features.fit(
        rows,
        scaling=scaling,
        kernel=kernel,
        anchors_per_feature=5,
        bandwidth=0.5,
        energy=energy,
        rng=rng(),
    )


def test_squared_distances_are_those_of_the_definition():
    points = rng().normal(size=(4, 3))
    literal = ((X[:, None] - points[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(squared_distances(X, points), literal, rtol=1e-9)
    assert squared_distances(X, X).min() >= 0


def test_squared_distances_keep_their_digits_far_from_zero():
    points = rng().normal(size=(4, 3))
    exact = squared_distances(X, points)
    np.testing.assert_allclose(squared_distances(X + 2.0**30, points + 2.0**30), exact, rtol=1e-5)


def test_min_max_maps_training_columns_onto_minus_one_to_one():
    scaled = fit()(X)
    np.testing.assert_allclose(scaled.min(axis=0), -1)
    np.testing.assert_allclose(scaled.max(axis=0), 1)


def test_z_score_gives_training_columns_mean_zero_and_deviation_one():
    scaled = fit(scaling="zscore")(X)
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(scaled.std(axis=0), 1, rtol=1e-6)


def test_no_scaling_leaves_features_alone():
    np.testing.assert_allclose(fit(scaling="none")(X), X, rtol=1e-6)


def test_quantile_scaling_is_the_rank_from_minus_one_to_one():
    rows = np.array([[1.0], [1000.0], [2.0], [3.0], [4.0]])
    ranked = fit(rows, scaling="quantile")
    np.testing.assert_allclose(ranked(rows).ravel(), [-1, 1, -0.5, 0, 0.5])
    np.testing.assert_allclose(ranked(np.array([[-9.0], [2.5], [9e9]])).ravel(), [-1, -0.25, 1])


def test_a_tie_has_the_rank_of_its_middle():
    rows = np.array([[0.0], [0.0], [0.0], [1.0], [2.0]])
    np.testing.assert_allclose(fit(rows, scaling="quantile")(rows).ravel(), [-0.5] * 3 + [0.5, 1])


def test_more_rows_than_levels_change_ranks_little(monkeypatch):
    exact = fit(scaling="quantile")(X)
    monkeypatch.setattr(features, "MOST_LEVELS", 15)
    assert abs(fit(scaling="quantile")(X) - exact).max() < 2 / 15


@pytest.mark.parametrize("scaling", ["minmax", "zscore", "quantile"])
def test_a_column_constant_in_training_becomes_zero_everywhere(scaling):
    constant = np.column_stack([X, np.full(30, 0.1)])
    feature_map = fit(constant, scaling=scaling)
    test = np.column_stack([X[:1], [99.0]])
    assert feature_map(constant)[:, 3].tolist() == [0] * 30
    assert feature_map(test)[0, 3] == 0


def test_test_rows_are_scaled_as_the_training_rows_were():
    np.testing.assert_allclose(fit()(X.max(axis=0)[None] + np.ptp(X, axis=0)), 3)


@pytest.mark.parametrize(("kernel", "power"), [("rbf", 1), ("laplace", 0.5)])
def test_inner_products_of_mapped_rows_are_the_kernel(kernel, power):
    rows = X[:12]  # so few that every row is an anchor, and the map is exact
    mapped = fit(rows, kernel=kernel)
    scaled = fit(rows)(rows).astype(float)
    distances = ((scaled[:, None] - scaled[None]) ** 2).sum(axis=2)
    K = np.exp(-((distances / (0.5 * distances.mean())) ** power))
    centred = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    Z = mapped(rows)
    assert Z.dtype == np.float32
    np.testing.assert_allclose(Z @ Z.T, centred, atol=1e-5)
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-6)


def test_there_are_as_many_anchors_as_the_features_ask_for_within_bounds(monkeypatch):
    monkeypatch.setattr(features, "FEWEST_ANCHORS", 7)
    assert fit(kernel="rbf").anchors.shape == (15, 3)
    monkeypatch.setattr(features, "FEWEST_ANCHORS", 20)
    assert fit(kernel="rbf").anchors.shape == (20, 3)
    monkeypatch.setattr(features, "MOST_ANCHORS", 9)
    assert fit(kernel="rbf").anchors.shape == (9, 3)


def test_the_rank_is_what_the_energy_asks_for():
    whole, most = fit(kernel="rbf"), fit(kernel="rbf", energy=0.9)
    assert whole.whitening.shape == (30, 29)  # one is lost to the centre
    strengths = 1 / (whole.whitening**2).sum(axis=0)  # columns are unit vectors / sqrt(strength)
    share = np.cumsum(strengths) / strengths.sum()
    rank = most.whitening.shape[1]
    assert share[rank - 1] >= 0.9 > share[rank - 2]
    np.testing.assert_allclose(most(X), whole(X)[:, :rank], atol=1e-5)


def test_of_very_many_rows_evenly_spaced_ones_are_fitted_on(monkeypatch):
    monkeypatch.setattr(features, "MOST_ROWS", 10)
    np.testing.assert_array_equal(fit()(X), fit(X[::3])(X))


def test_anchors_are_distinct_training_rows_and_no_more_than_there_are():
    mapped = fit(X[:6], kernel="rbf")
    np.testing.assert_allclose(
        np.unique(mapped.anchors, axis=0), np.unique(fit(X[:6])(X[:6]), axis=0)
    )


def test_rows_all_alike_map_to_zero():
    same = np.ones((5, 3))
    mapped = fit(same, kernel="rbf")(same)
    np.testing.assert_allclose(mapped, np.zeros((5, 1)), atol=1e-7)


SPARSE = sparse.random_array((40, 6), density=0.3, rng=rng(), format="csr")


def test_sparse_features_take_min_max_for_quantiles():
    quantile, minmax = (fit(SPARSE, scaling, "rbf")(SPARSE) for scaling in ("quantile", "minmax"))
    np.testing.assert_array_equal(quantile, minmax)


@pytest.mark.parametrize("scaling", ["minmax", "zscore", "none"])
def test_sparse_features_map_as_dense_ones_do(scaling):
    dense, kept = (fit(rows, scaling, "rbf") for rows in (SPARSE.toarray(), SPARSE))
    assert sparse.issparse(kept.anchors)
    products = [mapped @ mapped.T for mapped in (kept(SPARSE), dense(SPARSE.toarray()))]
    np.testing.assert_allclose(*products, atol=1e-5)
    np.testing.assert_allclose(kept(SPARSE[:3]), kept(SPARSE)[:3], atol=1e-6)
    np.testing.assert_array_equal(kept(SPARSE.toarray()), kept(SPARSE))


def test_without_a_kernel_sparse_features_are_scaled_and_not_shifted():
    shift = fit(SPARSE.toarray())(SPARSE.toarray()) - fit(SPARSE)(SPARSE)
    np.testing.assert_allclose(shift, np.broadcast_to(shift[0], shift.shape), atol=1e-6)


def test_sparse_features_have_the_prototypes_and_clusters_of_dense_ones():
    candidates = (rng().random((40, 3)) < 0.6).astype(np.uint8)
    found = []
    for rows in (SPARSE, SPARSE.toarray()):
        scaled = fit(SPARSE, kernel="rbf").scale(rows)
        assert sparse.issparse(scaled) == sparse.issparse(rows)
        positive, negative = prototypes.learn(scaled, candidates)
        B = weak_supervision.build(scaled, candidates, positive, negative, "adaptive")
        result = clustering.cluster(scaled, candidates, B, 1.0, 0.1, "paper", 20, 1e-6)
        F = result.pseudo_labels.toarray()
        found.append((positive, negative, B, F, result.prototypes))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


def test_sparse_rows_are_taken_in_blocks(monkeypatch):
    whole = squared_distances(SPARSE, SPARSE)
    monkeypatch.setattr(arrays, "ROWS_AT_ONCE", 7)
    np.testing.assert_allclose(squared_distances(SPARSE, SPARSE), whole)
    literal = ((SPARSE.toarray()[:, None] - SPARSE.toarray()[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(whole, literal, atol=1e-12)
    np.testing.assert_allclose(squared_distances(SPARSE, SPARSE.toarray()), literal, atol=1e-12)


@pytest.mark.parametrize("rows", [X, SPARSE])
@pytest.mark.parametrize("scaling", ["quantile", "minmax"])
@pytest.mark.parametrize("kernel", ["laplace", "rbf", "none"])
def test_a_map_survives_being_taken_apart(rows, scaling, kernel):
    feature_map = fit(rows, scaling, kernel)
    again = features.FeatureMap.from_arrays(feature_map.to_arrays())
    np.testing.assert_array_equal(again(rows), feature_map(rows))
