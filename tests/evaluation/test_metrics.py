import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import coverage_error, label_ranking_average_precision_score

from tests.strategies import label_matrices
from wscpml.evaluation import metrics


def ranks(scores):
    """Rank 1 is best; among equal scores the higher label index is better."""
    q = len(scores)
    order = sorted(range(q), key=lambda j: (scores[j], j), reverse=True)
    return {j: position + 1 for position, j in enumerate(order)}


def reference(truth, scores, threshold):
    """The definitions, one row and one label at a time."""
    n, q = truth.shape
    ap, rl, oe, cov, wrong = [], [], [], [], 0
    for t, s in zip(truth, scores, strict=True):
        relevant = [j for j in range(q) if t[j]]
        irrelevant = [j for j in range(q) if not t[j]]
        rank = ranks(s)
        cov.append(max((rank[j] for j in relevant), default=0) - 1)
        wrong += sum((s[j] >= threshold) != t[j] for j in range(q))
        if not relevant or not irrelevant:
            continue
        ap.append(np.mean([sum(rank[k] <= rank[j] for k in relevant) / rank[j] for j in relevant]))
        errors = sum(s[r] <= s[i] for r in relevant for i in irrelevant)
        rl.append(errors / len(relevant) / len(irrelevant))
        oe.append(not any(s[j] == max(s) for j in relevant))
    return {
        "average_precision": np.mean(ap) if ap else None,
        "ranking_loss": np.mean(rl) if rl else None,
        "one_error": np.mean(oe) if oe else None,
        "coverage": np.mean(cov) / q,
        "hamming_loss": wrong / n / q,
    }


@given(label_matrices(), st.integers(0, 2**32 - 1), st.booleans())
def test_metrics_equal_a_slow_literal_reference(truth, seed, with_ties):
    scores = np.random.default_rng(seed).random(truth.shape)
    if with_ties:
        scores = scores.round(1)
    found = metrics.evaluate(truth, scores, scores >= 0.5)
    assert found == pytest.approx(reference(truth, scores, 0.5))


def test_where_the_field_departs_from_scikit_learn():
    truth = np.array([[0, 0, 0], [1, 0, 1]])
    scores = np.array([[0.3, 0.2, 0.1], [0.9, 0.8, 0.1]])
    found = metrics.evaluate(truth, scores, scores >= 0.5)
    # scikit-learn counts the row without labels as perfect; the field leaves it out.
    assert label_ranking_average_precision_score(truth, scores) == pytest.approx((1 + 5 / 6) / 2)
    assert found["average_precision"] == pytest.approx(5 / 6)
    # scikit-learn's coverage is neither reduced by one nor divided by the number of labels.
    assert coverage_error(truth, scores) == pytest.approx((0 + 3) / 2)
    assert found["coverage"] == pytest.approx((-1 + 2) / 2 / 3)


def test_among_equal_scores_the_higher_label_index_ranks_first():
    equal = np.full((1, 2), 0.5)
    assert metrics.average_precision(np.array([[0, 1]]), equal) == 1
    assert metrics.average_precision(np.array([[1, 0]]), equal) == 0.5
    assert metrics.evaluate(np.array([[0, 1]]), equal, equal >= 0.5)["ranking_loss"] == 1
    assert metrics.one_error(np.array([[1, 0]]), equal) == 0


def test_what_cannot_be_measured_is_none():
    nothing = metrics.evaluate(np.zeros((0, 3), int), *np.zeros((2, 0, 3)))
    assert set(nothing.values()) == {None}
    only_full = metrics.evaluate(np.ones((2, 3), int), *np.ones((2, 2, 3)))
    assert only_full["average_precision"] is None
    assert only_full["hamming_loss"] == 0


def test_average_precision_per_label_is_nan_where_no_row_has_the_label():
    truth = np.array([[1, 0], [0, 0]])
    scores = np.array([[0.2, 0.5], [0.8, 0.5]])
    np.testing.assert_array_equal(metrics.label_average_precision(truth, scores), [0.5, np.nan])


def test_noise_auc_is_one_for_a_perfect_score_and_none_without_noise():
    true = np.array([1, 1, 0])
    assert metrics.noise_auc(true, np.array([0.9, 0.8, 0.1])) == 1
    assert metrics.noise_auc(np.ones(3), np.arange(3)) is None


def test_histogram_shares_sum_to_one_and_values_above_one_count_as_one():
    true = np.array([1, 1, 0, 0])
    table = metrics.candidate_histogram(true, {"F": np.array([0.0, 1.0, 2.0, 0.55])}, bins=10)
    assert table.columns.tolist() == ["value", "F_true", "F_false", "F_unknown"]
    assert table.F_true.tolist() == [0.5, *[0] * 8, 0.5]
    assert table.F_false.tolist() == [*[0] * 5, 0.5, *[0] * 3, 0.5]


def test_rows_of_unknown_truth_are_not_measured():
    rng = np.random.default_rng(0)
    truth, scores = rng.integers(0, 2, (20, 4)).astype(np.int8), rng.random((20, 4))
    partial = truth.copy()
    partial[5:] = -1
    known = metrics.evaluate(truth[:5], scores[:5], scores[:5] >= 0.5)
    assert metrics.evaluate(partial, scores, scores >= 0.5) == known
    np.testing.assert_array_equal(
        metrics.label_average_precision(partial, scores),
        metrics.label_average_precision(truth[:5], scores[:5]),
    )
    assert metrics.noise_auc(partial[:, 0], scores[:, 0]) == metrics.noise_auc(
        truth[:5, 0], scores[:5, 0]
    )
    partial[:] = -1
    assert set(metrics.evaluate(partial, scores, scores >= 0.5).values()) == {None}
