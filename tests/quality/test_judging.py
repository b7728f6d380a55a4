import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import roc_auc_score

from wscpml.algorithm import features, network
from wscpml.arrays import to_unit_interval
from wscpml.datasets.noise import pad_candidates
from wscpml.quality import judging


def judged(X, candidates, seed=0):
    fitted = features.fit(X, "quantile", "laplace", 5, 0.5, 0.999, rng=np.random.default_rng(0))
    scaled = fitted.scale(X)
    mapped = fitted.map_scaled(scaled)
    axes = network.principal_axes(mapped)
    return judging.assess(scaled, mapped, axes, candidates, seed)


@pytest.fixture(scope="module")
def padded():
    """Truth that the features tell well, padded with as many false labels; and what is judged."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(600, 6))
    truth = (X @ rng.normal(size=(6, 8)) + 0.3 * rng.normal(size=(600, 8)) > 1.5).astype(np.uint8)
    candidates = pad_candidates(truth, 5, rng)
    return truth, candidates, judged(X, candidates)


def test_true_candidates_are_likelier_than_false_ones(padded):
    truth, candidates, quality = padded
    chosen = candidates == 1
    assert roc_auc_score(truth[chosen], quality.confidence[chosen]) > 0.9


def test_the_chance_of_a_false_label_is_found(padded):
    truth, candidates, quality = padded
    assert quality.chance == pytest.approx(candidates[truth == 0].mean(), abs=0.05)


def test_confidences_are_probabilities(padded):
    truth, candidates, quality = padded
    likely = candidates.astype(bool) & (quality.confidence > 0.8)
    unlikely = candidates.astype(bool) & (quality.confidence < 0.2)
    assert truth[likely].mean() > 0.75
    assert truth[unlikely].mean() < 0.25


def test_noise_rates_tell_how_noisy_the_labels_are(padded):
    truth, candidates, quality = padded
    estimated = judging.noise_rates(quality.confidence, candidates)
    actual = 1 - (truth * candidates).sum(axis=0) / candidates.sum(axis=0)
    assert np.corrcoef(estimated, actual)[0, 1] > 0.8
    assert estimated.mean() == pytest.approx(actual.mean(), abs=0.1)


def test_a_label_without_candidates_has_no_noise_rate():
    candidates = np.array([[1, 0], [1, 0]])
    rates = judging.noise_rates(np.array([[0.5, 0], [1.0, 0]]), candidates)
    np.testing.assert_array_equal(rates, [0.25, np.nan])


def test_labels_off_the_candidates_have_no_confidence(padded):
    _, candidates, quality = padded
    assert (quality.confidence[candidates == 0] == 0).all()
    assert (quality.confidence[candidates == 1] > 0).all()
    assert quality.confidence.max() <= 1


def test_clean_labels_are_trusted():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(400, 5))
    truth = (X @ rng.normal(size=(5, 6)) > 1).astype(np.uint8)
    quality = judged(X, truth)
    assert quality.chance < 0.02
    assert np.median(quality.confidence[truth == 1]) > 0.95


def test_where_all_labels_are_candidates_nothing_can_be_told_and_nothing_breaks():
    X = np.random.default_rng(3).normal(size=(30, 4))
    quality = judged(X, np.ones((30, 3), np.uint8))
    assert np.isfinite(quality.confidence).all()


def test_rows_beyond_those_of_the_axes_are_judged_too(monkeypatch, padded):
    monkeypatch.setattr(network, "START_ROWS", 200)
    rng = np.random.default_rng(1)
    X = rng.normal(size=(600, 6))
    truth, candidates, _ = padded
    quality = judged(X, candidates)
    chosen = candidates == 1
    assert roc_auc_score(truth[chosen], quality.confidence[chosen]) > 0.85


@given(
    arrays(float, 30, elements=st.floats(-0.5, 1.5)),
    st.floats(0.001, 0.99),
)
def test_a_posterior_keeps_the_order_and_stays_a_probability(true, chance):
    found = judging.posterior(np.sort(true), chance)
    assert (np.diff(found) >= 0).all()
    assert ((found >= 0) & (found <= 1)).all()


def test_identification_of_noise_is_measured():
    true, sure = np.array([1, 1, 0, 0]), np.array([0.9, 0.6, 0.4, 0.1])
    found = judging.identification(true, sure)
    assert found["auc"] == found["average_precision"] == found["precision_top_5"] == 1
    assert found["calibration_error"] == pytest.approx((0.1 + 0.4 + 0.4 + 0.1) / 4)
    reversed_ = judging.identification(1 - true, sure)
    assert reversed_["auc"] == reversed_["precision_top_5"] == 0
    assert set(judging.identification(np.array([-1, -1]), sure[:2]).values()) == {None}


def test_a_posterior_is_bayes_rule():
    # 20 % true, of the others half are candidates: 0.2 / (0.2 + 0.8 * 0.5)
    assert judging.posterior(np.array([0.2]), 0.5) == pytest.approx(1 / 3)


def test_predictions_are_set_right_without_a_change_of_order():
    rng = np.random.default_rng(0)
    true = rng.random(4000)
    observed = (rng.random(4000) < true).astype(float)
    timid = 0.4 + 0.2 * true  # in the right order, but far too near to a half
    right = judging.set_right(timid, observed)
    assert abs(right - true).mean() < 0.04
    assert (np.diff(right[np.argsort(timid)]) >= 0).all()


def test_the_threshold_is_where_the_fewest_errors_are_expected():
    scores = np.array([[0.9, 0.8], [0.3, 0.2]])
    assert judging.threshold(scores, np.array([[1, 1], [0, 0]])) == pytest.approx(0.55)
    assert judging.threshold(scores, np.array([[1, 0.9], [0.6, 0]])) == pytest.approx(0.25)


@pytest.mark.parametrize("confidence", [np.zeros((2, 2)), np.ones((2, 2))])
def test_there_is_no_threshold_where_no_label_or_every_one_is_to_be_predicted(confidence):
    assert judging.threshold(np.array([[0.9, 0.8], [0.3, 0.2]]), confidence) is None


@pytest.fixture(scope="module")
def overfitted():
    """Labels that are mostly chance, and axes along which they can be learned by heart."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(300, 5))
    truth = (X @ rng.normal(size=(5, 4)) + 2 * rng.normal(size=(300, 4)) > 1).astype(float)
    fitted = features.fit(X, "quantile", "laplace", 5, 0.5, 1.0, rng=np.random.default_rng(0))
    mapped = fitted(X)
    return mapped, network.principal_axes(mapped), truth


def test_even_odds_are_those_of_rows_that_are_left_out(overfitted):
    mapped, axes, truth = overfitted
    fitted = axes.fit(truth, truth)
    even = judging.even_odds(fitted.head.predict_proba, mapped, axes, truth, truth)
    unseen = to_unit_interval(fitted.left_out)

    def errors(level):
        return ((unseen >= level) != truth).mean()

    own = judging.threshold(fitted.head.predict_proba(mapped), truth)
    assert errors(even) <= min(errors(own), *(errors(level) for level in np.arange(0, 1, 0.01)))


def test_even_odds_of_another_scale_are_at_the_same_rank(overfitted):
    mapped, axes, truth = overfitted
    head = axes.fit(truth, truth).head
    even = judging.even_odds(head.predict_proba, mapped, axes, truth, truth)
    squared = judging.even_odds(lambda X: head.predict_proba(X) ** 2, mapped, axes, truth, truth)
    assert squared == pytest.approx(even**2, abs=1e-3)


def test_where_nothing_is_to_be_predicted_odds_stay_as_they_are(overfitted):
    mapped, axes, truth = overfitted
    head = axes.fit(truth, truth).head
    nothing = np.zeros(truth.shape)
    assert judging.even_odds(head.predict_proba, mapped, axes, truth, nothing) == 0.5


def test_the_same_seed_gives_the_same_bytes(padded):
    _, candidates, _ = padded
    X = np.random.default_rng(1).normal(size=(600, 6))
    one, other = (judged(X, candidates, seed=5).confidence.tobytes() for _ in range(2))
    assert one == other
