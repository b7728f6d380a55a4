import numpy as np
import pytest

from wscpml.quality.noise_model import ANGLES, RATES, believed, trend


def sharp(*angles):
    """Beliefs ``(G, q)`` in one rate each, the nearest to the angle."""
    return np.eye(len(ANGLES))[:, [int(abs(ANGLES - angle).argmin()) for angle in angles]]


def foretold(beliefs, share):
    return ANGLES @ trend(beliefs, np.ones(len(share)), share)


def test_a_rate_that_rises_with_the_share_of_rows_is_foretold_by_the_other_labels():
    share = np.linspace(0.2, 1.2, 12)
    rates = 0.8 * share - 0.1
    assert foretold(sharp(*rates), share) == pytest.approx(rates, abs=0.05)


def test_what_is_foretold_of_a_label_does_not_depend_on_what_is_believed_of_it():
    share = np.linspace(0.2, 1.2, 12)
    rates = 0.8 * share
    other = rates.copy()
    other[3] = 1.2
    one, two = (trend(sharp(*each), np.ones(12), share)[:, 3] for each in (rates, other))
    np.testing.assert_allclose(one, two, atol=1e-12)


def test_rates_that_fall_with_the_share_are_no_trend():
    share = np.linspace(0.2, 1.2, 12)
    beliefs = sharp(*(0.9 - 0.5 * share))
    assert np.ptp(foretold(beliefs, share)) < 0.1


def test_a_label_alone_and_labels_of_which_nothing_is_known_foretell_nothing():
    alone = trend(sharp(0.5), np.ones(1), np.array([0.7]))
    np.testing.assert_allclose(alone, 1 / len(RATES), rtol=1e-3)
    unknown = np.full((len(RATES), 5), 1 / len(RATES))
    spread = trend(unknown, np.ones(5), np.linspace(0.2, 1.2, 5))
    assert (spread.max(axis=0) < 3 / len(RATES)).all()


def test_a_label_without_a_floor_of_its_own_is_believed_to_have_what_its_share_foretells():
    share = np.linspace(0.3, 1.3, 15)
    rates = 0.7 * share
    evidence = np.log(sharp(*rates) + 1e-6)
    evidence[:, -1] = 0.0
    found = ANGLES @ believed(evidence, np.ones(15), share, free=1.0)
    assert found[:-1] == pytest.approx(rates[:-1], abs=0.03)
    assert found[-1] == pytest.approx(rates[-1], abs=0.2)
