import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from tests.contract import Contract, small
from wscpml.methods.ml_knn import MLkNN, likelihoods


class TestMLkNN(Contract):
    method = MLkNN()


def posteriors(X, Y, rows, k, s, without_self):
    """Bayes' rule as the paper has it, count by count."""
    n, q = Y.shape

    def count(x, skip=None):
        distances = ((X - x) ** 2).sum(axis=1)
        if skip is not None:
            distances[skip] = np.inf
        return Y[np.argsort(distances)[:k]].sum(axis=0)

    counts = [count(X[i], skip=i) for i in range(n)]
    found = np.empty((len(rows), q))
    for i, x in enumerate(rows):
        near = count(x, skip=i if without_self else None)
        for j in range(q):
            on = [counts[m][j] for m in range(n) if Y[m, j]]
            off = [counts[m][j] for m in range(n) if not Y[m, j]]
            prior = (s + len(on)) / (2 * s + n)
            yes = prior * (s + on.count(near[j])) / (s * (k + 1) + len(on))
            no = (1 - prior) * (s + off.count(near[j])) / (s * (k + 1) + len(off))
            found[i, j] = yes / (yes + no)
    return found


@pytest.mark.parametrize(("k", "smoothing"), [(10, 1.0), (3, 0.5)])
def test_probabilities_are_the_papers_posteriors(k, smoothing):
    X, _, Y = small(n=50)
    found = MLkNN(k=k, smoothing=smoothing).fit(X[:40], Y[:40])
    scaled = found.scale_(X)
    expected = posteriors(scaled[:40], Y[:40], scaled[40:], k, smoothing, without_self=False)
    np.testing.assert_allclose(found.predict_proba(X[40:]), expected, rtol=1e-12)
    own = posteriors(scaled[:40], Y[:40], scaled[:40], k, smoothing, without_self=True)
    np.testing.assert_allclose(found.pseudo_labels_, own * Y[:40], rtol=1e-12)


def test_likelihoods_are_smoothed_shares_of_the_counts():
    counts = np.array([[0], [2], [2], [1]])
    on, off = likelihoods(counts, np.array([[1], [1], [1], [0]]), 2, 1.0)
    np.testing.assert_allclose(on.ravel(), [2 / 6, 1 / 6, 3 / 6])
    np.testing.assert_allclose(off.ravel(), [1 / 4, 2 / 4, 1 / 4])


def test_few_rows_are_all_neighbours_of_each_other():
    X, _, Y = small(n=5)
    few, all_of_them = (MLkNN(k=k).fit(X, Y) for k in (10, 4))
    np.testing.assert_array_equal(few.predict_proba(X), all_of_them.predict_proba(X))


def test_rows_that_are_equally_near_are_the_same_ones_whatever_the_threads():
    X, _, Y = small(n=3000, d=30)
    X = X.round().clip(0, 1)
    found = set()
    for threads in (1, 3):
        with threadpool_limits(threads):
            found.add(MLkNN().fit(X, Y).pseudo_labels_.tobytes())
    assert len(found) == 1
