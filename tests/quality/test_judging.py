import pickle
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse
from sklearn.metrics import roc_auc_score

from tests.contract import small
from wscpml.algorithm import composition, features, network
from wscpml.blocks import Engine
from wscpml.datasets.noise import pad_candidates
from wscpml.parameters import FeatureSettings
from wscpml.quality import forests, judging, logistic, noise_model, votes
from wscpml.quality.decisions import Decided


@pytest.fixture(scope="module", autouse=True)
def fewer_trees():
    """A quarter of the trees: these data are easily told."""
    with patch.object(judging, "TREES", 100):
        yield


def judged(X, candidates, seed=0, decided=None):
    rows = composition.represent(X, FeatureSettings(), np.random.default_rng(0))
    return judging.judge(rows, candidates, np.random.default_rng(seed), decided)


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
    assert roc_auc_score(truth[chosen], quality.label_confidence[chosen]) > 0.9


def test_the_chance_of_a_false_label_is_found(padded):
    truth, candidates, quality = padded
    assert quality.noise.kind == "common"
    assert quality.noise.dispersion < 0.2  # rows are padded
    assert quality.noise.chances == pytest.approx(candidates[truth == 0].mean(), abs=0.1)


def test_confidences_are_probabilities(padded):
    truth, candidates, quality = padded
    likely = candidates.astype(bool) & (quality.label_confidence > 0.8)
    unlikely = candidates.astype(bool) & (quality.label_confidence < 0.2)
    assert truth[likely].mean() > 0.75
    assert truth[unlikely].mean() < 0.25


def test_noise_rates_tell_how_noisy_the_labels_are(padded):
    truth, candidates, quality = padded
    estimated = quality.noise.rates
    actual = 1 - (truth * candidates).sum(axis=0) / candidates.sum(axis=0)
    assert np.corrcoef(estimated, actual)[0, 1] > 0.8
    assert estimated.mean() == pytest.approx(actual.mean(), abs=0.1)


def test_a_label_without_candidates_has_no_noise_rate():
    candidates = np.array([[1, 0], [1, 0]])
    rates = judging.noise_rates(np.array([[0.5, 0], [1.0, 0]]), candidates)
    np.testing.assert_array_equal(rates, [0.25, np.nan])


def test_what_is_decided_is_certain_whether_it_was_a_candidate_or_not(monkeypatch):
    monkeypatch.setattr(judging, "TREES", 20)
    X, _, candidates = small()
    (given, other), (absent, label) = (
        np.argwhere(candidates == 1)[0],
        np.argwhere(candidates == 0)[0],
    )
    decided = Decided(np.array([given, absent]), np.array([other, label]), np.array([False, True]))
    found = judged(X, candidates, decided=decided).label_confidence
    assert found[given, other] == 0
    assert found[absent, label] == 1
    nothing = Decided(np.array([], int), np.array([], int), np.array([], bool))
    np.testing.assert_array_equal(
        judged(X, candidates, decided=nothing).label_confidence,
        judged(X, candidates).label_confidence,
    )


def test_labels_off_the_candidates_have_no_confidence(padded):
    _, candidates, quality = padded
    assert (quality.label_confidence[candidates == 0] == 0).all()
    assert (quality.label_confidence[candidates == 1] > 0).all()
    assert quality.label_confidence.max() <= 1


def test_clean_labels_are_trusted():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(400, 5))
    truth = (X @ rng.normal(size=(5, 6)) > 1).astype(np.uint8)
    quality = judged(X, truth)
    assert (quality.label_confidence[truth == 1] < 0.5).mean() < 0.02


@pytest.mark.parametrize("n", [10, 60, 300])
@pytest.mark.parametrize("d", [2, 500])
def test_without_noise_hardly_any_tag_is_flagged(n, d):
    rng = np.random.default_rng(n + d)
    X = rng.normal(size=(n, d))
    truth = (X[:, :2] @ rng.normal(size=(2, 5)) > 0.5).astype(np.uint8)
    confidence = judged(X, truth).label_confidence[truth == 1]
    assert (confidence < 0.5).mean() <= 0.05


@pytest.mark.parametrize(
    ("seen", "answers", "told"),
    [
        (0.0, 0, "nothing is called wrong"),
        (0.3, 0, "hardly anything is called wrong"),
        (0.0, 40, "only decisions call anything wrong"),
    ],
)
def test_what_is_called_wrong_where_no_noise_is_seen_is_told(monkeypatch, seen, answers, told):
    monkeypatch.setattr(judging.noise_model, "seen_noise", lambda _: seen)
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(60, 6)), (rng.random((60, 5)) < 0.4).astype(np.uint8)
    row, label = (each[:answers] for each in np.nonzero(Y))
    decided = Decided(row, label, np.zeros(answers, bool))
    rows = composition.represent(X, FeatureSettings(), np.random.default_rng(0))
    found = judging.judge(rows, Y, np.random.default_rng(0), decided)
    (said,) = (line for line in found.noise.told(list("abcde")) if "can be seen" in line)
    assert said.endswith(f"; {told}")
    rest = found.label_confidence[decided.undecided(Y) == 1]
    assert (rest < 0.5).any() == (not told.startswith("nothing"))


def test_labels_that_no_row_of_the_sample_has_are_not_given_to_the_same_rows():
    Y = np.zeros((6, 4))
    Y[:, 0], Y[:3, 1], Y[:3, 2] = 1, 1, 1
    groups, first = noise_model.alike(np.hstack([Y, np.zeros((6, 2))]))
    assert groups == [[1, 2]]
    assert first.tolist() == [0, 1, 1, 3, 4, 5]


def test_what_a_checkpoint_keeps_of_missing_labels_is_not_changed():
    kept = np.array([[0.0, 0.4], [0.3, 0.0]])
    found = judging._Absent(np.array([[0, 1], [1, 2]], np.int32), kept.copy(), np.zeros(2))
    candidates = sparse.csr_array(np.array([[0, 0, 1], [1, 0, 0]], np.uint8))
    live, nobody = np.arange(3), Decided.nothing()
    missing, _ = judging._all_missing(found, candidates, live, 0.1, nobody)
    assert missing.toarray().tolist() == [[0, 0.4, 0], [0, 0.3, 0]]
    missing.data[:] = 9
    np.testing.assert_array_equal(found.probability, kept)


def test_random_features_say_nothing_and_that_is_told():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(200, 6)), (rng.random((200, 5)) < 0.4).astype(np.uint8)
    found = judged(X, Y)
    assert found.noise.kind == "none seen"
    assert (found.label_confidence[Y == 1] >= 0.5).all()
    assert any("no noise can be seen" in line for line in found.noise.told(list("abcde")))


@pytest.fixture(scope="module")
def uneven():
    """Labels that the features tell, each with a rate of false positives of its own."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(900, 6))
    truth = (X @ rng.normal(size=(6, 6)) > 1).astype(np.uint8)
    chances = np.array([0.02, 0.1, 0.2, 0.4, 0.6, 0.8])
    candidates = np.maximum(truth, rng.random(truth.shape) < chances).astype(np.uint8)
    return X, truth, candidates, chances


def test_rates_that_differ_from_label_to_label_are_found(uneven):
    X, truth, candidates, chances = uneven
    found = judged(X, candidates)
    noise, chosen = found.noise, candidates == 1
    assert noise.kind == "per label"
    np.testing.assert_allclose(noise.chances, chances, atol=0.12)
    assert roc_auc_score(truth[chosen], found.label_confidence[chosen]) > 0.9
    false = 1 - (truth * candidates).sum(axis=0) / candidates.sum(axis=0)
    assert ((noise.lower <= false) & (false <= noise.upper)).sum() >= 5


@pytest.mark.parametrize("count", [1, 25])
def test_labels_that_occur_once_or_twice_change_no_other_label(uneven, count):
    X, _, candidates, _ = uneven
    rng = np.random.default_rng(0)
    rare = np.zeros((len(X), count), np.uint8)
    for j in range(count):
        rare[rng.choice(len(X), 1 + j % 2, replace=False), j] = 1
    alone = judged(X, candidates).label_confidence
    together = judged(X, np.hstack([candidates, rare]))
    assert abs(together.label_confidence[:, :6] - alone).max() < 0.02
    assert (together.label_confidence[:, 6:][rare == 1] >= 0.5).all()
    told = together.noise.told([*"abcdef", *map(str, range(count))])
    assert any("not judged, fewer than 3 candidates" in line for line in told)


def test_labels_that_cannot_be_told_apart_are_named(uneven):
    X, _, candidates, _ = uneven
    twins = np.hstack([candidates, candidates[:, :1]])
    told = judged(X, twins).noise.told(["rock", *"bcdef", "metal"])
    assert (
        "'rock', 'metal': given to the same rows; which of them is wrong, only a person can say"
        in told
    )


ODD = {
    "all candidates of a label true": lambda Y: np.hstack([Y, np.ones_like(Y[:, :1])]),
    "a label with three candidates": lambda Y: np.hstack([Y, (np.arange(len(Y)) < 3)[:, None]]),
    "two identical columns": lambda Y: np.hstack([Y, Y[:, :1]]),
    "every row the same labels": lambda Y: np.tile(Y[:1], (len(Y), 1)),
    "one label": lambda Y: Y[:, :1],
    "no label": lambda Y: 0 * Y,
    "every label everywhere": np.ones_like,
    "many labels that occur once": lambda Y: np.hstack([Y, np.eye(len(Y), 200, dtype=Y.dtype)]),
}


@pytest.mark.parametrize("odd", ODD)
def test_odd_labels_have_finite_confidences_and_intervals(monkeypatch, odd):
    monkeypatch.setattr(judging, "TREES", 30)
    rng = np.random.default_rng(3)
    X = rng.normal(size=(120, 4))
    Y = ODD[odd]((X[:, :3] > rng.normal(size=3)).astype(np.uint8)).astype(np.uint8)
    found = judged(X, Y)
    assert np.isfinite(found.label_confidence).all()
    assert ((found.label_confidence > 0) == (Y == 1)).all()
    assert found.label_confidence.max() <= 1
    noise, given_ = found.noise, Y.any(axis=0)
    assert np.isfinite(noise.rates[given_]).all()
    assert (noise.lower[given_] <= noise.rates[given_] + 1e-9).all()
    assert (noise.rates[given_] <= noise.upper[given_] + 1e-9).all()
    assert 0 <= noise.weight <= 4


def test_rows_beyond_those_of_the_axes_are_judged_too(monkeypatch, padded):
    monkeypatch.setattr(network, "START_ROWS", 200)
    rng = np.random.default_rng(1)
    X = rng.normal(size=(600, 6))
    truth, candidates, _ = padded
    quality = judged(X, candidates)
    chosen = candidates == 1
    assert roc_auc_score(truth[chosen], quality.label_confidence[chosen]) > 0.85


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


def test_predictions_are_calibrated_without_a_change_of_order():
    rng = np.random.default_rng(0)
    true = rng.random(4000)
    observed = (rng.random(4000) < true).astype(float)
    timid = 0.4 + 0.2 * true  # in the right order, but far too near to a half
    right = judging.calibrate(timid[:, None], observed[:, None], np.ones(1))(timid)
    assert abs(right - true).mean() < 0.04
    assert (np.diff(right[np.argsort(timid)]) >= 0).all()


def test_the_same_seed_gives_the_same_bytes(padded):
    _, candidates, _ = padded
    X = np.random.default_rng(1).normal(size=(600, 6))
    one, other = (judged(X, candidates, seed=5).label_confidence.tobytes() for _ in range(2))
    assert one == other


def test_decisions_are_certain_and_teach_about_the_rest(monkeypatch, uneven):
    monkeypatch.setattr(judging, "TREES", 60)
    X, truth, candidates, _ = uneven
    # labels that are given to the same rows as others: which is false, only answers tell
    false = truth[:, [1, 2]] * (np.arange(len(X)) % 2)[:, None]
    candidates = np.hstack([truth, false]).astype(np.uint8)
    truth = np.hstack([truth, 0 * false]).astype(np.uint8)
    row, label = np.nonzero(candidates)
    some = np.random.default_rng(0).choice(len(row), 120, replace=False)
    decided = Decided(row[some], label[some], truth[row[some], label[some]] == 1)
    rows = composition.represent(X, FeatureSettings(), np.random.default_rng(0))
    before, after = (
        judging.judge(rows, candidates, np.random.default_rng(0), each) for each in (None, decided)
    )
    known = decided.among(candidates.shape)
    np.testing.assert_array_equal(after.label_confidence[known], truth[known])
    rest = (candidates == 1) & ~known
    scores = [roc_auc_score(truth[rest], each.label_confidence[rest]) for each in (before, after)]
    assert scores[1] > max(scores[0], 0.99)
    assert after.noise.weight > 0.3
    assert (after.noise.upper - after.noise.lower)[6:].max() < 0.9


def test_a_label_that_was_missing_and_is_decided_is_a_candidate_from_then_on(padded):
    truth, candidates, _ = padded
    X = np.random.default_rng(1).normal(size=(600, 6))
    missing = np.argwhere(candidates == 0)[:3]
    decided = Decided(missing[:, 0], missing[:, 1], np.array([True, True, False]))
    rows = composition.represent(X, FeatureSettings(), np.random.default_rng(0))
    found = judging.judge(rows, candidates, np.random.default_rng(0), decided).label_confidence
    assert found[tuple(missing.T)].tolist() == [1, 1, 0]


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_labels_that_a_person_adds_do_not_lift_the_tags_that_were_there(padded, form):
    truth, candidates, _ = padded
    X = np.random.default_rng(1).normal(size=(600, 6))
    row, label = (each[::12][:60] for each in np.nonzero(truth))
    lacking = candidates.copy()
    lacking[row, label] = 0
    added = Decided(row, label, np.ones(len(row), bool))
    before, after = (judged(X, form(lacking), decided=each) for each in (None, added))
    there = np.nonzero(lacking)
    lifted = after.label_confidence[there] - before.label_confidence[there]
    assert abs(lifted.mean()) < 0.02
    assert after.noise.weight == pytest.approx(before.noise.weight, abs=0.05)


def test_no_decisions_give_what_no_argument_gives(padded):
    _, candidates, quality = padded
    X = np.random.default_rng(1).normal(size=(600, 6))
    rows = composition.represent(X, FeatureSettings(), np.random.default_rng(0))
    nothing = Decided.nothing()
    found = judging.judge(rows, candidates, np.random.default_rng(0), nothing).label_confidence
    alone = judging.judge(rows, candidates, np.random.default_rng(0)).label_confidence
    assert found.tobytes() == alone.tobytes()


def test_rows_beyond_the_sample_are_judged_as_well_and_sparse_labels_as_dense_ones(monkeypatch):
    monkeypatch.setattr(judging, "TREES", 60)
    X, truth, candidates = small(n=240)
    whole = judged(X, candidates).label_confidence
    monkeypatch.setattr(network, "START_ROWS", 120)
    monkeypatch.setattr(judging, "ROWS_AT_ONCE", 50)
    found = judged(X, candidates).label_confidence
    assert not found[candidates == 0].any()
    sparse_found = judged(X, sparse.csr_array(candidates)).label_confidence
    np.testing.assert_array_equal(sparse_found.toarray(), found)
    assert sparse_found.nnz == candidates.sum()
    true = truth[candidates == 1]
    ours, all_at_once = (roc_auc_score(true, each[candidates == 1]) for each in (found, whole))
    assert ours > all_at_once - 0.05


def test_of_two_predictors_the_better_one_has_the_greater_share():
    targets = np.array([[0.0, 1.0], [1.0, 0.0]])
    one, other = np.full((2, 2), 0.5), targets + np.array([[0.1, 0.1], [-0.1, -0.1]])
    share = judging.best_share(one, other, targets)
    shares = np.linspace(0, 1, 1001)
    errors = [((targets - judging.mixed(one, other.copy(), each)) ** 2).sum() for each in shares]
    assert share == pytest.approx(shares[np.argmin(errors)], abs=1e-3)
    assert judging.best_share(targets, other, targets) == 0
    assert judging.best_share(other, targets, targets) == 1
    assert judging.best_share(one, one, targets) == 0.5


def test_of_very_many_rows_predictors_count_as_far_as_they_predict(monkeypatch):
    monkeypatch.setattr(judging, "TREES", 30)
    monkeypatch.setattr(network, "START_ROWS", 1000)
    monkeypatch.setattr(features, "FEWEST_ANCHORS", 100)
    monkeypatch.setattr(features, "MOST_ANCHORS", 100)
    monkeypatch.setattr(logistic, "MOST_WEIGHTS", 0)  # ridge and forest alone
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 30))
    scores, truth = X @ rng.normal(size=(30, 80)), np.zeros((1200, 80), np.uint8)
    np.put_along_axis(truth, np.argsort(-scores, axis=1)[:, :3], 1, axis=1)
    candidates = truth | (rng.random(truth.shape) < 0.03)

    def told():
        given_one = candidates == 1
        found = judged(X, candidates).label_confidence
        return judging.identification(truth[given_one], found[given_one])

    both = told()
    with monkeypatch.context() as half:
        half.setattr(judging, "best_share", lambda *_: 0.5)
        assert both["auc"] > told()["auc"] + 0.005
    again = judging._second_round
    with monkeypatch.context() as as_it_is:
        as_it_is.setattr(
            judging,
            "_second_round",
            lambda learned, *rest: again(replace(learned, again=np.asarray), *rest),
        )
        raw = told()
        assert both["auc"] > raw["auc"]
        assert both["calibration_error"] < raw["calibration_error"]


@pytest.mark.parametrize("start", [300, 240])
def test_of_sparse_labels_the_likeliest_few_of_each_row_may_be_missing(monkeypatch, start):
    monkeypatch.setattr(judging, "TREES", 60)
    monkeypatch.setattr(network, "START_ROWS", start)
    monkeypatch.setattr(judging, "ROWS_AT_ONCE", 50)
    X, truth, candidates = small(n=300, q=8)
    lost = (truth == 1) & (np.random.default_rng(0).random(truth.shape) < 0.3)
    candidates = np.where(lost, 0, candidates)
    rows = composition.represent(X, FeatureSettings(), np.random.default_rng(0))
    decided = Decided(np.array([0, 1]), np.array([2, 3]), np.array([True, False]))

    def of(Y):
        return judging.judge(rows, Y, np.random.default_rng(0), decided, complete=False)

    whole, absent = of(candidates), candidates == 0
    every = of(sparse.csr_array(candidates))  # ten of eight
    np.testing.assert_array_equal(every.missing.toarray(), whole.missing)
    np.testing.assert_array_equal(every.label_confidence.toarray(), whole.label_confidence)
    assert every.noise.missing == pytest.approx(whole.noise.missing)
    assert whole.noise.missing == pytest.approx(whole.missing.sum())
    monkeypatch.setattr(judging, "MOST_MISSING", 2)
    few = of(sparse.csr_array(candidates))
    assert few.missing.sum(axis=1).max() > 0
    assert np.diff(few.missing.indptr).max() <= 2
    assert few.missing[[0, 1], [2, 3]].sum() == 0
    assert few.noise.missing == pytest.approx(whole.noise.missing, rel=0.2)
    ours, all_of_them = (
        truth[absent][np.argsort(-each[absent])[:60]].mean()
        for each in (few.missing.toarray(), whole.missing)
    )
    assert ours > all_of_them - 0.1
    assert ours > 3 * truth[absent].mean()


def test_votes_of_sparse_labels_count_as_those_of_dense_ones(monkeypatch):
    monkeypatch.setattr(judging, "TREES", 60)
    X, truth, candidates = small(n=240)
    rng = np.random.default_rng(0)
    given = candidates * (1.0 + rng.binomial(4, np.where(truth == 1, 0.7, 0.2)))
    rows = composition.represent(X, FeatureSettings(), np.random.default_rng(0))

    def of(Y, said):
        said = None if said is None else votes.checked(said, Y, None, None)
        return judging.judge(rows, Y, np.random.default_rng(0), votes=said).label_confidence

    dense, alone = of(candidates, given), of(candidates, None)
    found = of(sparse.csr_array(candidates), sparse.csr_array(given))
    np.testing.assert_array_equal(found.toarray(), dense)
    true = truth[candidates == 1]
    told, untold = (roc_auc_score(true, each[candidates == 1]) for each in (dense, alone))
    assert told > untold


def test_many_labels_split_by_sums_and_leaves_have_their_means():
    rng = np.random.default_rng(0)
    X, targets = rng.normal(size=(80, 4)), (rng.random((80, 100)) < 0.05).astype(float)
    forest, unseen = forests.grow(X, targets, seed=0, trees=20, leaf=3)
    assert unseen.shape == forest.predict(X).shape == targets.shape
    leaf = forest.leaves(X)[:, 0]
    assert forest.means[leaf[0]].sum() <= targets.sum(axis=1).max()
    seen, left_out = (
        np.corrcoef(each.ravel(), targets.ravel())[0, 1] for each in (forest.predict(X), unseen)
    )
    assert seen > left_out + 0.2


def test_what_is_sent_to_workers_does_not_grow_with_the_rows(monkeypatch):
    monkeypatch.setattr(judging, "TREES", 10)
    monkeypatch.setattr(judging, "LEAST_SHARE", 0)  # all predictors are kept
    monkeypatch.setattr(network, "START_ROWS", 60)
    monkeypatch.setattr(features, "FEWEST_ANCHORS", 50)
    monkeypatch.setattr(features, "MOST_ANCHORS", 50)
    sent = []

    class Told(Engine):
        def over(self, work, blocks, need, what):
            if what == "judging":
                predictors = work.learned.predictors  # one, or two where noise is seen
                sent.append(len(pickle.dumps(predictors)) / len(predictors))
                anchors = work.feature_map.anchors.nbytes
                assert len(pickle.dumps(work.feature_map)) < 1.1 * anchors + 2000
            return super().over(work, blocks, need, what)

    for n in (240, 960):
        X, _, candidates = small(n=n)
        rows = composition.represent(X, FeatureSettings(), np.random.default_rng(0))
        rows = replace(rows, engine=Told())
        judging.judge(rows, candidates, np.random.default_rng(0))
    first, second = sent
    assert second < 1.3 * first
