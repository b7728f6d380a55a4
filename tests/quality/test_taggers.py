import numpy as np
import pytest
from scipy.special import expit

from wscpml import arrays, label_confidence
from wscpml.quality import given, judging, noise_model, taggers
from wscpml.quality.decisions import Decided
from wscpml.quality.judging import Opinion, identification
from wscpml.quality.taggers import believed


def example(rates, n=1500, q=8, seed=0):
    """Truth that the features tell roughly, candidates, and the chance of being one over all rows.

    Of a row's false labels a share becomes candidates, which is drawn from `rates`.
    """
    rng = np.random.default_rng(seed)
    chance = 1 / (1 + np.exp(1.5 - 2 * rng.normal(size=(n, q))))
    truth = rng.random((n, q)) < chance
    rate = rng.choice(rates, (n, 1))
    Y = (truth | (rng.random((n, q)) < rate)).astype(float)
    return truth.astype(float), Y, chance + (1 - chance) * np.mean(rates)


def learned(P, Y):
    q = Y.shape[1]
    first, heard = np.arange(q), np.ones(q)
    return taggers.learn(P, Y, noise_model.learn_others(P, Y, first, heard)[1], first, heard)


UNEVEN, EVEN = (0.02, 0.5), (0.26, 0.26)


def judge(P, Y):
    """By a predictor that tells candidates as P, and then what is true."""
    rate = np.mean(UNEVEN)

    def predict(targets, _):
        return Opinion(P if np.array_equal(targets, Y) else (P - rate) / (1 - rate))

    return judging.judge_by(predict, Y, Decided.nothing())


def test_rates_that_differ_from_row_to_row_are_found_and_others_are_not():
    for seed in range(3):
        _, Y, P = example(UNEVEN, seed=seed)
        found = learned(P, Y)
        assert found.weight == 1
        assert found.slope > 0
        _, Y, P = example(EVEN, seed=seed)
        assert learned(P, Y) is None


def test_true_labels_that_go_together_in_pairs_tell_of_no_tagger():
    rng = np.random.default_rng(0)
    one = rng.random((1500, 4)) < 0.3
    other = np.where(rng.random(one.shape) < 0.8, one, rng.random(one.shape) < 0.3)
    Y = np.hstack([one, other]).astype(float)
    P = np.full(Y.shape, 0.3)
    assert noise_model.learn_others(P, Y, np.arange(8), np.ones(8))[0] is not None
    assert learned(P, Y) is None


@pytest.mark.parametrize("rate", [0.05, 0.2, 0.3])
@pytest.mark.parametrize("deviation", [0.8, 1.2, 2.0])
def test_rows_that_truly_have_more_labels_tell_of_no_tagger(deviation, rate):
    rng = np.random.default_rng(0)
    n, q = 1500, 8
    by_features = 2 * rng.normal(size=(n, q)) - 1.5
    row = rng.normal(size=(n, 1))
    truth = rng.random((n, q)) < expit(by_features + deviation * row)
    Y = (truth | (rng.random((n, q)) < rate)).astype(float)
    places, weights = np.polynomial.hermite_e.hermegauss(21)
    p = sum(w * expit(by_features + deviation * x) for x, w in zip(places, weights, strict=True))
    P = p / weights.sum() * (1 - rate) + rate
    assert noise_model.dispersion(P, Y) > noise_model.ALONE
    assert learned(P, Y) is None


def test_a_row_of_a_careless_tagger_is_known_by_its_other_labels_alone():
    _, Y, P = example(UNEVEN)
    found = learned(P, Y)
    added = found.added(P, Y)
    many = (Y - P).sum(axis=1) > 2
    assert added[many].mean() > 0.1 > 0 > added[~many].mean()
    changed = Y.copy()
    changed[:, 3] = 1 - changed[:, 3]
    np.testing.assert_allclose(found.added(P, changed)[:, 3], added[:, 3])
    assert (found.added(P, changed)[:, 4] != added[:, 4]).all()


def test_what_is_learned_does_not_depend_on_how_rows_are_cut_into_blocks(monkeypatch):
    _, Y, P = example(UNEVEN)
    whole = learned(P, Y)
    monkeypatch.setattr(arrays, "PAIRS_AT_ONCE", 800)
    parts = learned(P, Y)
    assert (whole.slope, whole.weight) == pytest.approx((parts.slope, parts.weight))


def test_labels_of_the_same_rows_testify_once():
    _, Y, P = example(EVEN)
    Y, P = np.hstack([Y, Y[:, :1]]), np.hstack([P, P[:, :1]])
    first = np.array([*range(8), 0])
    scores = noise_model.learn_others(P, Y, first, np.ones(9))[1]
    assert taggers.learn(P, Y, scores, first, np.ones(9)) is None


def test_labels_that_are_not_heard_say_nothing_and_nothing_is_said_of_them():
    _, Y, P = example(UNEVEN)
    heard = np.array([1.0] * 6 + [0.0] * 2)
    found = taggers.learn(P, Y, P, np.arange(8), heard)
    changed = Y.copy()
    changed[:, 6:] = 1 - changed[:, 6:]
    added = found.added(P, Y)
    np.testing.assert_array_equal(found.added(P, changed), added)
    assert (added[:, 6:] == 0).all()
    assert (added[:, :6] != 0).all()


def test_odds_against_a_candidate_rise_as_many_times_as_the_rate():
    confidence = np.array([0.2, 0.5, 0.8])
    np.testing.assert_array_equal(believed(confidence, np.zeros(3), 0.2, 1.0), confidence)
    np.testing.assert_array_equal(believed(confidence, np.ones(3), 0.2, 0.0), confidence)
    np.testing.assert_allclose(
        believed(confidence, np.full(3, 0.2), 0.2, 1.0), [1 / 9, 1 / 3, 2 / 3]
    )
    far = believed(confidence, np.array([-9.0, 9.0, 9.0]), 0.2, 1.0)
    assert ((far > 0) & (far < 1)).all()


def test_tags_of_careless_rows_are_flagged_and_the_noise_is_told(monkeypatch):
    truth, Y, P = example(UNEVEN)
    found, given_one = judge(P, Y), Y == 1
    told = identification(truth[given_one], found.label_confidence[given_one])
    assert judging.UNEVEN in found.noise.told(list("abcdefgh"))
    assert found.noise.summary()["by_row"] > 0.9
    monkeypatch.setattr(taggers, "learn", lambda *_: None)
    before = judge(P, Y)
    blind = identification(truth[given_one], before.label_confidence[given_one])
    assert told["auc"] > blind["auc"] + 0.01
    assert told["calibration_error"] < blind["calibration_error"] * 2 / 3
    assert "by_row" not in before.noise.summary()


def test_so_it_is_by_probabilities_alone_and_for_rows_beyond_the_sample(monkeypatch):
    truth, Y, P = example(UNEVEN, n=3000)
    given_one = Y == 1
    whole = label_confidence(Y.astype(np.uint8), P)
    auc = identification(truth[given_one], whole[given_one])["auc"]
    monkeypatch.setattr(given, "PAIRS_LEARNED", Y.size // 2)
    half = label_confidence(Y.astype(np.uint8), P)
    assert identification(truth[given_one], half[given_one])["auc"] == pytest.approx(auc, abs=0.01)
    monkeypatch.setattr(taggers, "learn", lambda *_: None)
    blind = label_confidence(Y.astype(np.uint8), P)
    assert auc > identification(truth[given_one], blind[given_one])["auc"] + 0.01
