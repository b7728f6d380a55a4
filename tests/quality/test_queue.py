import numpy as np
import pandas as pd
import pytest

from wscpml.quality import queue
from wscpml.quality.decisions import Decided


@pytest.fixture
def judged():
    rng = np.random.default_rng(0)
    candidates = (rng.random((300, 6)) < 0.5).astype(np.uint8)
    return candidates * rng.uniform(0.05, 0.95, candidates.shape), candidates


NUMBERS = queue.Lottery(range(5000), range(50))


def decide(asked, upto=None):
    row, label = asked.row[:upto], asked.label[:upto]
    return Decided(row, label, row % 3 > 0)


def test_each_candidate_is_asked_once_and_no_decided_one(judged):
    confidence, candidates = judged
    first = queue.choose(confidence, candidates, Decided.nothing(), 100, NUMBERS)
    assert len(set(zip(first.row.tolist(), first.label.tolist(), strict=True))) == 100
    assert (candidates[first.row, first.label] == 1).all()
    second = queue.choose(confidence, candidates, decide(first), 10_000, NUMBERS)
    assert len(second.row) == candidates.sum() - 100
    pairs = [set(zip(q.row.tolist(), q.label.tolist(), strict=True)) for q in (first, second)]
    assert not pairs[0] & pairs[1]


def test_every_fifth_is_random(judged):
    asked = queue.choose(*judged, Decided.nothing(), 100, NUMBERS)
    assert asked.random.sum() == 20
    assert asked.random[::5].all()


def test_answers_begin_spread_over_the_labels(judged):
    confidence, candidates = judged
    confidence = confidence.copy()
    confidence[:, 0] = 0.5 * candidates[:, 0]  # one label is in doubt everywhere
    asked = queue.choose(confidence, candidates, Decided.nothing(), 60, NUMBERS)
    assert np.bincount(asked.label, minlength=6).min() >= 5


def test_what_is_in_doubt_is_asked_rather_than_what_is_sure_but_not_alone():
    candidates = np.ones((400, 2), np.uint8)
    confidence = np.where(np.arange(400)[:, None] < 60, 0.45, 0.98) * np.ones((400, 2))
    asked = queue.choose(confidence, candidates, Decided.nothing(), 50, NUMBERS)
    doubtful = (asked.row < 60)[~asked.random]
    assert doubtful[0]
    assert 0.5 < doubtful.mean() < 1  # of all, 0.15 are; what is said of the sure ones may be wrong
    many = Decided(*(np.repeat(np.arange(60, 400), 2), np.tile([0, 1], 340)), np.ones(680, bool))
    later = queue.choose(confidence, candidates, many, 50, NUMBERS)
    assert (later.row < 60).all()


def test_what_an_answer_teaches_is_what_it_takes_from_the_variance_of_all_others():
    rng = np.random.default_rng(0)
    m, q = 40, 3
    confidence, label = rng.uniform(0.05, 0.95, m), np.arange(m) % q
    design = queue._Design(confidence, label, np.array([0, 0, 2]), q)
    design.answer(np.array([5, 6]))
    precision = np.block([[design.of_w, design.between.T], [design.between, np.diag(design.of_u)]])
    x, k = np.hstack([design.known, np.eye(q)[label]]), confidence * (1 - confidence)
    before = np.linalg.inv(precision)
    taught = []
    for i in range(m):
        after = np.linalg.inv(precision + k[i] * np.outer(x[i], x[i]))
        less = np.einsum("ij,jk,ik->i", x, before - after, x)
        taught.append(k @ less / 2)
    np.testing.assert_allclose(design.teaches(np.arange(m)), taught)


def test_a_long_queue_considers_again_only_now_and_then(judged, monkeypatch):
    monkeypatch.setattr(queue, "TIMES", 10)
    seen, inner = [], queue._Design.teaches

    def teaches(self, among):
        seen.append(len(among))
        return inner(self, among)

    monkeypatch.setattr(queue._Design, "teaches", teaches)
    asked = queue.choose(*judged, Decided.nothing(), 200, NUMBERS)
    assert len(asked.row) == 200
    assert len(seen) == 10


def test_a_row_does_not_come_all_at_once():
    candidates = np.ones((50, 12), np.uint8)
    confidence = np.full((50, 12), 0.9)
    confidence[7] = 0.5
    asked = queue.choose(confidence, candidates, Decided.nothing(), 20, NUMBERS)
    assert (asked.row[~asked.random] == 7).sum() <= queue.AT_ONCE + 1


def test_the_table_can_be_filled_in(judged):
    confidence, candidates = judged
    asked = queue.choose(confidence, candidates, Decided.nothing(), 10, NUMBERS)
    names = [f"tag {j}" for j in range(6)]
    table = queue.table(asked, confidence, pd.Index([f"song {i}" for i in range(300)]), names)
    assert list(table.columns) == ["instance", "label", "decision", "label_confidence", "chosen"]
    assert table.instance.tolist() == [f"song {i}" for i in asked.row]
    assert set(table.chosen) == {"random", "worth"}
    assert (table.decision == "").all()


def test_the_random_part_estimates_without_bias_what_the_chosen_part_cannot():
    inside = 0
    for draw in range(40):
        rng = np.random.default_rng(draw)
        candidates = (rng.random((200, 5)) < 0.6).astype(np.uint8)
        truth = (rng.random((200, 5)) < 0.7).astype(np.uint8)
        confidence = np.clip(0.3 * truth + rng.uniform(0.1, 0.6, truth.shape), 0, 1)
        asked = queue.choose(candidates * confidence, candidates, Decided.nothing(), 200, NUMBERS)
        decided = Decided(asked.row, asked.label, truth[asked.row, asked.label] == 1)
        found = queue.wrong_share(candidates, decided, NUMBERS)
        actual = 1 - truth[candidates == 1].mean()
        inside += found.lower <= actual <= found.upper
        assert found.answers >= 40
    assert inside >= 36  # of 40, with 95 % each


def test_few_random_answers_prove_nothing(judged):
    confidence, candidates = judged
    asked = queue.choose(confidence, candidates, Decided.nothing(), 50, NUMBERS)
    assert queue.wrong_share(candidates, decide(asked), NUMBERS) is None
    assert queue.told(candidates, decide(asked), range(300), list("abcdef")) == []


def test_intervals_are_told_in_words_label_by_label_where_there_are_enough(judged):
    confidence, candidates = judged
    asked = queue.choose(confidence, candidates, Decided.nothing(), 5000, NUMBERS)
    told = queue.told(candidates, decide(asked), range(300), list("abcdef"))
    assert told[0].startswith("between ")
    assert "% (95 %) of all tags are wrong, by " in told[0]
    assert [line[:3] for line in told[1:]] == [f"'{name}'" for name in "abcdef"]


def test_the_lottery_of_all_labels_serves_each_of_them(judged):
    confidence, candidates = judged
    row, label = np.nonzero(candidates)
    drawn = np.argsort(NUMBERS.tickets(row, label), kind="stable")[:300]
    decided = Decided(row[drawn], label[drawn], row[drawn] % 3 > 0)
    assert queue.wrong_share(candidates, decided, NUMBERS).answers == 300
    of_labels = queue.wrong_shares(candidates, decided, NUMBERS)
    assert sum(share.answers for share in of_labels.values()) == 300


def of_tickets(answers):
    """Decisions on candidates of one label, by tickets; None is left open."""
    candidates = np.ones((len(answers), 1), np.uint8)
    order = np.argsort(NUMBERS.tickets(*np.nonzero(candidates)), kind="stable")
    answered = np.array([each is not None for each in answers])
    row, true = order[answered], np.array(answers)[answered].astype(bool)
    return candidates, Decided(row, np.zeros(len(row), int), true)


@pytest.mark.parametrize("place", [0, 30, 80])
def test_a_question_that_is_left_open_counts_as_right_below_and_as_wrong_above(place):
    answers = [number % 4 > 0 for number in range(100)]
    every = [
        queue.wrong_share(*of_tickets([*answers[:place], each, *answers[place + 1 :]]), NUMBERS)
        for each in (True, None, False)
    ]
    right, left, wrong = every
    assert (left.answers, left.open) == (99, 1)
    assert (left.lower, left.upper) == (right.lower, wrong.upper)
    candidates, decided = of_tickets([None, *answers])
    told = queue.told(candidates, decided, range(101), [0])
    assert told[0].endswith("by 100 random answers (1 left open)")


def test_more_than_a_tenth_left_open_is_not_stepped_over():
    answers = [True] * 40 + [None] * 20 + [True] * 40
    found = queue.wrong_share(*of_tickets(answers), NUMBERS)
    assert (found.answers, found.open) == (40, 0)
    assert queue.wrong_share(*of_tickets([None] * 20 + [True] * 40), NUMBERS) is None


def test_questions_that_were_not_asked_yet_are_not_taken_for_open_ones():
    rng = np.random.default_rng(0)
    by_worth = np.where(rng.random(900) < 0.1, True, None).tolist()  # answers on other grounds
    found = queue.wrong_share(*of_tickets([True] * 100 + by_worth), NUMBERS)
    assert found.answers - 100 == found.open == 0


def test_intervals_hold_what_is_true_also_where_some_leave_open_what_is_wrong():
    inside = 0
    for draw in range(40):
        rng = np.random.default_rng(draw)
        truth = rng.random(1000) < 0.7
        tells = rng.random(1000) < np.where(truth, 1.0, 0.8)
        answers = np.where(tells, truth, None)[:200].tolist() + [None] * 800
        found = queue.wrong_share(*of_tickets(answers), NUMBERS)
        inside += found.lower <= 1 - truth.mean() <= found.upper
        assert found.answers >= queue.FEWEST
    assert inside >= 38


@pytest.mark.parametrize("true", [True, False])
def test_answers_of_one_kind_give_an_interval_that_ends_at_the_edge(true):
    candidates = np.ones((30, 1), np.uint8)
    found = queue.wrong_share(
        candidates, Decided(np.arange(30), np.zeros(30, int), np.full(30, true)), NUMBERS
    )
    assert (found.lower, found.upper)[not true] == (0.0 if true else 1.0)
    assert 0 <= found.lower < found.upper <= 1


def test_a_pair_keeps_its_ticket_whatever_else_is_in_the_data():
    few = queue.Lottery(["a", "7", "é\ud800"], ["rock", "jazz"])
    more = queue.Lottery(["new", "é\ud800", 7, "a"], ["folk", "jazz", "rock"])
    row, label = np.nonzero(np.ones((3, 2)))
    np.testing.assert_array_equal(
        few.tickets(row, label), more.tickets(np.array([3, 2, 1])[row], 2 - label)
    )
    assert few.tickets(np.array([0]), np.array([1])).tolist() == [
        17024745287291670599
    ]  # in every process


def test_an_instance_that_is_called_like_a_label_has_a_ticket_of_its_own():
    names = [f"{each}" for each in range(50)]
    same = queue.Lottery(names, names).tickets(*np.divmod(np.arange(2500), 50))
    assert len(np.unique(same)) == 2500


def test_tickets_are_as_good_as_random():
    row, label = np.divmod(np.arange(100_000), 50)
    drawn = np.argsort(NUMBERS.tickets(row, label))[:5000]
    assert abs(row[drawn].mean() - row.mean()) < 40
    assert abs(np.bincount(label[drawn], minlength=50) - 100).max() < 50
    assert len(np.unique(NUMBERS.tickets(row, label))) == 100_000
