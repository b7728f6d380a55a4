import numpy as np
import pytest

from wscpml.datasets.splits import held_out
from wscpml.errors import UserError


def test_folds_share_out_all_rows_evenly():
    folds = np.array([held_out(23, 10, fold, np.random.default_rng(7)) for fold in range(10)])
    np.testing.assert_array_equal(folds.sum(axis=0), np.ones(23))
    assert set(folds.sum(axis=1)) == {2, 3}


def test_without_a_fold_nothing_is_held_out():
    assert not held_out(23, 10, None, np.random.default_rng(0)).any()


def test_folds_are_drawn_at_random():
    draws = [held_out(100, 10, 0, np.random.default_rng(seed)) for seed in (0, 1)]
    assert (draws[0] != draws[1]).any()


def test_more_folds_than_rows_are_refused():
    with pytest.raises(UserError, match="split.folds: must be at most 5, .* got 10"):
        held_out(5, 10, 0, np.random.default_rng(0))
