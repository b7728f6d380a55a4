"""Which candidates a person is asked about, and what a random part of the answers proves.

An answer is worth what it mends now, the chance min(c, 1 - c) that a label confidence c is on the
wrong side of a half; and what it teaches about its label: it makes the variance v of the label's
offset smaller (see `learning`), from 1 before the first answer, and that is worth the more, the
more of the label's other candidates are in doubt. So answers begin spread over the labels.

Every fifth place is a lottery: the pair's ticket is made of its row and label alone, and the lowest
tickets that are undecided are asked. So the candidates of the lowest tickets that are all decided
are a random sample of all candidates, whatever else was asked, and whoever asked it.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import beta

from wscpml.arrays import Array, Matrix, values_at
from wscpml.quality.decisions import Decided

RANDOM_EVERY = 5  # places of the queue of which one is random
TEACHES = 3.0  # how much what is taught counts beside what is mended
INFORMATION = 0.2  # about the offset of a label, in one answer
AT_ONCE = 3  # candidates of one row that are asked before other rows' turn
LEVEL = 0.95  # of intervals
FEWEST = 20  # random answers that an interval is told for


class Queue(NamedTuple):
    """Candidates in the order of asking."""

    row: Array  # (k,)
    label: Array  # (k,)
    random: Array  # (k,), bool: by lottery


@dataclass(frozen=True)
class WrongShare:
    """How many candidates are false, by the random part of the answers."""

    answers: int
    false: int
    lower: float  # with 95 %
    upper: float

    def told(self) -> str:
        """The interval in words."""
        return f"between {100 * self.lower:.0f} and {100 * self.upper:.0f} % (95 %)"


def choose(label_confidence: Matrix, candidates: Matrix, decided: Decided, size: int) -> Queue:
    """At most `size` undecided candidates that are worth an answer, the most worth first.

    Takes label confidences and candidates, both ``(n, q)``.
    """
    row, label = np.nonzero(decided.undecided(candidates))
    size = min(size, len(row))
    confidence = values_at(label_confidence, row, label)
    drawn = np.argsort(tickets(row, label), kind="stable")[: size // RANDOM_EVERY]
    random = np.zeros(len(row), dtype=bool)
    random[drawn] = True
    answers = np.bincount(decided.label, minlength=candidates.shape[1])
    answers += np.bincount(label[random], minlength=candidates.shape[1])
    rest = np.flatnonzero(~random)
    worth = _worth(confidence[rest], label[rest], answers)
    best = rest[np.argsort(-worth, kind="stable")]
    turn = _places_within(row[best]) // AT_ONCE
    best = best[np.argsort(turn, kind="stable")][: size - len(drawn)]
    order = np.insert(best, np.arange(len(drawn)) * (RANDOM_EVERY - 1), drawn)
    return Queue(row[order], label[order], random[order])


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


def _worth(confidence: Array, label: Array, answers: Array) -> Array:
    """What an answer on each of m candidates is worth, after those on better ones of its label."""
    mended = np.minimum(confidence, 1 - confidence)
    doubt = np.bincount(label, confidence * (1 - confidence), len(answers))
    best_first = np.argsort(-mended, kind="stable")
    before = np.empty(len(label), dtype=int)
    before[best_first] = _places_within(label[best_first])
    before += answers[label]
    variance, then = (1 / (1 + INFORMATION * count) for count in (before, before + 1))
    return np.asarray(mended + TEACHES * doubt[label] * (variance - then) / 2)


def _places_within(groups: Array) -> Array:
    """The place of each entry among those of its group, in their order, from 0 on."""
    order = np.argsort(groups, kind="stable")
    sizes = np.unique(groups, return_counts=True)[1]
    places = np.empty(len(groups), dtype=int)
    places[order] = np.arange(len(groups)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return places


def tickets(row: Array, label: Array) -> Array:
    """A number of each pair, as good as random (the finaliser of splitmix64)."""
    x = row.astype(np.uint64) << np.uint64(24) ^ label.astype(np.uint64)
    with np.errstate(over="ignore"):
        x = x * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ x >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ x >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return x ^ x >> np.uint64(31)


def wrong_share(candidates: Matrix, decided: Decided) -> WrongShare | None:
    """The share of the candidates ``(n, q)`` that are false, by the random part of the answers.

    None where there are too few answers to tell.
    """
    return _share(_by_lot(candidates, decided)[1])


def wrong_shares(candidates: Matrix, decided: Decided) -> dict[int, WrongShare]:
    """The same of each label that has enough random answers, by its number."""
    label, answer = _by_lot(candidates, decided)
    enough = np.flatnonzero(np.bincount(decided.label) >= FEWEST)
    each = {j: _share(answer[label == j]) for j in enough.tolist()}
    return {j: share for j, share in each.items() if share is not None}


def _by_lot(candidates: Matrix, decided: Decided) -> tuple[Array, Array]:
    """Label of each candidate, and the answer on it, 1 or 0, or -1 if there is none, by tickets."""
    row, label = np.nonzero(candidates)
    order = np.argsort(tickets(row, label), kind="stable")
    answer = np.array([-1, 1, 0])[decided.codes(candidates)]
    return label[order], answer[order]


def _share(answer: Array) -> WrongShare | None:
    """What the answers before the first that is missing say."""
    answers = int((np.append(answer, -1) < 0).argmax())
    if answers < FEWEST:
        return None
    false = int((answer[:answers] == 0).sum())
    tail = (1 - LEVEL) / 2
    return WrongShare(
        answers,
        false,
        float(beta.ppf(tail, false, answers - false + 1)) if false else 0.0,
        float(beta.isf(tail, false + 1, answers - false)) if false < answers else 1.0,
    )


def told(candidates: Matrix, decided: Decided, names: list[str]) -> list[str]:
    """What the random part of the answers proves, in words."""
    share = wrong_share(candidates, decided)
    if share is None:
        return []
    every = wrong_shares(candidates, decided)
    return [
        f"{share.told()} of all tags are wrong, by {share.answers} random answers",
        *(f"{names[j]!r}: {each.told()} are wrong" for j, each in every.items()),
    ]
