import numpy as np
import pytest
from scipy.special import expit

from wscpml.quality import confusion, given, judging, noise_model
from wscpml.quality.decisions import Decided
from wscpml.quality.judging import Opinion


def example(n=1500, drag=0.5, told=2.0, seed=0):
    """Truth with one of two labels at most, candidates, and the chance of being one.

    A true label drags the other in. Features tell roughly whether there is one, and how well they
    tell which one it is can be chosen. A third label has nothing to do with them.
    """
    rng = np.random.default_rng(seed)
    there, lean = rng.normal(size=(2, n))
    one = expit(2 * told * lean)
    third = expit(2 * rng.normal(size=n) - 1)
    chance = np.column_stack([expit(2 * there) * one, expit(2 * there) * (1 - one), third])
    is_one, is_there = rng.random(n) < one, rng.random(n) < expit(2 * there)
    truth = np.column_stack([is_there & is_one, is_there & ~is_one, rng.random(n) < third])
    twin = truth[:, [1, 0, 2]] & (rng.random((n, 3)) < [drag, drag, 0])
    P = chance + drag * np.column_stack([chance[:, 1], chance[:, 0], np.zeros(n)])
    return truth.astype(float), (truth | twin).astype(float), np.clip(P, 0, 1)


def belonging(n=1500, seed=0):
    """Two labels that belong together where the features lean to neither."""
    rng = np.random.default_rng(seed)
    there, lean = rng.normal(size=(2, n))
    here = expit(2 * there)
    P = here[:, None] * np.column_stack([lean > -0.7, lean < 0.7])
    return ((rng.random(n) < here)[:, None] & (P > 0)).astype(float), P


def judge(P, Y):
    return judging.judge_by(lambda *_: Opinion(P), Y, Decided.nothing())


def test_labels_that_are_taken_for_each_other_are_found():
    truth, Y, P = example()
    (pair,) = confusion.confused(P, Y)
    assert pair.labels == (0, 1)
    assert pair.sure > 0.95
    np.testing.assert_array_equal(pair.rows, np.flatnonzero((Y[:, 0] == 1) & (Y[:, 1] == 1)))
    assert pair.only.sum(axis=0).max() <= 1 + 1e-9
    assert abs(pair.only.mean(axis=1) - 0.5).max() < 0.15  # each is as often the true one
    assert (truth[pair.rows, 0] == (pair.only[0] > pair.only[1])).mean() > 0.8


def test_the_one_that_was_dragged_in_is_called_wrong_and_one_without_its_twin_is_not():
    truth, Y, P = example()
    found = judge(P, Y)
    wrong, flagged = (Y == 1) & (truth == 0), (Y == 1) & (found.label_confidence < 0.5)
    assert (wrong & flagged).sum() / flagged.sum() > 0.75
    assert (wrong & flagged).sum() / wrong.sum() > 0.6
    assert not flagged[:, 2].any()
    alone = Y[:, 0] + Y[:, 1] == 1
    assert not flagged[alone].any()
    assert found.noise.kind == "pairs"
    assert found.noise.weight > 0.5  # what is trained on follows
    told = found.noise.told(["rock", "metal", "loud"])
    assert "'rock', 'metal': taken for each other: rows with both look like rows with only" in (
        " ".join(told)
    )
    assert any(line.startswith("no other noise can be seen") for line in told)


def test_rows_with_both_that_features_foretell_were_not_dragged_in():
    """Of confused labels more rows have both than each one's predictions make likely."""
    _, Y, P = example(n=20_000)
    both, expected = (Y[:, 0] * Y[:, 1]).sum(), (P[:, 0] * P[:, 1]).sum()
    beyond = confusion._beyond_features(P[:, 0], P[:, 1], 0.5, 0.5)
    assert beyond == pytest.approx(both - expected, rel=0.1)
    often = np.full(1000, 0.7)
    assert confusion._beyond_features(often, often, 0.25, 0.25) < 0


@pytest.mark.parametrize("seed", range(3))
def test_without_confusion_nothing_is_found(seed):
    truth, _, P = example(drag=0.0, seed=seed)
    assert not confusion.confused(P, truth)


@pytest.mark.parametrize("seed", range(3))
def test_labels_that_belong_together_are_left_alone(seed):
    Y, P = belonging(seed=seed)
    R = Y - P
    assert np.corrcoef(R.T)[0, 1] > 0.3  # they do go together
    assert not confusion.confused(P, Y)


def test_where_the_features_do_not_tell_them_apart_a_person_is_asked():
    _, Y, P = example(told=0.2)
    (pair,) = confusion.confused(P, Y)
    assert pair.sure == 0
    found = judge(P, Y)
    assert not (found.label_confidence[Y == 1] < 0.5).any()
    assert any("go together more than the features" in text.text for text in found.noise.warnings)
    assert found.noise.kind == "none seen"


def test_its_twin_is_no_evidence_of_a_label():
    _, Y, P = example()
    seen = noise_model.fit(P, Y)
    assert seen.model.confused
    np.testing.assert_allclose(seen.scores[:, :2], P[:, :2], atol=0.03)


def test_given_probabilities_show_the_same():
    _, Y, P = example()
    (pair,) = confusion.confused(P, Y)
    confidence = given.label_confidence(Y, P)
    lost = confidence[pair.rows, 0] < 0.5
    assert (pair.only[1][lost] > pair.only[0][lost]).mean() > 0.9
    assert 0.2 < lost.mean() < 0.8


def test_other_rows_lose_as_much_as_those_that_were_looked_at():
    _, Y, P = example()
    pairs = confusion.confused(P, Y)
    row, label = np.nonzero(Y)
    whole = np.ones(Y.shape)
    whole[row, label] = confusion.kept(pairs, row, label)
    assert whole.min() < 0.5
    np.testing.assert_allclose(confusion.left(pairs, P, Y), whole, atol=0.01)


def test_few_and_equal_columns_do_no_harm():
    Y = np.tile([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0]], (20, 1))
    assert all(pair.sure < 0.5 for pair in confusion.confused(np.full(Y.shape, 0.5), Y))
    same = np.repeat(np.eye(2)[[0, 1] * 20][:, :1], 2, axis=1)
    assert not confusion.confused(np.full(same.shape, 0.5), same)
