"""Judging labels: how likely each candidate is to be true, by the candidates alone.

Two predictors say how likely each label is to be a candidate of a row, P, without having seen the
row's own labels: kernel ridge regression leaves the row out, and of a forest only those trees
speak that were grown without it. Of very many rows both learn from a sample, and logistic
regression from more of them joins in. `noise_model` finds out with which chance rho_j a label is a
candidate where it is not true. With p the chance that the label is true, P = p + (1 - p) rho, so a
candidate is true with probability p / P; it is averaged over all that rho may be. Where no noise
is seen, hardly anything is called more likely false than true.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.stats import rankdata

from wscpml.algorithm.composition import TrainingRows, cleaned
from wscpml.algorithm.features import FeatureMap
from wscpml.algorithm.ridge import Ridge
from wscpml.arrays import EVEN_ODDS, Array, Matrix, label_counts, row_blocks, to_dense, values_at
from wscpml.blocks import Engine
from wscpml.memory import give_back
from wscpml.progress import SECONDS, Steps, steps
from wscpml.quality import confusion, forests, learning, logistic, noise_model, taggers
from wscpml.quality.decisions import Decided
from wscpml.quality.forests import Forest
from wscpml.quality.logistic import Halves
from wscpml.quality.noise_model import RATES, NoiseModel, Others, Span, look_up, weights_of
from wscpml.quality.votes import with_votes

TREES, LEAF = 400, 3
FEWEST = 3  # candidates of a label that anything can be learned of: left out one, two are left
BINS = 40  # of pairs of the same weight, in which predictions are calibrated
PAIRS_CALIBRATED = 2_000_000  # on which they are at most, of evenly spaced rows
ROWS_AT_ONCE = 2048  # that are judged as a block; a constant, so that bytes are too
VALUES = 100  # bytes that a block takes for each row and label
ABSENT = 100  # and more where labels may be missing
MOST_MISSING = 10  # labels of a row that may be missing, where labels are sparse
LEAST_SHARE = 0.1  # of predictions among others; below it they are not worth their time
SLOPE = 0.05  # what is left of the predictions' own order where bins do not differ
TENTHS = 10  # bins of label confidence, in which it is compared with the truth
NEVER_SURE = 0.002  # probabilities are at least so far from 0 and 1
TINY = 1e-6  # but of labels that are no candidates, most of which are false, they may be as small
GRID = np.linspace(0, 1, 201)  # chances of being a candidate that confidence is tabulated at
ALWAYS, APART = 0.4, 0.5  # weight of confidences in training; more where labels' chances differ
ENOUGH = 20  # answers that count as much as what was believed without them
DOUBT, ABSTAIN = 0.3, 0.5  # share of what the features do not predict that may be false unseen
TIED, SATURATED, HALF = 0.9, 0.95, (0.4, 0.6)  # chances that are equal; that repeat the candidates
FLAT = 0.25  # power of beliefs that intervals are read from: curves are no law of nature
INTERVAL, DEVIATIONS = (0.05, 0.5, 0.95), 1.645  # 90 %
WIDE, NEARLY_ALL = 0.6, 0.98  # an interval that says little; a label that every row has
MOST_NAMED = 5  # labels in a warning
UNEVEN = (
    "rows differ in how many of their tags are wrong, as where some are tagged without care: tags "
    "of a row with more than its features foretell are believed less"
)
LOSING = "about {:.0f} % of the true labels are taken to be missing, of all labels alike"

ALONE = Engine()
Predict = Callable[[Array, "Predictor | None"], "Opinion"]


@dataclass(frozen=True)
class Remark:
    """What cannot be known from these data."""

    text: str
    labels: list[int]  # that it is about; none: all of them

    def told(self, names: list[str]) -> str:
        """In words, with the names of the labels."""
        few = ", ".join(repr(names[j]) for j in self.labels[:MOST_NAMED])
        more = len(self.labels) - MOST_NAMED
        return f"{few}{f' and {more} more' if more > 0 else ''}{': ' if few else ''}{self.text}"


@dataclass(frozen=True)
class Noise:
    """What is known of the noise of q labels."""

    kind: str  # `none seen`, `common` to all labels, `per label`, or `pairs` that are confused
    rates: Array  # (q,), the share of each label's candidates that are false; NaN without any
    lower: Array  # (q,), and the interval that it lies in with 90 %
    upper: Array  # (q,)
    chances: Array  # (q,), that the label is a candidate where it is not true; NaN if not judged
    dispersion: float  # of rows' counts: about 0 where rows are padded, 1 for independent noise
    deviation: float  # between labels' chances, in units of arcsin sqrt
    seen: float  # weight of the noise that is seen, 0 ... 1
    weight: float  # of the label confidences in what is trained on, 0 ... 4
    warnings: list[Remark]
    by_row: float = 0.0  # how far rates differ from row to row, 0 ... 1
    lost: float | None = None  # share of the true labels that are no candidates; None: complete
    missing: float = 0.0  # how many these are estimated to be

    def table(self, names: list[str], candidates: Matrix) -> pd.DataFrame:
        """Rate and interval of each label, a row each."""
        return pd.DataFrame(
            {
                "label": names,
                "candidates": label_counts(candidates).astype(int),
                "noise_rate": self.rates,
                "lower": self.lower,
                "upper": self.upper,
                "chance": self.chances,
            }
        )

    def summary(self) -> dict[str, float | str]:
        """Which noise it is, and what speaks for it."""
        return {
            "kind": self.kind,
            "seen": self.seen,
            "dispersion": self.dispersion,
            "deviation": self.deviation,
            "weight": self.weight,
            **({"by_row": self.by_row} if self.by_row else {}),
            **({} if self.lost is None else {"lost": self.lost, "missing": self.missing}),
        }

    def told(self, names: list[str]) -> list[str]:
        """Which noise it is, and the warnings, in words."""
        lost = [] if self.lost is None else [LOSING.format(100 * self.lost)]
        rows = [UNEVEN] if self.by_row >= EVEN_ODDS else []
        return [*self._which(), *rows, *lost, *(each.told(names) for each in self.warnings)]

    def _which(self) -> list[str]:
        known = self.chances[np.isfinite(self.chances)]
        if self.kind in ("none seen", "pairs"):
            return []
        said = "a label that is not true is given with a chance of"
        if self.kind == "common":
            return [f"{said} {100 * np.median(known):.0f} %, about the same for all labels"]
        low, high = 100 * known.min(), 100 * known.max()
        return [f"{said} {low:.0f} to {high:.0f} %, which differs from label to label"]


@dataclass(frozen=True)
class JudgedLabels:
    """What is known of the candidates of n rows and q labels."""

    label_confidence: Matrix  # (n, q), the probability that a candidate is true; 0 elsewhere
    noise: Noise
    missing: Matrix | None = None  # (n, q), that one is true which is no candidate; None: none is

    @property
    def probability(self) -> Matrix:
        """The probability ``(n, q)`` that a label is true, whether it is a candidate or not."""
        known = self.label_confidence
        return known if self.missing is None else known + self.missing

    def to_learn(self, candidates: Matrix) -> Matrix:
        """What to train on, ``(n, q)``: near the candidates where nothing can be won."""
        return cleaned(self.probability, candidates, self.noise.weight)


def judge(
    rows: TrainingRows,
    candidates: Matrix,
    rng: np.random.Generator,
    decided: Decided | None = None,
    given: Array | None = None,
    complete: bool = True,
    votes: Matrix | None = None,
) -> JudgedLabels:
    """Judge every candidate ``(n, q)`` of the training rows, and what a person has added to them.

    What is decided has a label confidence of 1 or 0, and all others are judged in its light.
    Probabilities ``(n, q)`` of another model that are `given` count as much as each of our two.
    Where candidates are not `complete`, labels that are none are judged too. Votes ``(n, q)`` of
    several taggers, above 0 for candidates, are evidence for each of them. Of sparse candidates the
    label confidences are sparse too, and of the labels that are none the likeliest few of each row.
    """
    decided = decided or Decided.nothing()
    answers, candidates = decided.on(candidates), decided.added_to(candidates)
    seed = int(rng.integers(2**31))
    live = can_be_judged(candidates)
    known = to_dense(candidates[rows.of_axes][:, live])
    many = _of_many_rows(rows, candidates, live)
    ours = partial(predict_unseen, rows, known, many=many, seed=seed)
    theirs = None if given is None else given[:, live]
    votes = None if votes is None else votes[:, live]
    inputs = rows.feature_map, rows.scaled, candidates, decided, theirs, complete, votes, seed
    engine = rows.engine.of("judging", *inputs)
    return judge_by(ours, candidates, decided, theirs, complete, votes, rows, engine, answers)


def can_be_judged(candidates: Matrix) -> Array:
    """The labels with enough candidates; the others take no part, and so change no other label."""
    return np.flatnonzero(label_counts(candidates) >= FEWEST)


def judge_by(
    predict: Predict,
    candidates: Matrix,
    decided: Decided,
    given: Array | None = None,
    complete: bool = True,
    votes: Matrix | None = None,
    rows: TrainingRows | None = None,
    engine: Engine = ALONE,
    answers: Decided | None = None,
) -> JudgedLabels:
    """Judge every candidate ``(n, q)`` by a predictor of the k labels that can be judged.

    It takes targets ``(m, k)`` of some rows: all of them, or of very many the sample that the
    axes of the `rows` are of; and what has learned before. It is asked once, about the candidates,
    and where noise is seen once more, for what the first round takes to be true, with what is
    decided as certain. The noise is found out without
    decisions, which are of chosen candidates; then `answers` set the confidences right, of itself
    all that is decided: labels that a person has added are none, for they were chosen because they
    are true. Predictions ``(n, k)`` that are `given` join in as one of three predictors; their
    model cannot be asked again, so the second time the first round speaks for it. Votes ``(n, k)``
    count beside what the features say: in what is predicted the second time, and in the end.
    """
    answers = decided if answers is None else answers
    live = can_be_judged(candidates)
    if not len(live):
        return _nothing_known(candidates, decided, complete)
    n, k = candidates.shape[0], len(live)
    known = sparse.csr_array(candidates[:, live])
    known.sort_indices()
    sample = np.arange(n) if rows is None else rows.of_axes
    voted = None if votes is None else values_at(votes, *known.nonzero())
    every = _Everyone(
        known.indptr,
        known.indices,
        given,
        voted,
        decided.of_labels(live),
        complete,
        sparse.issparse(candidates),
    )
    with steps(4, engine.shown, SECONDS) as progress:
        learned, found = _learn(predict, every, sample, k, progress)
    confidence, chance = (engine.room((known.nnz,), np.float64) for _ in range(2))
    into = _Room(
        confidence, chance, None if complete else _room_for_absent(n, every.most(k), engine)
    )
    every.write(into, sample, found)
    rest = np.setdiff1d(np.arange(n), sample)
    if len(rest):
        assert rows is not None
        kernel = rows.feature_map.kernel_alone
        work = _Judging(
            engine.shared(rows.scaled), rest, every.shared(engine), kernel, learned, into
        )
        of_pairs = k * (VALUES if complete else VALUES + ABSENT)
        need = ROWS_AT_ONCE * (8 * kernel.anchors.shape[0] + of_pairs)
        engine.each(work, row_blocks(len(rest), ROWS_AT_ONCE), need, "judging")
        del work
    learned = replace(learned, predictors=[], others=[])
    give_back()
    ours = _voted(confidence[:], voted, known.indices)
    right, apart = learning.set_right(
        ours, chance[:], known, answers.of_labels(live), learned.model.seen
    )
    judged = _over_all_labels(
        candidates, live, right, learned, decided, answers, apart, voted is not None
    )
    if into.absent is None:
        return judged
    missing, total = _all_missing(into.absent, candidates, live, learned.lost, decided)
    noise = replace(judged.noise, lost=learned.lost, missing=total)
    return replace(judged, noise=noise, missing=missing)


@dataclass(frozen=True)
class Sampled:
    """Ridge and forest, for rows that they were not fitted to."""

    line: Ridge  # on the kernel, not on its mapped features
    forest: Forest
    share: float = 0.5  # of the forest

    def __call__(self, kernel: Array, scaled: Array) -> Array:
        """Predictions ``(b, k)``."""
        by_line = kernel @ self.line.weight + self.line.bias
        return mixed(by_line, self.forest.predict(scaled), self.share)


@dataclass(frozen=True)
class Predictor:
    """What predicts rows that nothing was learned from, or that spoke for others alone."""

    sampled: Sampled | None  # unless logistic regression is better alone
    logistic: Halves | None = None  # of very many rows
    share: float = 0.0  # of logistic regression

    def __call__(self, kernel: Callable[[], Array], scaled: Array, rows: Array) -> Array:
        """Predictions ``(b, k)`` of rows by their features ``(b, d)`` and numbers ``(b,)``."""
        found = self.sampled(kernel(), scaled) if self.sampled else None
        if self.logistic is None:
            assert found is not None
            return found
        more = self.logistic(scaled, rows)
        return more if found is None else mixed(found, more, self.share)


@dataclass(frozen=True)
class Opinion:
    """What is said of the targets ``(m, k)`` of some rows."""

    unseen: Array  # (m, k), predictions for these rows, without having seen their own targets
    predictor: Predictor | None = None  # of other rows, if there are any


class _Absent(NamedTuple):
    """How likely labels of b rows are to be true that are no candidates: the likeliest few."""

    label: Any  # (b, c), in order
    probability: Any  # (b, c)
    rest: Any  # (b,), what others add up to


class _Round(NamedTuple):
    """What is found of b rows, of their candidates row by row, ``(m,)``."""

    confidence: Array
    chance: Array  # of being a candidate
    absent: _Absent | None


class _Room(NamedTuple):
    """Where it is written for all rows."""

    confidence: Any
    chance: Any
    absent: _Absent | None


@dataclass(frozen=True)
class _Everyone:
    """Candidates of all rows and the k labels that can be judged, and what else is known of them.

    The arrays are in memory or in files.
    """

    ends: Any  # (n + 1,), of each row's candidates
    labels: Any  # of the candidates, row by row
    given: Any | None  # (n, k)
    votes: Array | None  # of the candidates
    decided: Decided
    complete: bool
    many: bool  # labels, so that of those which may be missing a few of each row are kept

    def __len__(self) -> int:
        return len(self.ends) - 1

    def most(self, k: int) -> int:
        """The labels of a row that are kept though they are no candidates."""
        return min(k, MOST_MISSING) if self.many else k

    def shared(self, engine: Engine) -> "_Everyone":
        """The same for work on a cluster."""
        ends, labels, given = map(engine.shared, (self.ends, self.labels, self.given))
        return replace(self, ends=ends, labels=labels, given=given)

    def pairs(self, chosen: Array) -> tuple[Array, Array, Array]:
        """Of some rows' candidates: the place among all, the row among the chosen, the label."""
        starts, ends = self.ends[chosen], self.ends[chosen + 1]
        row = np.repeat(np.arange(len(chosen)), ends - starts)
        before = np.cumsum(ends - starts) - (ends - starts)
        place = np.arange(len(row)) + (starts - before)[row]
        return place, row, self.labels[place]

    def targets(self, chosen: Array, k: int, values: Array | float = 1.0) -> Array:
        """Values of the candidates of some rows ``(b, k)``, and 0 elsewhere."""
        found = np.zeros((len(chosen), k))
        _, row, label = self.pairs(chosen)
        found[row, label] = values
        return found

    def settled(self, targets: Array, chosen: Array, values: Array | None = None) -> Array:
        """The same with what is decided of these rows, or with other values of what is."""
        values = self.decided.true if values is None else values
        if len(self.decided.row):
            place = np.minimum(np.searchsorted(chosen, self.decided.row), len(chosen) - 1)
            here = chosen[place] == self.decided.row
            targets[place[here], self.decided.label[here]] = values[here]
        return targets

    def write(self, into: _Room, chosen: Array, found: _Round) -> None:
        """Write what was found of some rows."""
        place, _, _ = self.pairs(chosen)
        into.confidence[place], into.chance[place] = found.confidence, found.chance
        if into.absent is not None and found.absent is not None:
            for room, values in zip(into.absent, found.absent, strict=True):
                room[chosen] = values


@dataclass(frozen=True)
class Learned:
    """All that a sample of the rows teaches, by which each row is judged."""

    model: NoiseModel
    weights: Array  # (k,)
    right: "Calibration"
    span: Span
    tables: tuple[Array, Array]  # chances to be a candidate and to be true, by labels' own curves
    rank: Array  # (k,), of labels' frequency
    tied: float
    lost: float = 0.0
    own_weight: float = 0.5  # of labels' own curves
    again: "Calibration | None" = None  # of the second round, where noise is seen
    predictors: list[Predictor | None] = field(default_factory=list)  # two where noise is seen
    others: list[Others | None] = field(default_factory=list)  # of labels, in each of the rounds

    def first(self, P: Array, scores: Array, label: Array | None) -> tuple[Array, Array]:
        """Confidence and chance of being a candidate, of pairs of labels, or ``(b, k)``."""
        pooled, by_features = self.right(scores), self.right(P)
        place = self.span.place(scores, label)
        own, of_own = (look_up(place, table, label) for table in self.tables)
        rank = self.rank if label is None else self.rank[label]
        chances = pooled, by_features, own, of_own
        confidence = confident(
            self.model, self.weights, *chances, rank, self.tied, label, weight=self.own_weight
        )
        return confidence, between(pooled, own)

    def true(self, P: Array, scores: Array, label: Array | None) -> Array:
        """The chance that labels are true, candidates or not, of pairs of labels or ``(b, k)``."""
        confidence, chance = self.first(P, scores, label)
        return chance * confidence / (1 - self.lost)

    def by_row(self, confidence: Array, P: Array, Y: Array) -> Array:
        """Confidences of candidates Y ``(b, k)``, row by row, in the light of their rows' rates."""
        by_row = self.model.taggers
        if by_row is None:
            return confidence
        rate = float(self.model.chances @ self.weights / self.weights.sum())
        blocks = row_blocks(len(P), ROWS_AT_ONCE)
        added = [by_row.added(P[rows], Y[rows])[Y[rows].nonzero()] for rows in blocks]
        return taggers.believed(confidence, np.concatenate(added), rate, self.model.seen)

    @cached_property
    def in_common(self) -> tuple[NoiseModel, tuple[Array, Array]]:
        """The model with one belief for all labels, as far as they do not differ; its tables."""
        shared = self.model.shared(self.weights)
        return shared, shared.curve_tables(self.span.low, self.span.width)

    def absent(self, P: Array, scores: Array) -> Array:
        """The probability that a label is true, if it is no candidate, ``(b, k)``."""
        shared, tables = self.in_common
        pooled, by_features = self.right(scores), self.right(P)
        place = self.span.place(scores)
        own, of_own = (look_up(place, table) for table in tables)
        chances = pooled, by_features, own, of_own
        sure = confident(shared, self.weights, *chances, self.rank, self.tied, least=TINY)
        return if_absent(between(pooled, own, TINY), sure, self.lost)


def _voted(confidence: Array, votes: Array | None, label: Array) -> Array:
    """Label confidences ``(m,)`` of candidates with what votes add, where there are any."""
    return confidence if votes is None else with_votes(confidence, votes, label)


def _learn(
    predict: Predict, every: _Everyone, sample: Array, k: int, progress: Steps
) -> tuple[Learned, _Round]:
    """Learn from a sample of the rows; what is found of these comes with it."""
    Y = every.targets(sample, k)
    given = None if every.given is None else every.given[sample]
    progress.begin("predicting candidates")
    opinion = predict(Y, None)
    progress.begin("estimating the noise")
    P, weights = _beside(opinion.unseen, given), weights_of(Y)
    seen = noise_model.fit(P, Y)
    model, scores = seen.model, seen.scores
    some = slice(None, None, -(-Y.size // PAIRS_CALIBRATED))
    right = calibrate(scores[some], Y[some], weights)
    place, row, label = every.pairs(sample)
    tied = saturation(right(P[row, label])) if model.groups else 0.0
    rank = frequency_rank(Y.mean(axis=0))
    lost = 0.0 if every.complete else noise_model.lost_share(seen.bins, model.chances)
    learned = Learned(
        model,
        weights,
        right,
        seen.span,
        model.curve_tables(seen.span.low, seen.span.width),
        rank,
        tied,
        lost,
        predictors=[opinion.predictor],
        others=[seen.others],
    )
    votes = None if every.votes is None else every.votes[place]
    first = _first_round(learned, every, sample, P, scores, votes)
    found, left = first.found, confusion.kept(model.confused, row, label)
    if model.seen > NEVER_SURE:
        before = opinion.predictor
        del P, Y, scores, seen, opinion
        progress.begin("predicting what is taken to be true")
        opinion = predict(first.targets, before)
        progress.begin("judging by both")
        P = _beside(opinion.unseen, first.all_true)
        heard = noise_model.heard(model.free, model.confused, k)
        others, again = noise_model.learn_others(P, first.targets, model.first, heard)
        observed = first.targets  # what `true` is of: without rows' rates, votes and decisions
        observed[row, label] = first.alone
        learned = replace(learned, again=calibrate(again[some], observed[some], weights))
        learned.predictors.append(opinion.predictor)
        learned.others.append(others)
        found = _second_round(learned, first, again, row, label)
    return learned, found._replace(confidence=found.confidence * left)


class _First(NamedTuple):
    """What is found of b rows first, and what is asked next."""

    found: _Round
    alone: Array  # (m,), the confidence of each candidate, whatever its row, votes and decisions
    true: Array  # (m,), the chance that its label is true
    absent_true: Array | None  # (b, c), and that those are which are no candidates
    all_true: Array | None  # (b, k), and that any is, where probabilities are given
    targets: Array  # (b, k)


def _first_round(
    learned: Learned,
    every: _Everyone,
    chosen: Array,
    P: Array,
    scores: Array,
    votes: Array | None = None,
) -> _First:
    """What predictions ``(b, k)`` say of some rows.

    Votes are those of the candidates of these rows, where they are enough to learn from.
    """
    _, row, label = every.pairs(chosen)
    pairs = row, label
    alone, chance = learned.first(P[pairs], scores[pairs], label)
    true = chance * alone / (1 - learned.lost)
    all_true = None if every.given is None else learned.true(P, scores, None)
    targets = every.targets(chosen, P.shape[1])
    confidence = learned.by_row(alone, P, targets)
    absent = absent_true = None
    if not every.complete:
        absent, absent_true = _likeliest_absent(learned, every, chosen, P, scores)
        np.put_along_axis(targets, absent.label, absent.probability, axis=1)
    targets[pairs] = _voted(confidence, votes, label)
    found = _Round(confidence, chance, absent)
    return _First(found, alone, true, absent_true, all_true, every.settled(targets, chosen))


def _likeliest_absent(
    learned: Learned,
    every: _Everyone,
    chosen: Array,
    P: Array,
    scores: Array,
) -> tuple[_Absent, Array]:
    """Labels of some rows that are likeliest to be true though they are no candidates.

    Takes predictions ``(b, k)``. Also gives the chance that they are true, ``(b, c)``.
    """
    b, k = P.shape
    found, true = _room_for_absent(b, every.most(k), ALONE), np.empty((b, every.most(k)))
    for rows in row_blocks(b, ROWS_AT_ONCE):
        here = learned.absent(P[rows], scores[rows])
        _, row, candidate = every.pairs(chosen[rows])
        here[row, candidate] = 0
        every.settled(here, chosen[rows], np.zeros(len(every.decided.row)))
        label = np.sort(np.argpartition(-here, every.most(k) - 1, axis=1)[:, : every.most(k)])
        found.label[rows] = label
        found.probability[rows] = np.take_along_axis(here, label, axis=1)
        found.rest[rows] = here.sum(axis=1) - found.probability[rows].sum(axis=1)
        of_P, of_scores = (np.take_along_axis(M[rows], label, axis=1) for M in (P, scores))
        flat = of_P.ravel(), of_scores.ravel(), label.ravel()
        true[rows] = learned.true(*flat).reshape(label.shape)
    return found, true


def _second_round(
    learned: Learned, first: _First, again: Array, row: Array, label: Array
) -> _Round:
    """Confidences after the predictors have been asked again, what the first round took for true.

    They say ``(b, k)``.
    """
    found, seen, chance = first.found, learned.model.seen, learned.again
    assert chance is not None
    step = seen * (chance(again[row, label]) - first.true) / 2
    absent = found.absent
    if absent is not None and first.absent_true is not None:
        asked = chance(np.take_along_axis(again, absent.label, axis=1))
        change = seen * (asked - first.absent_true) / 2
        moved_on = moved(absent.probability, first.absent_true, change)
        absent = absent._replace(probability=moved_on)
    return _Round(moved(found.confidence, first.true, step), found.chance, absent)


def _room_for_absent(n: int, most: int, engine: Engine) -> _Absent:
    """Room for so many labels of n rows that may be missing."""
    label, probability = engine.room((n, most), np.int32), engine.room((n, most), np.float64)
    return _Absent(label, probability, engine.room((n,), np.float64))


def _all_missing(
    found: _Absent, candidates: Matrix, live: Array, lost: float, decided: Decided
) -> tuple[Matrix, float]:
    """The probability ``(n, q)`` that labels are missing, and how many are, these or others.

    Takes what was found of `live` labels; the others are missing as often as they are rare.
    """
    n, q = candidates.shape
    rare = lost / (1 - lost) * _rare_share(candidates)
    label, probability = live[found.label[:]], np.array(found.probability[:])
    if not sparse.issparse(candidates):
        missing = rare * (candidates == 0)
        missing[:, live] = 0
        np.put_along_axis(missing, label, probability, axis=1)
        missing[decided.row, decided.label] = 0
        return missing, float(missing.sum())
    rare[live] = 0
    ends = np.arange(n + 1) * label.shape[1]
    missing = sparse.csr_array((probability.ravel(), label.ravel(), ends), shape=(n, q))
    missing.eliminate_zeros()
    total = missing.data.sum() + found.rest[:].sum() + rare @ (n - label_counts(candidates))
    return missing, float(total)


@dataclass(frozen=True)
class _Judging:
    """Judging blocks of the rows that nothing was learned from."""

    scaled: Any  # (n, d)
    rest: Array  # which rows these are
    every: _Everyone
    feature_map: FeatureMap
    learned: Learned
    into: _Room

    def __call__(self, block: slice) -> None:
        """Judge a block, and write what is found."""
        chosen, learned = self.rest[block], self.learned
        scaled = self.scaled[chosen]
        kernel = cache(partial(self.feature_map.kernel, scaled))
        given = None if self.every.given is None else self.every.given[chosen]
        first, *second = (each(kernel, scaled, chosen) for each in learned.predictors if each)
        P = _beside(first, given)
        Y = self.every.targets(chosen, P.shape[1])
        scores = noise_model.scored(learned.others[0], learned.model.taggers, P, Y)
        first_round = _first_round(learned, self.every, chosen, P, scores)
        found = first_round.found
        _, row, label = self.every.pairs(chosen)
        left = confusion.left(learned.model.confused, P, Y)[row, label]
        for ours in second:
            P = _beside(ours, first_round.all_true)
            again = noise_model.scored(learned.others[1], None, P, first_round.targets)
            found = _second_round(learned, first_round, again, row, label)
        found = found._replace(confidence=found.confidence * left)
        self.every.write(self.into, chosen, found)

    def written(self, block: slice) -> list[Array]:
        """What was found of a block."""
        chosen = self.rest[block]
        place, _, _ = self.every.pairs(chosen)
        absent = [room[chosen] for room in self.into.absent or ()]
        return [self.into.confidence[place], self.into.chance[place], *absent]


def _rare_share(candidates: Matrix) -> Array:
    """The share of rows that each label is expected in, of however few candidates; 0 of none."""
    counts = label_counts(candidates)
    return (counts > 0) * (counts + 1) / (candidates.shape[0] + 2)


def _beside(ours: Array, given: Array | None) -> Array:
    """The mean of our two predictors with a third one, if it is given."""
    return ours if given is None else (2 * ours + given) / 3


def confident(
    model: NoiseModel,
    weights: Array,
    pooled: Array,
    by_features: Array,
    own: Array,
    of_own: Array,
    rank: Array,
    tied: float,
    label: Array | None = None,
    least: float = NEVER_SURE,
    weight: float = 0.5,
) -> Array:
    """The label confidence of the first round, by chances of being a candidate.

    All are ``(n, q)``, or ``(m,)`` of pairs of the labels that are given, and so is the rank of
    the frequency of their label, or ``(q,)``: chances by all evidence and by the features alone; by
    the label's own curve, and the confidence that this gives, which has a `weight`. What is seen
    of noise may make it as small as `least`.
    """
    by_all, by_own = believed_confidence(pooled, model, label), of_own * without_doubt(own)
    found = between(by_all, by_own, least, weight)
    apart = model.apart(weights)
    by_noise = believed_confidence(by_features, model, label)
    believed = apart * by_noise + (1 - apart) * by_features
    share = ABSTAIN - (ABSTAIN - DOUBT) * confusion.dragged(model.confused, len(weights))
    unsure = abstaining(by_features, believed, rank, tied, share if label is None else share[label])
    return model.seen * found + (1 - model.seen) * unsure


def if_absent(chance: Array, confidence: Array, lost: float) -> Array:
    """The probability that a label is true which is no candidate, by its chance of being one.

    Of labels that are true, a share is lost whatever the row: for `1 - lost` that are true
    candidates there are `lost` that are none.
    """
    return np.minimum(lost / (1 - lost) * chance * confidence / (1 - chance), 1 - NEVER_SURE)


def _of_many_rows(rows: TrainingRows, candidates: Matrix, live: Array) -> Matrix | None:
    """The candidates of `live` labels of the rows that logistic regression learns from.

    None where kernel and forest learn from all rows, or its weights would be too many.
    """
    n, d = rows.scaled.shape
    if len(rows.of_axes) == n or d * len(live) > logistic.MOST_WEIGHTS:
        return None
    return sparse.csr_array(candidates[logistic.many_rows(rows.scaled)])[:, live]


def predict_unseen(
    rows: TrainingRows,
    known: Array,
    targets: Array,
    before: Predictor | None = None,
    *,
    seed: int,
    many: Matrix | None = None,
) -> Opinion:
    """Predictions of targets by what has not seen the row.

    Those that are `known`, the candidates, and targets are of the rows that the axes are of,
    ``(m, k)``. Of very many rows logistic regression joins in, as far as it helps: it learns the
    candidates of `many` rows first, and from what it knew before on, other targets.
    """
    if len(rows.of_axes) == rows.scaled.shape[0]:
        return _of_sample(rows, known, targets, rows.scaled, seed, 0.5)
    line = _straight(rows, targets, before, many)
    scaled = rows.scaled[rows.of_axes]
    if line is None:
        return _of_sample(rows, known, targets, scaled, seed)
    by_line, share = line(scaled, rows.of_axes), 1.0
    if before is None or before.sampled is not None:
        opinion = _of_sample(rows, known, targets, scaled, seed)
        share = best_share(opinion.unseen, by_line, targets)
    if share > 1 - LEAST_SHARE:
        return Opinion(by_line, Predictor(None, line, 1.0))
    if share < LEAST_SHARE:
        return opinion
    assert opinion.predictor is not None
    both = mixed(opinion.unseen, by_line, share)
    return Opinion(both, replace(opinion.predictor, logistic=line, share=share))


def _straight(
    rows: TrainingRows, targets: Array, before: Predictor | None, many: Matrix | None
) -> Halves | None:
    """Logistic regression of candidates, or of targets of the rows that the axes are of."""
    if before is not None:
        line = before.logistic
        return line and logistic.learn_on(line, rows.scaled, rows.of_axes, targets, rows.engine)
    if many is None:
        return None
    chosen = logistic.many_rows(rows.scaled)
    return logistic.learn(rows.scaled, chosen, many, rows.engine)


def _of_sample(
    rows: TrainingRows,
    known: Array,
    targets: Array,
    scaled: Matrix,
    seed: int,
    share: float | None = None,
) -> Opinion:
    """Predictions by ridge and forest, both of these rows; the forest's share may be given."""
    fitted = rows.axes.fit(known, targets)
    left_out, line = fitted.left_out, rows.feature_map.on_kernel(fitted.head)
    del fitted
    forest, unseen = forests.grow(scaled, targets, seed, TREES, LEAF, rows.engine.shown)
    share = best_share(left_out, unseen, targets) if share is None else share
    return Opinion(mixed(left_out, unseen, share), Predictor(Sampled(line, forest, share)))


def mixed(one: Array, other: Array, share: float) -> Array:
    """Predictions between two, in the place of the other, which has a share."""
    other *= share
    other += (1 - share) * one
    return other


def best_share(one: Array, other: Array, targets: Array) -> float:
    """The share of the other predictions with which both together err the least, 0 ... 1."""
    gained = product = 0.0
    for rows in row_blocks(len(one), ROWS_AT_ONCE):
        apart = other[rows] - one[rows]
        gained += float(((targets[rows] - one[rows]) * apart).sum())
        product += float((apart * apart).sum())
    return min(max(gained / product, 0.0), 1.0) if product else 0.5


@dataclass(frozen=True)
class Calibration:
    """What makes probabilities of scores, linear between points."""

    x: Array
    y: Array

    def __call__(self, scores: Array) -> Array:
        """Probabilities of any scores."""
        return _sure(np.interp(scores, self.x, self.y))


def calibrate(scores: Array, observed: Array, weights: Array) -> Calibration:
    """What makes probabilities of scores: in every bin as many as observed, never out of order.

    Bins hold the same weight of pairs, by labels ``(q,)``, so that rare labels do not fill them.
    """
    from sklearn.isotonic import isotonic_regression

    order = np.argsort(scores, axis=None, kind="stable")
    w = np.broadcast_to(weights, scores.shape).ravel()[order]
    total = np.cumsum(w)
    place = np.minimum((total - w / 2) / total[-1] * BINS, BINS - 1).astype(int)
    mass = np.bincount(place, w, BINS)
    sums = (np.bincount(place, w * M.ravel()[order], BINS) for M in (scores, observed))
    filled = mass[mass > 0]
    x, y = (each[mass > 0] / filled for each in sums)
    y = (1 - SLOPE) * isotonic_regression(y, sample_weight=filled) + SLOPE * x
    x, y = (np.concatenate([v[:1] - 1, v, v[-1:] + 1]) for v in (x, y))  # a slope of 1 beyond
    return Calibration(x, y)


def posterior(true: Array, chance: Array | float) -> Array:
    """Probability that a candidate is true, from the estimated one that its label is, seen or not.

    An estimate near 0 or below becomes small but positive, in the same order.
    """
    small = NEVER_SURE / (2 - np.minimum(true / NEVER_SURE, 1))
    true = np.where(true < NEVER_SURE, small, np.minimum(true, 1))
    return true / (true + (1 - true) * chance)


def believed_confidence(chance: Array, model: NoiseModel, label: Array | None = None) -> Array:
    """Confidence ``(n, q)`` by the chance of being a candidate, if the noise is as it is believed.

    Both may also be of pairs of the labels that are given, ``(m,)``.
    Some doubt stays of what the features do not predict: noise that follows them leaves no floor.
    """
    return look_up(chance, mean_confidence(model.beliefs), label) * without_doubt(chance)


def without_doubt(chance: Array) -> Array:
    """What is left of a confidence, by the chance of being a candidate."""
    return 1 - DOUBT * (1 - chance)


def between(one: Array, other: Array, least: float = NEVER_SURE, weight: float = 0.5) -> Array:
    """Probabilities midway between two, by log odds, each from `least` to one less it.

    The other may have less `weight` than a half.
    """
    first, second = (p / (1 - p) for p in (_sure(each, least) for each in (one, other)))
    odds = np.sqrt(first * second) if weight == 0.5 else first ** (1 - weight) * second**weight
    return odds / (1 + odds)


def _sure(probability: Array, least: float = NEVER_SURE) -> Array:
    return np.clip(probability, least, 1 - least)


def mean_confidence(beliefs: Array) -> Array:
    """Confidence ``(len(GRID), q)`` of a candidate by its chance of being one, over all rates."""
    return posterior((GRID[:, None] - RATES) / (1 - RATES), RATES) @ beliefs


def frequency_rank(share: Array) -> Array:
    """The rank of each label by the share of rows that it is given to, up to 1, ``(q,)``."""
    return rankdata(share, "max") / len(share)


def abstaining(chance: Array, believed: Array, rank: Array, tied: float, share: Array) -> Array:
    """Confidence ``(n, q)`` where no noise is seen: at least a half, in order.

    A `share` of the way from certain to what is believed, half of it, or less for labels that are
    confused, for then some is seen: what the features say, or where labels seem to differ in their
    noise, what follows from that. Where the features only repeat the candidates, those that they
    are sure of are equal, and the more frequent label is the likelier one.
    """
    equal = np.minimum(chance, TIED) / TIED * rank
    return 1 - share * (1 - ((1 - tied) * believed + tied * equal))


def saturation(chances: Array) -> float:
    """Whether the features tell most candidates for sure, and so just repeat them, 0 ... 1."""
    return float(np.clip(((chances >= SATURATED).mean() - HALF[0]) / (HALF[1] - HALF[0]), 0, 1))


def moved(confidence: Array, true: Array, step: Array) -> Array:
    """Confidences after the chance that the label is true has moved: their odds by its odds."""
    before, after = _sure(true), _sure(true + step)
    odds = after / (1 - after) * (1 - before) / before * confidence
    return odds / (odds + 1 - confidence)


def worth(
    model: NoiseModel, counts: Array, tied: float, answers: int, apart_by_answers: float
) -> float:
    """The weight of label confidences in what is trained on, 0 ... 4.

    Candidates of one common chance rank as the truth does, so that part of the way is enough; where
    chances differ from label to label, nearly all of it is not too much. Where no noise is seen,
    that can only be known by how frequent labels are (their confidences are halfway to certain,
    which the fourth power takes back), or if features just repeat the candidates; or it is of
    labels that are confused, and counts as far as candidates are of such. No loss on
    candidates can tell: the confidences have seen a row's labels through those of other rows. With
    the answers of a person noise is seen after all, and how far labels are apart.
    """
    apart = model.apart(counts)
    seen = ALWAYS + APART * max(apart, min(apart_by_answers, 1))
    confused = confusion.dragged(model.confused, len(counts)) @ counts / counts.sum()
    unseen = max(tied + (1 - tied) * 4 * apart, confused)
    sure = 1 - (1 - model.seen) * ENOUGH / (ENOUGH + answers)
    return float(sure * seen + (1 - sure) * unseen)


def noise_rates(label_confidence: Matrix, candidates: Matrix) -> Array:
    """The estimated share of each label's candidates that are false, ``(q,)``; NaN without any."""
    counts, true = label_counts(candidates), label_counts(label_confidence)
    return 1 - np.divide(true, counts, out=np.full(len(counts), np.nan), where=counts > 0)


def identification(true: Array, label_confidence: Array) -> dict[str, float | None]:
    """How well label confidences tell which candidates are false, by the truth of each.

    ROC AUC; average precision of the false ones; share of false ones among the 5 % that are
    suspected most; and how far confidences are from the shares that are true, on average. The truth
    is 1 or 0; candidates of which it is not known, -1, are left out.
    """
    from sklearn.metrics import average_precision_score, roc_auc_score

    known = true >= 0
    true, label_confidence = true[known], label_confidence[known]
    if set(np.unique(true)) != {0, 1}:
        return dict.fromkeys(["auc", "average_precision", "precision_top_5", "calibration_error"])
    worst = np.argsort(label_confidence, kind="stable")[: max(1, round(0.05 * len(true)))]
    bins = np.minimum((label_confidence * TENTHS).astype(int), TENTHS - 1)
    gaps = np.bincount(bins, true - label_confidence, TENTHS)
    return {
        "auc": float(roc_auc_score(true, label_confidence)),
        "average_precision": float(average_precision_score(1 - true, -label_confidence)),
        "precision_top_5": float(1 - true[worst].mean()),
        "calibration_error": float(abs(gaps).sum() / len(true)),
    }


def _over_all_labels(
    candidates: Matrix,
    live: Array,
    judged: Array,
    learned: Learned,
    decided: Decided,
    answers: Decided,
    apart_by_answers: float,
    voted: bool,
) -> JudgedLabels:
    """What was found of the candidates of `live` labels, and what is to be said of the others."""
    n, q = candidates.shape
    counts, model = label_counts(candidates), learned.model
    rest = np.setdiff1d(np.arange(q), live)
    heeded = ["votes"] * voted + ["decisions"] * bool(len(answers.row))
    found = sparse.csr_array(candidates, dtype=np.float64)
    found.sort_indices()
    lives = np.isin(found.indices, live)
    wrong = np.unique(found.indices[lives][judged < EVEN_ODDS])
    found.data[lives] = judged
    found.data[~lives] = max(judged.sum() / len(judged), ABSTAIN)
    confidence = decided.settle(found if sparse.issparse(candidates) else found.toarray())
    rates = noise_rates(confidence, candidates)
    low, high = interval(model.beliefs, counts[live] / n, n)
    lower, upper, chances = np.zeros(q), np.ones(q), np.full(q, np.nan)
    lower[live] = model.seen * low
    upper[live] = model.seen * high + 1 - model.seen
    chances[live] = model.chances
    lower, upper = by_answers(rates, lower, upper, np.bincount(answers.label, minlength=q))
    noise = Noise(
        kind=model.kind(counts[live]),
        rates=rates,
        lower=lower,
        upper=upper,
        chances=chances,
        dispersion=model.dispersion,
        deviation=model.deviation(counts[live]),
        seen=model.seen,
        weight=worth(model, counts[live], learned.tied, len(answers.row), apart_by_answers),
        by_row=model.seen * model.taggers.weight if model.taggers else 0.0,
        warnings=_warnings(model, learned.tied, live, rest, counts, n, high - low, wrong, heeded),
    )
    return JudgedLabels(confidence, noise)


def by_answers(rates: Array, lower: Array, upper: Array, answers: Array) -> tuple[Array, Array]:
    """Intervals of rates ``(q,)`` no wider than so many answers on each label leave them."""
    give = np.where(
        answers > 0,
        DEVIATIONS * np.sqrt((rates * (1 - rates) + 1 / (answers + 2)) / np.maximum(answers, 1)),
        1,
    )
    lower, upper = np.maximum(lower, rates - give), np.minimum(upper, rates + give)
    return np.fmin(lower, rates), np.fmax(upper, rates)


def interval(beliefs: Array, share: Array, n: int) -> tuple[Array, Array]:
    """Between which shares of each label's candidates are false, with 90 %, each ``(q,)``.

    At a rate, a label that is a candidate of a `share` of the rows has rate (1 - true share) false
    ones: that is rate / (1 - rate) times (1 - share) / share of them, give or take what is drawn.
    """
    rate = RATES[:, None]
    false = np.minimum(rate / (1 - rate) * (1 - share) / share, 1)
    drawn = np.sqrt(false * (1 - rate) / (n * share))
    flat = beliefs**FLAT
    below = (flat / flat.sum(axis=0)).cumsum(axis=0)
    at = [(below >= level).argmax(axis=0)[None] for level in INTERVAL]
    low, middle, high = (np.take_along_axis(false, place, axis=0)[0] for place in at)
    give = DEVIATIONS * np.take_along_axis(drawn, at[1], axis=0)[0]
    return (
        np.maximum(middle - np.hypot(middle - low, give), 0),
        np.minimum(middle + np.hypot(high - middle, give), 1),
    )


def _warnings(
    model: NoiseModel,
    tied: float,
    live: Array,
    rest: Array,
    counts: Array,
    n: int,
    width: Array,
    wrong: Array,
    heeded: list[str],
) -> list[Remark]:
    """What cannot be known from these data, and how much is called wrong all the same.

    That are candidates of the labels that are `wrong`, by what was `heeded` beside the features.
    """
    found = []
    pairs = [(live[list(pair.labels)].tolist(), pair.sure) for pair in model.confused]
    taken = [labels for labels, sure in pairs if sure >= EVEN_ODDS]
    if model.seen < 0.5:
        other, more = ("other ", "else ") if taken else ("", "")
        if np.isin(wrong, [label for labels in taken for label in labels]).all():
            called = f"nothing {more}is called wrong"
        elif heeded:
            called = f"only {' and '.join(heeded)} call anything {more}wrong"
        else:
            called = f"hardly anything {more}is called wrong"
        found.append(
            Remark(
                f"no {other}noise can be seen, because there is none, or the features do not "
                f"predict the labels, or they predict the noise too; {called}",
                [],
            )
        )
    if tied > 0.5:
        found.append(
            Remark(
                "the features tell nearly every candidate, so that what is false among them leaves "
                "no trace; the more frequent labels are taken to be likelier",
                [],
            )
        )
    about = {
        "their noise can hardly be known": live[(width > WIDE) & (model.seen >= 0.5)],
        "nearly every row has them": live[counts[live] >= NEARLY_ALL * n],
        "given to so many rows that most of it may be noise; only a person can say": live[
            (model.chances >= 0.5) & (model.seen < 0.5) & (counts[live] < NEARLY_ALL * n)
        ],
        f"not judged, fewer than {FEWEST} candidates": rest[counts[rest] > 0],
        "go together more than the features foretell; whether one brings in another that is wrong, "
        "only a person can say": np.unique(
            [label for labels, sure in pairs if sure < EVEN_ODDS for label in labels]
        ),
    }
    found += [Remark(text, labels.tolist()) for text, labels in about.items() if len(labels)]
    confused = "taken for each other: rows with both look like rows with only one of them"
    same = "given to the same rows; which of them is wrong, only a person can say"
    return [
        *found,
        *(Remark(confused, labels) for labels in taken),
        *(Remark(same, live[group].tolist()) for group in model.groups),
    ]


def _nothing_known(candidates: Matrix, decided: Decided, complete: bool) -> JudgedLabels:
    """Where no label has enough candidates."""
    q = candidates.shape[1]
    confidence = decided.settle(ABSTAIN * candidates)
    noise = Noise(
        kind="none seen",
        rates=noise_rates(confidence, candidates),
        lower=np.zeros(q),
        upper=np.ones(q),
        chances=np.full(q, np.nan),
        dispersion=1.0,
        deviation=0.0,
        seen=0.0,
        weight=0.0,
        warnings=[Remark(f"no label has {FEWEST} candidates; nothing can be judged", [])],
    )
    nothing = sparse.csr_array if sparse.issparse(candidates) else np.zeros
    return JudgedLabels(confidence, noise, None if complete else nothing(candidates.shape))
