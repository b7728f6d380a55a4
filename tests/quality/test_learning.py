import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.metrics import roc_auc_score

from wscpml.quality import learning
from wscpml.quality.decisions import Decided


@pytest.fixture
def uneven():
    """Confidences of candidates that are far too high for half of the labels; and the truth."""
    rng = np.random.default_rng(0)
    confidence = rng.uniform(0.2, 0.95, (400, 8))
    offset = np.where(np.arange(8) < 4, 0.0, -3.0)
    truth = (rng.random((400, 8)) < expit(logit(confidence) + offset)).astype(np.uint8)
    return confidence, truth


def answers(truth, count, rng):
    row, label = (x[rng.choice(truth.size, count, replace=False)] for x in np.nonzero(truth < 2))
    return Decided(row, label, truth[row, label] == 1)


def set_right(confidence, candidates, decided):
    """The same for all labels, of confidences that are the chances too."""
    of_candidates = confidence[candidates == 1]
    right = candidates.copy()
    right[candidates == 1], apart = learning.set_right(
        of_candidates, of_candidates, candidates, decided, 1.0
    )
    return right, apart


def test_without_answers_nothing_changes(uneven):
    confidence, _ = uneven
    right, apart = set_right(confidence, np.ones((400, 8)), Decided.nothing())
    np.testing.assert_array_equal(right, confidence)
    assert apart == 0


def test_a_hundred_answers_show_which_labels_are_overrated(uneven):
    confidence, truth = uneven
    decided = answers(truth, 100, np.random.default_rng(1))
    right, apart = set_right(confidence, np.ones(truth.shape), decided)
    assert apart > 0.6
    assert roc_auc_score(truth.ravel(), right.ravel()) > 0.03 + roc_auc_score(
        truth.ravel(), confidence.ravel()
    )
    gaps = [abs(each.mean(axis=0) - truth.mean(axis=0)).max() for each in (right, confidence)]
    assert gaps[0] < gaps[1] / 2


def test_where_confidences_are_right_answers_hardly_change_them():
    rng = np.random.default_rng(2)
    confidence = rng.uniform(0.05, 0.95, (400, 8))
    truth = (rng.random((400, 8)) < confidence).astype(np.uint8)
    right, _ = set_right(confidence, np.ones(truth.shape), answers(truth, 300, rng))
    before, after = (roc_auc_score(truth.ravel(), each.ravel()) for each in (confidence, right))
    assert after > before - 0.003
    assert abs(right - confidence).mean() < 0.05


def test_a_label_without_answers_follows_the_others(uneven):
    confidence, truth = uneven
    rng = np.random.default_rng(3)
    decided = answers(truth[:, 4:7], 90, rng)  # all of labels that are overrated
    right, _ = set_right(confidence[:, 4:], np.ones((400, 4)), decided)
    assert right[:, 3].mean() < confidence[:, 7].mean() - 0.2


def test_answers_of_one_kind_stay_finite():
    confidence = np.full((20, 2), 0.5)
    decided = Decided(np.arange(20), np.zeros(20, int), np.ones(20, bool))
    right, _ = set_right(confidence, np.ones((20, 2)), decided)
    assert np.isfinite(right).all()
    assert (right[:, 0] > 0.6).all()
    assert (right < 1).all()


def test_answers_on_labels_that_were_no_candidates_say_nothing_of_candidates(uneven):
    confidence, _ = uneven
    candidates = np.ones(confidence.shape)
    candidates[:, 0] = 0
    decided = Decided(np.arange(50), np.zeros(50, int), np.ones(50, bool))
    right, _ = set_right(confidence, candidates, decided)
    np.testing.assert_array_equal(right, candidates * confidence)


def test_where_no_noise_was_seen_answers_may_turn_a_guess_round():
    rng = np.random.default_rng(4)
    confidence, chance = rng.uniform(0.5, 0.95, (2, 400, 8))
    truth = (rng.random((400, 8)) < chance**3).astype(np.uint8)  # the guess has no part in it
    decided, every = answers(truth, 200, rng), np.ones(truth.shape)
    known, guessed = (
        learning.set_right(confidence.ravel(), chance.ravel(), every, decided, seen)[0]
        for seen in (1.0, 0.0)
    )
    assert roc_auc_score(truth.ravel(), guessed) > 0.05 + roc_auc_score(truth.ravel(), known)
