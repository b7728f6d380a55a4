"""Which candidates a person is asked about, and what a random part of the answers proves.

An answer is worth what it mends now, the chance min(c, 1 - c) that a label confidence c is on the
wrong side of a half; and what it teaches about all others. They are set right by a regression
(`learning`) whose weights w and offsets u_j of labels are not known at first; with S their
covariance and x_i what is known of candidate i, so that eta_i = x_i . (w, u), its answer has the
information k_i = c_i (1 - c_i) and makes the variance of every other smaller by

    k_i (x_i S x_j)^2 / (1 + k_i x_i S x_i),

which is worth k_j / 2 of it in the log likelihood of j. Answers are chosen one after the other,
each in view of those before it. So they begin spread over labels and over confidences.

Every fifth place is a lottery: the pair's ticket is made of the names of its instance and its label
alone, so that it stays theirs whatever else is in the data, or in which order; and the lowest
tickets that are undecided are asked. So the candidates of the lowest tickets that are all decided
are a random sample of all candidates, whatever else was asked, and whoever asked it. A few of them
may be open, which nobody could tell: they count as right for the lower bound of what is wrong, and
as wrong for the upper one.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import beta

from wscpml.arrays import Array, Matrix, values_at
from wscpml.quality import learning
from wscpml.quality.decisions import Decided
from wscpml.randomness import mixed_bits

RANDOM_EVERY = 5  # places of the queue of which one is random
TEACHES = 3.0  # how much what is taught counts beside what is mended
OFFSET = 1.0  # deviation of labels' offsets before the first answer
AT_ONCE = 3  # candidates of one row that are asked before other rows' turn
CONSIDERED = 20_000  # candidates that are chosen from, the lowest tickets
TIMES = 500  # that what answers teach is found out anew, at most
LEVEL = 0.95  # of intervals
FEWEST = 20  # random answers that an interval is told for
MOST_OPEN = 0.1  # share of the lowest tickets that may have no answer


class Queue(NamedTuple):
    """Candidates in the order of asking."""

    row: Array  # (k,)
    label: Array  # (k,)
    random: Array  # (k,), bool: by lottery


class Lottery:
    """A ticket for every pair, made of the names of its instance and of its label."""

    def __init__(self, instances: Iterable[Any], labels: Iterable[Any]) -> None:
        self.of_row, self.of_label = _hashes(instances), mixed_bits(_hashes(labels))

    def tickets(self, row: Array, label: Array) -> Array:
        """A number of each pair ``(m,)``, as good as random."""
        return mixed_bits(self.of_row[row] ^ self.of_label[label])


@dataclass(frozen=True)
class WrongShare:
    """How many candidates are false, by the random part of the answers."""

    answers: int
    open: int  # tickets among theirs that nobody has answered
    false: int
    lower: float  # with 95 %
    upper: float

    def told(self) -> str:
        """The interval in words."""
        return f"between {100 * self.lower:.0f} and {100 * self.upper:.0f} % (95 %)"


def choose(
    label_confidence: Matrix, candidates: Matrix, decided: Decided, size: int, lottery: Lottery
) -> Queue:
    """At most `size` undecided candidates that are worth an answer, the most worth first.

    Takes label confidences and candidates, both ``(n, q)``, and the lottery of their names.
    """
    row, label = np.nonzero(decided.undecided(candidates))
    size = min(size, len(row))
    confidence = values_at(label_confidence, row, label)
    by_ticket = np.argsort(lottery.tickets(row, label), kind="stable")[: max(CONSIDERED, size)]
    drawn, rest = np.split(by_ticket, [size // RANDOM_EVERY])
    design = _Design(confidence, label, decided.label, candidates.shape[1])
    design.answer(drawn)
    best = rest[_best(design, rest, row[rest], size - len(drawn))]
    order = np.insert(best, np.arange(len(drawn)) * (RANDOM_EVERY - 1), drawn)
    return Queue(row[order], label[order], np.isin(order, drawn))


def table(
    asked: Queue, label_confidence: Matrix, instances: pd.Index, label_names: list[str]
) -> pd.DataFrame:
    """The queue as a table of decisions that are to be made."""
    return pd.DataFrame(
        {
            "instance": instances[asked.row],
            "label": np.array(label_names, dtype=object)[asked.label],
            "decision": "",
            "label_confidence": values_at(label_confidence, asked.row, asked.label),
            "chosen": np.where(asked.random, "random", "worth"),
        }
    )


def _best(design: "_Design", among: Array, row: Array, size: int) -> Array:
    """The places of `size` candidates among some, of these rows, the most worth first."""
    mended = np.minimum(design.confidence, 1 - design.confidence)[among]
    asked, taken = np.zeros(row.max(initial=0) + 1, dtype=int), np.zeros(len(among), dtype=bool)
    chosen = np.empty(size, dtype=int)
    for place in range(size):
        if place % -(-size // TIMES) == 0:
            worth = mended + TEACHES * design.teaches(among)
        turn = np.where(taken, size, asked[row] // AT_ONCE)
        chosen[place] = best = np.where(turn == turn.min(), worth, -np.inf).argmax()
        taken[best] = True
        asked[row[best]] += 1
        design.answer(among[[best]])
    return chosen


class _Design:
    """What is known of w and u after some answers: the precision of each, and what is between.

    Of m candidates of q labels. Answers that were given have a confidence of 1 or 0, so that each
    counts as an average candidate of its label.
    """

    def __init__(self, confidence: Array, label: Array, answered: Array, q: int) -> None:
        self.confidence, self.label, self.q = confidence, label, q
        self.known = learning.known_of_label(confidence, label)
        self.information = confidence * (1 - confidence)
        self.of_w = np.diag(learning.GUESSED[learning.OF_LABEL] ** -2)  # (f, f)
        self.of_u = np.full(q, OFFSET**-2)
        self.between = np.zeros((q, len(self.of_w)))
        share = np.bincount(answered, minlength=q) / np.maximum(np.bincount(label, minlength=q), 1)
        self._add(slice(None), share[label])

    def answer(self, chosen: Array) -> None:
        """Take some candidates as answered."""
        self._add(chosen, 1.0)

    def teaches(self, among: Array) -> Array:
        """What an answer on each of some candidates teaches about all of these, ``(k,)``."""
        label, k = self.label[among], self.information[among]
        shares = self.between / self.of_u[:, None]
        covariance = np.linalg.inv(self.of_w - shares.T @ self.between)
        along = self.known[among] - shares[label]
        toward, weighed, own = along @ covariance, along * k[:, None], 1 / self.of_u[label]
        of_label = self._by_label(label, weighed)
        variance = (toward * along).sum(axis=1) + own
        squares = ((toward @ (weighed.T @ along)) * toward).sum(axis=1)
        squares += 2 * own * (toward * of_label[label]).sum(axis=1)
        squares += own**2 * np.bincount(label, k, self.q)[label]
        everyone = len(self.label) / len(among)
        return np.asarray(everyone * squares * k / (1 + k * variance) / 2)

    def _add(self, chosen: Array | slice, times: Array | float) -> None:
        known, label = self.known[chosen], self.label[chosen]
        k = self.information[chosen] * times
        weighed = known * k[:, None]
        self.of_w = self.of_w + weighed.T @ known
        self.of_u = self.of_u + np.bincount(label, k, self.q)
        self.between = self.between + self._by_label(label, weighed)

    def _by_label(self, label: Array, values: Array) -> Array:
        """Sums of values ``(m, f)`` by label, ``(q, f)``."""
        return np.stack([np.bincount(label, each, self.q) for each in values.T], axis=1)


def _hashes(names: Iterable[Any]) -> Array:
    """A number of each name, the same in every process."""
    texts = (str(name).encode(errors="surrogatepass") for name in names)
    return np.frombuffer(b"".join(blake2b(text, digest_size=8).digest() for text in texts), "<u8")


def wrong_share(candidates: Matrix, decided: Decided, lottery: Lottery) -> WrongShare | None:
    """The share of the candidates ``(n, q)`` that are false, by the random part of the answers.

    None where there are too few answers to tell.
    """
    return _share(_by_lot(candidates, decided, lottery)[1])


def wrong_shares(candidates: Matrix, decided: Decided, lottery: Lottery) -> dict[int, WrongShare]:
    """The same of each label that has enough random answers, by its number."""
    label, answer = _by_lot(candidates, decided, lottery)
    enough = np.flatnonzero(np.bincount(decided.label) >= FEWEST)
    each = {j: _share(answer[label == j]) for j in enough.tolist()}
    return {j: share for j, share in each.items() if share is not None}


def _by_lot(candidates: Matrix, decided: Decided, lottery: Lottery) -> tuple[Array, Array]:
    """Label of each candidate, and the answer on it, 1 or 0, or -1 if there is none, by tickets."""
    row, label = np.nonzero(candidates)
    order = np.argsort(lottery.tickets(row, label), kind="stable")
    answer = np.array([-1, 1, 0])[decided.codes(candidates)]
    return label[order], answer[order]


def _share(answer: Array) -> WrongShare | None:
    """What the lowest tickets say, as many as make the narrowest interval where half are false.

    How many that is depends on which are answered alone, and not on what the answers are.
    """
    drawn, missing = np.arange(1, len(answer) + 1), np.cumsum(answer < 0)
    enough = (drawn - missing >= FEWEST) & (missing <= MOST_OPEN * drawn)
    if not enough.any():
        return None
    width = missing / drawn + 2 / np.sqrt(drawn)
    size = 1 + int(np.where(enough, width, np.inf).argmin())
    false, left = int((answer[:size] == 0).sum()), int(missing[size - 1])
    most, tail = false + left, (1 - LEVEL) / 2
    return WrongShare(
        size - left,
        left,
        false,
        float(beta.ppf(tail, false, size - false + 1)) if false else 0.0,
        float(beta.isf(tail, most + 1, size - most)) if most < size else 1.0,
    )


def told(
    candidates: Matrix, decided: Decided, instances: Iterable[Any], names: list[str]
) -> list[str]:
    """What the random part of the answers proves, in words; instances and labels by their names."""
    lottery = Lottery(instances, names)
    share = wrong_share(candidates, decided, lottery)
    if share is None:
        return []
    every = wrong_shares(candidates, decided, lottery)
    left = f" ({share.open} left open)" if share.open else ""
    return [
        f"{share.told()} of all tags are wrong, by {share.answers} random answers{left}",
        *(f"{names[j]!r}: {each.told()} are wrong" for j, each in every.items()),
    ]
