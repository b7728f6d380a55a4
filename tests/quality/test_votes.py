import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import roc_auc_score

from wscpml.evaluation import memory
from wscpml.parameters import ParameterError
from wscpml.quality import judging, votes


def drawn(n=4000, q=4, seed=0, of_true=0.6, of_false=0.2, taggers=5):
    """Candidates with a calibrated confidence, their labels, which are true, and their votes."""
    rng = np.random.default_rng(seed)
    confidence = rng.beta(1, 1, n)
    true = rng.random(n) < confidence
    chance = np.where(true, of_true, of_false)
    given = 1 + rng.binomial(taggers - 1, chance)
    return confidence, rng.integers(q, size=n), true, given


def test_votes_tell_more_than_features_and_what_comes_out_are_probabilities():
    confidence, label, true, given = drawn()
    found = votes.with_votes(confidence, given, label)
    assert roc_auc_score(true, found) > roc_auc_score(true, confidence) + 0.05
    figures = judging.identification(true.astype(int), found)
    assert figures["calibration_error"] < 0.03


def test_votes_that_have_nothing_to_do_with_the_truth_change_hardly_anything():
    confidence, label, true, given = drawn(of_true=0.4, of_false=0.4)
    assert abs(votes.with_votes(confidence, given, label) - confidence).max() < 0.1
    alone = np.full(len(label), 0.7)  # and where the features say nothing, nothing at all
    np.testing.assert_allclose(votes.with_votes(alone, given, label), alone)


def test_one_count_for_all_changes_no_byte():
    confidence, label, _, given = drawn()
    np.testing.assert_array_equal(votes.with_votes(confidence, given * 0 + 3, label), confidence)
    few = votes.with_votes(confidence[:30], given[:30], label[:30])  # too few for two classes
    np.testing.assert_array_equal(few, confidence[:30])


def test_more_votes_never_speak_against_a_candidate():
    confidence, label, _, given = drawn(n=600, of_true=0.3, of_false=0.5, seed=3)
    found = votes.with_votes(np.full(600, 0.5) + 0.4 * (confidence > 0.5), given, label)
    for j in range(4):
        for high in (False, True):
            some = (label == j) & ((confidence > 0.5) == high)
            order = np.argsort(given[some], kind="stable")
            assert (np.diff(found[some][order]) >= -1e-12).all()


def test_a_label_whose_votes_say_nothing_is_judged_by_its_features():
    confidence, label, true, given = drawn(n=6000, q=3, of_true=0.7, of_false=0.1)
    rng = np.random.default_rng(1)
    given = np.where(label == 0, 1 + rng.binomial(4, 0.4, len(label)), given)
    found = votes.with_votes(confidence, given, label)
    blind = label == 0
    assert roc_auc_score(true[blind], found[blind]) > roc_auc_score(true[blind], given[blind]) + 0.2
    assert roc_auc_score(true[~blind], found[~blind]) > 0.95


def test_only_the_order_of_votes_counts_and_equal_ones_are_one_class():
    confidence, label, _, given = drawn()
    some = votes.with_votes(confidence, given, label)
    np.testing.assert_array_equal(votes.with_votes(confidence, given**3 / 7, label), some)
    rng = np.random.default_rng(0)
    kind = votes.classes(rng.random(1000))
    assert 4 <= kind.max() + 1 <= 2 * votes.CLASSES
    assert np.bincount(kind).min() >= votes.FEWEST
    assert len(np.unique(votes.classes(np.repeat([1, 2, 9], [500, 3, 500])))) == 2


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"shape": (2, 3)}, "votes: is 2 x 3, and must be 2 x 2"),
        ({(0, 0): 0}, "row 'a', column 'x': must be above 0, for it is a candidate, got 0"),
        ({(0, 0): np.nan}, "row 'a', column 'x': must be above 0, for it is a candidate, got nan"),
        ({(0, 1): 2}, "row 'a', column 'y': must be 0, for it is no candidate, got 2"),
        ({(1, 1): np.inf}, "row 'b', column 'y': must be above 0"),
        ({(1, 1): -1}, "row 'b', column 'y': must be above 0"),
    ],
)
def test_wrong_votes_are_told_with_row_and_column(change, told):
    candidates = np.array([[1, 0], [0, 1]])
    given = np.ones(change.pop("shape")) if "shape" in change else np.array([[3.0, 0], [np.nan, 1]])
    for place, value in change.items():
        given[place] = value
    for kind in (np.asarray, sparse.csr_array, sparse.coo_matrix):
        with pytest.raises(ParameterError, match=told):
            votes.checked(kind(given), sparse.csr_array(candidates), ["a", "b"], ["x", "y"])


def test_votes_of_many_labels_are_never_a_matrix_of_them():
    n, q = 20_000, 5000
    row, label = np.arange(n), np.arange(n) % q
    given = sparse.csr_array((1.0 + label % 3, (row, label)), shape=(n, q))
    before = memory.forget_peak()
    found = votes.checked(given, given > 0, None, None)
    assert memory.peak() - before < n * q  # a byte for each
    assert (found != given).nnz == 0
