from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array, csr_matrix

from tests.strategies import label_matrices
from wscpml.datasets import noise
from wscpml.datasets.noise import pad_candidates
from wscpml.errors import UserError


def rng(seed=0):
    return np.random.default_rng(seed)


def by_features(truth, rate, rng):
    """Instance-dependent noise, with features of its own for the rows."""
    X = np.random.default_rng(7).normal(size=(len(truth), 3))
    return noise.instance_dependent(truth, X, rate, rng)


BY_RATE = [noise.uniform, noise.by_frequency, noise.label_dependent, by_features]
MODELS = [*BY_RATE, noise.per_label, noise.per_row, noise.twins]
RATES = st.floats(0, 1, exclude_min=True, exclude_max=True)


@given(label_matrices(), st.data())
def test_candidates_are_the_truth_padded_to_r_labels(truth, data):
    r = data.draw(st.integers(1, truth.shape[1]))
    candidates = pad_candidates(truth, r, np.random.default_rng(0))
    assert (candidates >= truth).all()
    np.testing.assert_array_equal(candidates.sum(axis=1), np.maximum(truth.sum(axis=1), r))


def test_rows_with_r_or_more_true_labels_get_no_noise():
    truth = np.array([[1, 1, 1, 0], [1, 1, 0, 0]], dtype=np.uint8)
    np.testing.assert_array_equal(pad_candidates(truth, 2, np.random.default_rng(0)), truth)


def test_false_labels_are_drawn_uniformly():
    truth = np.zeros((20000, 5), dtype=np.uint8)
    truth[:, 0] = 1
    shares = pad_candidates(truth, 3, np.random.default_rng(0)).mean(axis=0)
    np.testing.assert_allclose(shares, [1, 0.5, 0.5, 0.5, 0.5], atol=0.02)


def test_more_candidates_than_labels_are_refused():
    with pytest.raises(UserError, match="noise.candidates: must be at most 4, .* got 5"):
        pad_candidates(np.zeros((2, 4)), 5, np.random.default_rng(0))


@pytest.mark.parametrize("model", MODELS)
@given(truth=label_matrices(), rate=RATES)
def test_candidates_contain_the_truth(model, truth, rate):
    candidates = model(truth, rate, rng())
    assert candidates.dtype == np.uint8
    assert candidates.max() <= 1
    assert (candidates >= truth).all()


@pytest.mark.parametrize("model", BY_RATE)
@pytest.mark.parametrize("rate", [0.02, 0.3, 0.9])
def test_the_share_of_false_labels_added_is_the_rate(model, rate):
    truth = (rng().random((4000, 8)) < np.linspace(0.02, 0.7, 8)).astype(np.uint8)
    spread = np.sqrt(rate * (1 - rate) / (truth == 0).sum())
    reached = noise.summary(truth, model(truth, rate, rng(1)))["rate"]
    assert reached == pytest.approx(rate, abs=4 * spread)


@pytest.mark.parametrize("model", MODELS)
def test_the_same_seed_gives_the_same_candidates_and_another_seed_others(model):
    truth = (rng().random((200, 5)) < 0.3).astype(np.uint8)
    candidates = model(truth, 0.3, rng(1))
    np.testing.assert_array_equal(candidates, model(truth, 0.3, rng(1)))
    assert (candidates != model(truth, 0.3, rng(2))).any()


@pytest.mark.parametrize("model", MODELS)
def test_a_set_without_false_labels_gets_no_noise(model):
    truth = np.ones((5, 3), dtype=np.uint8)
    np.testing.assert_array_equal(model(truth, 0.9, rng()), truth)


@pytest.mark.parametrize("model", BY_RATE)
@pytest.mark.parametrize("n", [1, 50])
@pytest.mark.parametrize("row", [[0], [1], [0, 0, 0], [0, 1, 0]])
def test_rows_with_the_same_labels_have_no_affinities_and_are_noised_uniformly(model, n, row):
    truth = np.tile(np.array(row, dtype=np.uint8), (n, 1))
    np.testing.assert_array_equal(model(truth, 0.6, rng()), noise.uniform(truth, 0.6, rng()))


def test_labels_that_go_with_the_true_ones_are_added_more_often():
    truth = np.zeros((4000, 4), dtype=np.uint8)
    truth[:2000, 0] = truth[1000:3000, 1] = truth[3000:, 2] = 1
    only_0 = slice(0, 1000)  # half of the rows with label 0 have 1 too, none has 2 or 3
    dependent = noise.label_dependent(truth, 0.2, rng())[only_0].mean(axis=0)
    assert dependent[1] > 5 * dependent[2:].max()
    assert dependent[2:].min() > 0
    uniform = noise.uniform(truth, 0.2, rng())[only_0].mean(axis=0)
    np.testing.assert_allclose(uniform, [1, 0.2, 0.2, 0.2], atol=0.05)


def test_label_probabilities_are_affinity_plus_floor_up_to_a_factor():
    truth = np.repeat([[1, 1, 0], [1, 0, 0], [1, 0, 0], [0, 0, 1]], 20000, axis=0).astype(np.uint8)
    affinity = np.array([[0, 0, 0], [0, 1 / 3, 0], [0, 1 / 3, 0], [0, 0, 0]])
    false = np.array([[0, 0, 1], [0, 1, 1], [0, 1, 1], [1, 1, 0]])
    expected = (affinity + 0.05 * affinity.sum() / false.sum()) * false
    expected *= 0.1 * false.sum() / expected.sum()
    added = noise.label_dependent(truth, 0.1, rng()) - truth
    shares = added.reshape(4, -1, 3).mean(axis=1)
    np.testing.assert_allclose(shares, expected, atol=0.015)


def test_rows_without_labels_are_noised_by_the_label_frequencies():
    truth = np.zeros((8000, 3), dtype=np.uint8)
    truth[:3000, 0] = truth[3000:4000, 1] = 1
    shares = noise.label_dependent(truth, 0.2, rng())[4000:].mean(axis=0)
    assert shares[0] / shares[1] == pytest.approx(3, rel=0.2)
    assert shares[1] > 3 * shares[2] > 0


def test_labels_of_the_neighbours_are_added_more_often():
    group = np.repeat([0, 1], 2000)
    X = group[:, None] + rng().normal(size=(4000, 2), scale=0.05)
    truth = np.zeros((4000, 3), dtype=np.uint8)
    truth[np.arange(4000), group] = rng(1).random(4000) < 0.5
    lacking = (group == 0) & (truth[:, 0] == 0)  # label 0 is their neighbours', label 1 far away
    dependent = noise.instance_dependent(truth, X, 0.2, rng())[lacking].mean(axis=0)
    assert dependent[0] > 5 * dependent[1:].max()
    assert dependent[1:].min() > 0
    uniform = noise.uniform(truth, 0.2, rng())[lacking].mean(axis=0)
    np.testing.assert_allclose(uniform, 0.2, atol=0.05)


def test_a_row_is_not_its_own_neighbour():
    X = np.repeat(np.arange(500.0), 2)[:, None] + np.tile([0, 0.1], 500)[:, None]
    truth = np.tile([[1, 0, 0], [0, 1, 0]], (500, 1)).astype(np.uint8)  # of each pair of rows
    candidates = noise.instance_dependent(truth, X, 0.3, rng(), neighbours=1)
    shares = candidates.reshape(500, 2, 3).mean(axis=0)
    assert min(shares[0, 1], shares[1, 0]) > 5 * shares[:, 2].max()


def test_units_of_the_features_and_constant_features_do_not_matter():
    X = rng().normal(size=(300, 3))
    other = np.column_stack([X * [1e-3, 1, -1e3] + [5, 0, 1e4], np.full(300, 0.1)])
    truth = (rng(1).random((300, 5)) < 0.3).astype(np.uint8)
    np.testing.assert_array_equal(
        noise.instance_dependent(truth, X, 0.3, rng()),
        noise.instance_dependent(truth, other, 0.3, rng()),
    )


@given(label_matrices(), st.integers(1, 20))
def test_equal_features_and_any_number_of_neighbours_will_do(truth, neighbours):
    X = np.full((len(truth), 2), 0.1)
    candidates = noise.instance_dependent(truth, X, 0.5, rng(), neighbours)
    assert (candidates >= truth).all()


SPARSE_FEATURES = {
    "real": rng().normal(size=(300, 20)) * (rng(1).random((300, 20)) < 0.4) * np.arange(20),
    "0/1, full of ties": (rng().random((300, 12)) < 0.2).astype(np.uint8),
    "no entries at all": np.zeros((300, 2)),
}


@pytest.mark.parametrize("sparse", [csr_array, csr_matrix])
@pytest.mark.parametrize("kind", SPARSE_FEATURES)
def test_sparse_features_give_the_candidates_of_the_same_features_dense(kind, sparse):
    X = SPARSE_FEATURES[kind]
    truth = (rng(2).random((300, 5)) < 0.3).astype(np.uint8)
    np.testing.assert_array_equal(
        noise.instance_dependent(truth, sparse(X), 0.3, rng()),
        noise.instance_dependent(truth, X, 0.3, rng()),
    )


def test_summary_counts_labels_and_measures_both_shares():
    truth = np.array([[1, 0, 0, 0, 0, 0], [1, 1, 0, 0, 0, 0]], dtype=np.uint8)
    candidates = np.array([[1, 1, 0, 0, 0, 0], [1, 1, 1, 0, 0, 0]], dtype=np.uint8)
    assert noise.summary(truth, candidates) == {
        "average_candidates": 2.5,
        "average_true": 1.5,
        "false_share": 0.4,
        "rate": 2 / 9,
    }


def test_rows_of_unknown_truth_are_in_no_summary():
    truth = np.array([[1, 0], [-1, -1]], dtype=np.int8)
    candidates = np.ones((2, 2), np.uint8)
    assert noise.summary(truth, candidates) == noise.summary(truth[:1], candidates[:1])


def test_shares_of_nothing_are_zero():
    nothing, everything = np.zeros((2, 3), dtype=np.uint8), np.ones((2, 3), dtype=np.uint8)
    assert noise.summary(nothing, nothing)["false_share"] == 0.0
    assert noise.summary(everything, everything)["rate"] == 0.0


@pytest.mark.parametrize(("model", "shape"), [("per_label", (4000, 300)), ("per_row", (300, 4000))])
def test_labels_or_rows_have_rates_of_their_own_with_the_given_mean(model, shape):
    truth = np.zeros(shape, dtype=np.uint8)
    own = getattr(noise, model)(truth, 0.25, rng()).mean(axis=shape.index(4000))
    assert own.mean() == pytest.approx(0.25, abs=0.04)
    assert own.std() == pytest.approx(np.sqrt(0.25 * 0.75 / 3), abs=0.03)  # of Beta(0.5, 1.5)


def test_frequent_labels_are_added_in_proportion():
    truth = (rng().random((20000, 3)) < [0.05, 0.1, 0.2]).astype(np.uint8)
    added = noise.by_frequency(truth, 0.1, rng(1))
    rates = [added[truth[:, j] == 0, j].mean() for j in range(3)]
    assert rates[1] / rates[0] == pytest.approx(2, abs=0.25)
    assert rates[2] / rates[1] == pytest.approx(2, abs=0.25)


@pytest.mark.parametrize("q", [1, 2, 5, 6])
def test_a_true_label_drags_just_its_twin_in(q):
    truth = np.repeat(np.eye(q, dtype=np.uint8), 2000, axis=0)
    candidates = noise.twins(truth, 0.4, rng())
    together = np.array([candidates[truth[:, j] == 1].mean(axis=0) for j in range(q)])
    others = together - np.eye(q)
    assert ((others > 0).sum(axis=1) == (q > 1)).all()
    np.testing.assert_allclose(others.sum(axis=1), 0.4 * (q > 1), atol=0.05)
    if q % 2 == 0:
        assert ((others > 0) == (others > 0).T).all()


def test_true_labels_are_lost_but_no_row_loses_all():
    truth = (rng().random((3000, 6)) < 0.5).astype(np.uint8)
    candidates = noise.uniform(truth, 0.3, rng(1))
    left = noise.lose(truth, candidates, 0.3, rng(2))
    assert (left <= candidates).all()
    assert (left[truth == 0] == candidates[truth == 0]).all()
    some = truth.any(axis=1)
    assert ((left * truth).sum(axis=1)[some] >= 1).all()
    assert left[truth == 1].mean() == pytest.approx(0.7, abs=0.03)


@pytest.mark.parametrize("kind", get_args(noise.Kind))
def test_every_kind_can_be_named(kind):
    truth = (rng().random((60, 5)) < 0.3).astype(np.uint8)
    X = rng(1).normal(size=(60, 2))
    candidates = noise.inject(kind, truth, X, 3, 0.3, 0.0, rng(2))
    assert (candidates >= truth).all()
    assert candidates.sum() > truth.sum()
    fewer = noise.inject(kind, truth, X, 3, 0.3, 0.5, rng(2))
    assert (fewer[truth == 0] == candidates[truth == 0]).all()
    assert fewer.sum() < candidates.sum()
