from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy import sparse

from tests.contract import small
from wscpml.algorithm import composition, network, ridge
from wscpml.algorithm.composition import TrainingRows
from wscpml.arrays import Array, Rows, to_unit_interval
from wscpml.parameters import (
    ClassifierSettings,
    ClusteringSettings,
    FeatureSettings,
    WeakSupervisionSettings,
)


@pytest.fixture(scope="module")
def example():
    X, _, candidates = small(n=80)
    return composition.represent(X, FeatureSettings(), np.random.default_rng(0)), candidates


def test_what_is_shared_is_made_once(monkeypatch):
    X, _, candidates = small()
    seen = []
    real = ridge.factorise
    monkeypatch.setattr(ridge, "factorise", lambda X: seen.append(len(X)) or real(X))
    rows = composition.represent(X, FeatureSettings(), np.random.default_rng(0))
    for kind in ("network", "kernel_ridge"):
        settings = ClassifierSettings(kind=kind, max_epochs=1)
        composition.train(
            rows, candidates, candidates, 0.7 * candidates, 1.0, settings, np.random.default_rng(0)
        )
    assert seen == [len(X)]


def test_rows_on_disk_are_scaled_as_they_are_taken():
    X, _, _ = small()
    on_disk = Rows(np.vstack([X, X]), np.arange(len(X)))
    whole, taken = (
        composition.represent(each, FeatureSettings(), np.random.default_rng(0))
        for each in (X, on_disk)
    )
    np.testing.assert_array_equal(whole.scaled[3:9], taken.scaled[3:9])
    np.testing.assert_array_equal(whole.mapped, taken.mapped)


def test_the_clustering_is_supervised(example):
    rows, candidates = example
    B = composition.supervise(rows.scaled, candidates, WeakSupervisionSettings(theta=0.25))
    assert set(np.unique(B)) == {0, 0.25, 1}
    found = composition.cluster(rows.scaled, candidates, B, ClusteringSettings(max_iterations=2))
    assert len(found.course) <= 2
    assert found.pseudo_labels.shape == candidates.shape


def trained(example, labels, confidence):
    rows, candidates = example
    settings = ClassifierSettings(kind="kernel_ridge", labels=labels)
    F = 0.9 * candidates
    return composition.train(
        rows, candidates, F, confidence, 1.0, settings, np.random.default_rng(0)
    )


def test_printed_labels_are_f_and_nothing_is_shifted(example):
    rows, candidates = example
    found = trained(example, "printed", 0.1 * candidates)
    expected = rows.axes.fit(candidates, 0.9 * candidates).head
    np.testing.assert_array_equal(found.head.weight, expected.weight)
    np.testing.assert_array_equal(found.head.bias, expected.bias)


def test_cleaned_labels_are_the_label_confidences_and_even_odds_move(example):
    rows, candidates = example
    confidence = candidates * np.random.default_rng(0).random(candidates.shape)
    found = trained(example, "cleaned", confidence)
    expected = rows.axes.fit(candidates * (confidence >= 0.5), confidence)
    np.testing.assert_array_equal(found.head.weight, expected.head.weight)
    even = composition.even_odds(expected.head, rows, expected, confidence)
    assert even != 0.5
    shifted = expected.head.with_even_odds_at(even)
    np.testing.assert_array_equal(found.head.bias, shifted.bias)


def test_by_their_weight_cleaned_labels_are_near_the_candidates(example):
    _, candidates = example
    np.testing.assert_array_equal(composition.cleaned(0.2 * candidates, candidates, 0), candidates)
    half = composition.cleaned(0.25 * candidates, candidates, 0.5)
    np.testing.assert_allclose(half, 0.5 * candidates)
    np.testing.assert_allclose(
        composition.cleaned(0.2 * candidates, candidates, 1), 0.2 * candidates
    )


def test_what_is_known_to_be_false_is_not_learned_at_any_weight(example):
    _, candidates = example
    for weight in (0, 0.5, 2):
        assert not composition.cleaned(0.0 * candidates, candidates, weight).any()


def test_very_many_rows_have_their_closed_form_on_some(example, monkeypatch):
    monkeypatch.setattr(network, "START_ROWS", 30)
    rows, candidates = example
    fresh = replace(rows)
    fitted = composition.closed_form(
        fresh, candidates[fresh.of_axes], 1.0 * candidates[fresh.of_axes]
    )
    assert len(fitted.left_out) == len(fresh.of_axes) < len(candidates)
    even = composition.even_odds(fitted.head, fresh, fitted, 0.6 * candidates[fresh.of_axes])
    assert 0 < even < 1


@pytest.mark.parametrize("kernel", ["laplace", "none"])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_of_all_of_very_many_rows_it_is_what_their_blocks_add_up(monkeypatch, kernel, form):
    X, _, candidates = small(n=90)
    settings = FeatureSettings(kernel=kernel)
    rows = composition.represent(X, settings, np.random.default_rng(0))
    targets = 0.9 * candidates
    monkeypatch.setattr(network, "START_ROWS", 30)
    monkeypatch.setattr(composition, "ROWS_AT_ONCE", 4)
    some = rows.of_axes
    fitted = composition.closed_form(rows, form(candidates), form(targets))
    monkeypatch.setattr(ridge, "PENALTIES", np.array([fitted.penalty]))
    expected = ridge.fit(rows.mapped, candidates, targets)
    np.testing.assert_allclose(
        fitted.head.predict_proba(rows.mapped),
        expected.head.predict_proba(rows.mapped),
        atol=1e-5,
    )
    np.testing.assert_allclose(fitted.left_out, expected.left_out[some], atol=1e-4)
    found = composition.left_out(rows, fitted, form(candidates), form(targets))
    np.testing.assert_allclose(found, expected.left_out[candidates == 1], atol=1e-4)


def test_very_many_sparse_labels_are_learned_as_dense_ones_are(monkeypatch):
    X, _, candidates = small(n=90)
    monkeypatch.setattr(network, "START_ROWS", 30)
    rows = composition.represent(X, FeatureSettings(), np.random.default_rng(0))
    confidence = candidates * np.random.default_rng(0).random(candidates.shape)
    for labels in ("cleaned", "printed"):
        settings = ClassifierSettings(kind="kernel_ridge", labels=labels)
        dense, lean = (
            composition.train(rows, *map(form, given), 1.0, settings, np.random.default_rng(0)).head
            for given in [(candidates, 0.9 * candidates, confidence)]
            for form in (np.asarray, sparse.csr_array)
        )
        np.testing.assert_allclose(lean.weight, dense.weight, atol=1e-9)
        np.testing.assert_allclose(lean.bias, dense.bias, atol=1e-9)


def test_the_threshold_is_where_the_fewest_errors_are_expected():
    scores = np.array([[0.9, 0.8], [0.3, 0.2]])
    assert composition.threshold(scores, np.array([[1, 1], [0, 0]])) == pytest.approx(0.55)
    assert composition.threshold(scores, np.array([[1, 0.9], [0.6, 0]])) == pytest.approx(0.25)


@pytest.mark.parametrize("confidence", [np.zeros((2, 2)), np.ones((2, 2))])
def test_there_is_no_threshold_where_no_label_or_every_one_is_to_be_predicted(confidence):
    assert composition.threshold(np.array([[0.9, 0.8], [0.3, 0.2]]), confidence) is None


@dataclass(frozen=True)
class Squared:
    """A head whose probabilities are those of another, squared."""

    head: composition.Head

    def predict_proba(self, X: Array) -> Array:
        return self.head.predict_proba(X) ** 2


@pytest.fixture(scope="module")
def overfitted() -> tuple[TrainingRows, Array]:
    """Labels that are mostly chance, and axes along which they can be learned by heart."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(300, 5))
    truth = (X @ rng.normal(size=(5, 4)) + 2 * rng.normal(size=(300, 4)) > 1).astype(float)
    settings = FeatureSettings(energy=1.0)
    return composition.represent(X, settings, np.random.default_rng(0)), truth


def test_even_odds_are_those_of_rows_that_are_left_out(overfitted):
    rows, truth = overfitted
    fitted = rows.axes.fit(truth, truth)
    even = composition.even_odds(fitted.head, rows, fitted, truth)
    unseen = to_unit_interval(fitted.left_out)

    def errors(level):
        return ((unseen >= level) != truth).mean()

    own = composition.threshold(fitted.head.predict_proba(rows.mapped), truth)
    assert errors(even) <= min(errors(own), *(errors(level) for level in np.arange(0, 1, 0.01)))


def test_even_odds_of_another_scale_are_at_the_same_rank(overfitted):
    rows, truth = overfitted
    fitted = rows.axes.fit(truth, truth)
    even = composition.even_odds(fitted.head, rows, fitted, truth)
    squared = composition.even_odds(Squared(fitted.head), rows, fitted, truth)
    assert squared == pytest.approx(even**2, abs=1e-3)


def test_where_nothing_is_to_be_predicted_odds_stay_as_they_are(overfitted):
    rows, truth = overfitted
    nothing = np.zeros(truth.shape)
    fitted = rows.axes.fit(truth, nothing)
    assert composition.even_odds(fitted.head, rows, fitted, nothing) == 0.5


def test_labels_that_are_mostly_noise_do_not_choose_the_penalty(overfitted):
    """A ranking by frequency suits candidates best if some are given to nearly every row."""
    rows, _ = overfitted
    rng = np.random.default_rng(5)
    X = rows.scaled
    truth = (X @ rng.normal(size=(5, 4)) > 0.5).astype(float)
    noisy = np.maximum(truth, rng.random(truth.shape) < [0.97, 0.9, 0.02, 0.02])
    confidence = np.where(truth == 1, 0.9, 0.03) * noisy
    settings = ClassifierSettings(kind="kernel_ridge", labels="cleaned")

    def agreement(weight):
        given = (noisy, confidence, confidence, weight)
        head = composition.train(rows, *given, settings, np.random.default_rng(0)).head
        scores = head.predict_proba(rows.mapped)
        return np.mean([np.corrcoef(scores[:, j], truth[:, j])[0, 1] for j in range(4)])

    assert agreement(0.9) > 0.7
    believed = noisy * (confidence >= 0.5)
    chosen = rows.axes.fit(believed, composition.cleaned(confidence, noisy, 0.9)).penalty
    by_noise = rows.axes.fit(noisy, composition.cleaned(confidence, noisy, 0.9)).penalty
    assert chosen < by_noise / 10
