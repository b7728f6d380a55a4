import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import label_matrices
from wscpml.errors import UserError
from wscpml.noise import pad_candidates


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
