import re

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.metrics import roc_auc_score

import wscpml
from wscpml import arrays
from wscpml.algorithm import network
from wscpml.errors import UserError
from wscpml.parameters import ParameterError
from wscpml.quality import given, judging, noise_model
from wscpml.quality.given import label_confidence


def example(n=500, q=6, seed=0, padded=False):
    """Truth, candidates with false labels among them, and the chance of being one, roughly."""
    rng = np.random.default_rng(seed)
    true = 1 / (1 + np.exp(-3 * rng.normal(size=(n, q)) + 2))
    truth = rng.random((n, q)) < true
    rate = 0.25
    false = rng.random((n, q)) < rate
    if padded:
        order = np.argsort(np.where(truth, -1, rng.random((n, q))), axis=1)
        false = np.zeros_like(truth)
        np.put_along_axis(false, order[:, :3], True, axis=1)
        rate = false[~truth].mean()
    P = true + (1 - true) * rate + 0.05 * rng.normal(size=(n, q))
    return truth, (truth | false).astype(np.uint8), np.clip(P, 0, 1)


@pytest.mark.parametrize("padded", [False, True])
def test_candidates_are_ranked_and_wrong_ones_are_found(padded):
    truth, Y, P = example(padded=padded)
    found = label_confidence(Y, P)[Y == 1]
    assert roc_auc_score(truth[Y == 1], found) > 0.9
    assert abs(found.mean() - truth[Y == 1].mean()) < 0.1


def test_other_labels_are_not_heard_where_they_say_nothing():
    """Whatever a few of many labels seem to say: noise and truth are independent."""
    _, Y, P = example(300, 20)
    by_chance = noise_model.fit(P, Y.astype(float))
    assert (by_chance.others.penalty >= 0).any()
    cautious = noise_model.fit(P, Y.astype(float), cautious=True)
    assert cautious.others.told.max() < 0.3
    Y[:, 10:] = Y[:, :10] * (np.random.default_rng(1).random((300, 10)) < 0.8)
    told = noise_model.fit(P, Y.astype(float), cautious=True)
    assert told.others.told.min() > 0.9


def test_probabilities_that_a_person_may_not_have_meant_are_told():
    _, Y, P = example()
    assert given.odd(P, Y) == given.odd(P, sparse.csr_array(Y)) == []
    (by_chance,) = given.odd(P[np.random.default_rng(0).permutation(len(P))], Y)
    assert by_chance.startswith("probabilities: tell candidates from other labels no better than")
    (repeated,) = given.odd(0.2 + 0.6 * Y, Y)
    assert repeated.startswith("probabilities: nearly repeat the candidates")
    assert given.odd(np.full(P.shape, 0.5), Y) == []
    with pytest.warns(UserWarning, match="nearly repeat the candidates"):
        label_confidence(Y, 0.2 + 0.6 * Y)


def test_it_is_asked_for_as_part_of_the_package():
    assert wscpml.label_confidence is label_confidence


def test_confidence_is_0_where_there_is_no_candidate():
    _, Y, P = example()
    assert not label_confidence(Y, P)[Y == 0].any()


def test_blocks_of_labels_and_rows_give_what_all_at_once_gives(monkeypatch):
    _, Y, P = example(300, 7)
    Y[:, 6] = Y[:, 5]  # labels that are given to the same rows
    whole = label_confidence(Y, P)
    monkeypatch.setattr(arrays, "PAIRS_AT_ONCE", 650)
    np.testing.assert_allclose(label_confidence(Y, P), whole, atol=1e-9)


@pytest.mark.parametrize(
    ("where", "name", "most"), [(network, "START_ROWS", 700), (given, "PAIRS_LEARNED", 3500)]
)
def test_rows_that_nothing_was_learned_from_are_judged_as_well(where, name, most, monkeypatch):
    truth, Y, P = example(2000)
    whole = label_confidence(Y, P)[Y == 1]
    monkeypatch.setattr(where, name, most)
    found = label_confidence(Y, P)[Y == 1]
    assert np.corrcoef(found, whole)[0, 1] > 0.99
    ours, all_at_once = (roc_auc_score(truth[Y == 1], each) for each in (found, whole))
    assert ours > all_at_once - 0.005
    assert (found != whole).any()


def test_single_precision_is_enough():
    _, Y, P = example()
    single = label_confidence(Y, P.astype(np.float32))
    np.testing.assert_allclose(single, label_confidence(Y, P), atol=1e-3)


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix, sparse.csc_array])
def test_sparse_candidates_get_a_sparse_answer_with_the_same_entries(kind):
    _, Y, P = example()
    found = label_confidence(kind(Y), P)
    assert isinstance(found, kind)
    np.testing.assert_array_equal(found.indices, kind(Y).indices)
    np.testing.assert_array_equal(found.toarray(), label_confidence(Y, P))


def test_zeros_among_sparse_entries_stay_entries():
    _, Y, P = example()
    stored = sparse.csr_array(Y).astype(float)
    stored.data[:5] = 0
    found = label_confidence(stored, P)
    assert found.nnz == stored.nnz
    np.testing.assert_array_equal(found.toarray(), label_confidence(stored.toarray(), P))


def test_tables_are_matched_by_their_names():
    _, Y, P = example(100, 3)
    ids, names = [f"song {i}" for i in range(100)], ["rock", "jazz", "folk"]
    candidates, probabilities = pd.DataFrame(Y, ids, names), pd.DataFrame(P, ids, names)
    found = label_confidence(candidates, probabilities.iloc[::-1, ::-1])
    pd.testing.assert_frame_equal(found, pd.DataFrame(label_confidence(Y, P), ids, names))


def test_labels_that_are_too_rare_are_not_judged():
    _, Y, P = example(q=4)
    Y[:, 3] = 0
    Y[:2, 3] = 1
    found = label_confidence(Y, P)
    np.testing.assert_array_equal(found[:, :3], label_confidence(Y[:, :3], P[:, :3]))
    assert found[0, 3] >= judging.ABSTAIN
    assert (label_confidence(Y[:, 3:], P[:, 3:])[:2] == judging.ABSTAIN).all()


def test_what_are_no_probabilities_is_refused_with_its_place():
    _, Y, P = example(20, 3)
    ids, names = [f"song {i}" for i in range(20)], ["rock", "jazz", "folk"]
    tags = pd.DataFrame(Y, ids, names)

    def changed(value):
        wrong = P.copy()
        wrong[3, 1] = value
        return wrong

    def refused(candidates, probabilities, words):
        with pytest.raises(ParameterError, match=f"^probabilities: {re.escape(words)}"):
            label_confidence(candidates, probabilities)

    refused(Y, P[:, :2], "is 20 x 2, and must be 20 x 3")
    refused(Y, changed(np.nan), "row 3, column 1: must be from 0 to 1, got nan")
    refused(Y, changed(1.2), "row 3, column 1: must be from 0 to 1, got 1.2")
    refused(tags, changed(-1), "row 'song 3', column 'jazz': must be from 0 to 1, got -1")
    refused(Y, np.where(P > 2, "", "much"), "row 0, column 0: must be from 0 to 1, got 'much'")
    table = pd.DataFrame(P, ids, names)
    refused(tags, table.rename(index={"song 2": "x"}), "has no row 'song 2'")
    refused(tags, table.rename(columns={"jazz": "Jazz"}), "has no column 'jazz'")
    refused(tags, table.assign(pop=0.5), "has a column 'pop', which the candidates do not have")
    refused(tags, pd.concat([table, table.iloc[:1]]), "row 'song 0' is there twice")


def test_lists_of_labels_are_matched_with_the_columns_of_a_table():
    _, Y, P = example(60, 12)
    Y[:, 5] = 0
    names = [str(j) for j in range(12)]
    table = pd.DataFrame(P, columns=range(12))
    lists = [np.flatnonzero(row).tolist() for row in Y]
    for candidates in (lists, pd.Series([";".join(map(str, each)) for each in lists])):
        found = label_confidence(candidates, table)
        assert list(found) == names
        np.testing.assert_array_equal(found, label_confidence(Y, P))
    with pytest.raises(ParameterError, match="^candidates: are lists; give probabilities as a tab"):
        label_confidence(lists, P)
    with pytest.raises(ParameterError, match="^probabilities: has no column '7', which the cand"):
        label_confidence(lists, table.drop(columns=7))


@pytest.mark.parametrize("wrong", [np.full((20, 3), 2), np.ones(20), np.full((20, 3), "a")])
def test_what_are_no_candidates_is_refused(wrong):
    with pytest.raises(ParameterError, match="^candidates: (must have rows|row 0, column 0: )"):
        label_confidence(wrong, np.full((20, 3), 0.5))


def test_no_rows_are_refused():
    with pytest.raises(UserError, match="^candidates: have no rows$"):
        label_confidence(np.empty((0, 3)), np.empty((0, 3)))
