import numpy as np
import pytest

from tests.conftest import Tiny
from wscpml.algorithm import network
from wscpml.datasets.noise import pad_candidates
from wscpml.methods.ablation import NC, ND, NWS
from wscpml.methods.br import BR
from wscpml.methods.wsc_pml import AsPrinted


@pytest.fixture(scope="module")
def data():
    X, truth = Tiny().data.features, Tiny().data.truth
    return X, pad_candidates(truth, 2, np.random.default_rng(0))


def few_epochs(kind, **settings):
    return kind(random_state=0, max_epochs=3, **settings)


def test_no_clustering_is_the_network_on_the_candidates(data):
    X, Y = data
    scores = [few_epochs(kind).fit(X, Y).predict_proba(X) for kind in (NC, BR)]
    np.testing.assert_array_equal(*scores)


def test_without_decomposition_the_pseudo_labels_of_a_row_share_one(data):
    F = few_epochs(ND).fit(*data).pseudo_labels_
    np.testing.assert_allclose(F.sum(axis=1), 1, rtol=1e-6)
    assert not F[data[1] == 0].any()


def test_without_weak_supervision_beta_changes_nothing_and_distance_alone_lowers_f(data):
    F, same, supervised = (
        few_epochs(kind, beta=beta).fit(*data).pseudo_labels_
        for kind, beta in ((NWS, 10.0), (NWS, 0.1), (AsPrinted, 10.0))
    )
    np.testing.assert_array_equal(F, same)
    given = data[1] == 1
    assert (F[given] < 1).all()
    assert (supervised - F).min() > -1e-6


@pytest.mark.parametrize(("kind", "searched"), [(AsPrinted, 25), (ND, 5), (NWS, 5), (NC, 1)])
def test_every_point_of_the_grid_scores_as_a_fit_of_its_own(data, kind, searched):
    X, Y = data
    found = few_epochs(kind).score_grid(X[:40], Y[:40], X[40:])
    assert len(found) == searched
    assert len({tuple(each.settings.items()) for each in found}) == searched
    for each in (found[0], found[-1]):
        alone = few_epochs(kind, **each.settings).fit(X[:40], Y[:40])
        np.testing.assert_allclose(each.probabilities, alone.predict_proba(X[40:]), atol=1e-5)
        np.testing.assert_array_equal(each.labels, alone.predict(X[40:]))


def test_points_with_the_same_pseudo_labels_are_trained_once(data, monkeypatch):
    problems = []

    def note(some, **settings):
        problems.extend(some)
        return fit_all(some, **settings)

    fit_all = network.fit_all
    monkeypatch.setattr(network, "fit_all", note)
    found = few_epochs(AsPrinted).score_grid(*data, data[0])
    assert len(problems) < 25
    all_at_one = [each.probabilities for each in found if each.settings["beta"] == 100]
    for scores in all_at_one[1:]:
        np.testing.assert_array_equal(scores, all_at_one[0])


def test_the_criterion_needs_no_truth_and_tells_settings_apart(data):
    found = few_epochs(AsPrinted).score_grid(*data, data[0][:1])
    criteria = [each.criterion for each in found]
    assert len(set(criteria)) > 3
    assert 0.5 < min(criteria) < max(criteria) < 1
    (plain,) = few_epochs(BR).score_grid(*data, data[0][:1])
    assert plain.criterion is None
