"""Which noise it is: how often each label is a candidate where it is not true.

A predictor says how likely each label is to be a candidate of a row, without having seen the row's
own labels: P. A false label j is a candidate with chance rho_j, so over rows with the same score s

    P(candidate | s) = rho_j + (1 - rho_j) sigmoid(a_j + b_j s),

and the floor that this curve has where s is low is what shows rho_j. The scores are log odds of
predictions, in which a rare label, too, comes out of its floor in a straight line; as numbers they
would bend, and the floor be taken for the foot of the bend. Each label's floor is judged together
with all others' (`believed`): labels share a rate as far as the data say, so that "one chance for
all labels" and "one per label" are the ends of one prior. Rates may rise with the share of rows
that a label is given to, which false candidates add to. Where labels compete for places (rows
padded to a count) there is one rate. Where no label shows a floor, nothing is known of the noise
(`seen_noise`).

Arrays are of n rows, q labels, G rates and B bins of rows.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse.csgraph import connected_components
from scipy.special import expit

from wscpml.arrays import Array, pair_blocks, row_blocks
from wscpml.quality import confusion, taggers
from wscpml.quality.confusion import Confused
from wscpml.quality.taggers import Taggers

# (G,), even in Jeffreys' measure, from next to none up to 0.95: a label that is a candidate of
# nearly every row shows nothing, its rate least of all.
ANGLES = np.linspace(0.02, np.arcsin(np.sqrt(0.95)), 64)
RATES = np.sin(ANGLES) ** 2
SOFT = 0.3  # of the share of rows that a label is given to: smaller predictions are nearly alike
BINS = 40  # of rows, in which predictions are compared with candidates
PENALTIES = (3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)  # of other labels as evidence; or not at all
COMPETE, FREE = 0.25, 0.5  # dispersion up to which labels compete, and from which they do not
ALONE = 1.0  # dispersion of independent labels
LEVEL, SPREAD, STEEP = -2.0, 1.5, 3.0  # logit of the truth on an average row, deviation; of slopes
ROUNDS, PRIORS = 3, 3.0  # that find the level; labels that LEVEL counts for
NONE = 0.05  # prior share of labels without noise
FRESH = (1.0, 10.0, 100.0)  # labels that the trend counts for: few is common noise, or in groups
TREND = 0.9  # share of the prior that follows the trend; the rest is any rate
SCATTER = 0.02  # variance around the trend that is foreseen, and of candidate shares
SURE = 2.0  # labels that it counts for
OUTLIER = np.exp(-5.0)  # likelihood that one label can deny a common rate at most
EXCESS, LEAST, EACH = 1.0, 6.0, 0.1  # log likelihood of floors that may be chance: see `seen_noise`
ALIKE = 0.9  # correlation of columns that cannot be told apart
DIFFERENT = 0.1  # deviation between labels' chances from which they are told to differ
STEPS, MORE_STEPS = 20, 6  # of the fit of curves, most converge in less; of one that is near
STILL, WORTH_LEAVING = 1e-9, 0.9  # a step that is none; share of curves below which others are left
FAR, REACH = 60.0, 10.0  # log likelihood that is out of reach, and what a step may promise of it
PLACES = 201  # scores that a label's curve is tabulated at
LABELS_AT_ONCE = 256
# (H,), shares of the true labels that may be lost, and the log prior of each: one in ten
LOST = np.array([0.01, 0.03, 0.06, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5])
SELDOM = 8 * np.log(1 - LOST)
BENT = 0.25  # what the evidence for it counts
LEAST_SPAN = 0.05  # of a curve, from floor to ceiling


@dataclass(frozen=True)
class Prior:
    """What is assumed of a curve: a ~ N(level, spread), b ~ N(0, steep) and not negative."""

    level: float
    spread: float
    steep: float


HARDLY_ANY = Prior(-1.0, 6.0, 6.0)


@dataclass(frozen=True)
class NoiseModel:
    """What the candidates of n rows and q labels show of their noise."""

    beliefs: Array  # (G, q), how likely each rate is the label's
    curves: "Curves"  # of the labels at each rate
    dispersion: float  # of rows' counts: about 0 where rows are padded, 1 for independent noise
    seen: float  # weight of the noise that is seen, 0 ... 1
    groups: list[list[int]]  # of labels that are given to the same rows
    first: Array  # (q,), the first label of each one's group
    confused: list[Confused]  # pairs of labels that may be taken for each other
    taggers: Taggers | None  # by whom rates differ from row to row; None: they do not

    @property
    def free(self) -> float:
        """How far labels are free of each other, 0 ... 1: at 0 they compete for places."""
        return freedom(self.dispersion)

    @property
    def chances(self) -> Array:
        """The chance of each label to be a candidate where it is not true, ``(q,)``."""
        return RATES @ self.beliefs

    def curve_tables(self, low: Array, width: Array) -> tuple[Array, Array]:
        """By each label's own curve, over all that its rate may be, both ``(PLACES, q)``.

        The chance of being a candidate, and the probability that one is true, at standard scores
        from `low` to `low + width` ``(q,)``.
        """
        s = low + width * np.linspace(0, 1, PLACES)[:, None]
        chance, confidence = np.zeros(s.shape), np.zeros(s.shape)
        for rate, belief, a, b in zip(
            RATES, self.beliefs, self.curves.a, self.curves.b, strict=True
        ):
            true = expit(a + b * s)
            seen = rate + (1 - rate) * true
            chance += belief * seen
            confidence += belief * true / seen
        return chance, confidence

    def deviation(self, weights: Array) -> float:
        """How far labels' chances are apart, by weights ``(q,)``, in units of arcsin sqrt."""
        weights = weights / weights.sum()
        means = ANGLES @ self.beliefs
        within = weights @ ((ANGLES[:, None] - means) ** 2 * self.beliefs).sum(axis=0)
        between = weights @ (means - weights @ means) ** 2
        return float(np.sqrt(max(between - within, 0)))

    def apart(self, weights: Array) -> float:
        """Whether chances differ from label to label, 0 ... 1."""
        return min(self.deviation(weights) / DIFFERENT, 1) * self.free

    def shared(self, weights: Array) -> "NoiseModel":
        """The same, but one belief for all labels, as far as their chances do not differ."""
        common = self.beliefs @ (weights / weights.sum())
        apart = self.apart(weights)
        return replace(self, beliefs=apart * self.beliefs + (1 - apart) * common[:, None])

    def kind(self, weights: Array) -> str:
        """In a word: `none seen`, `common` to all labels, `per label`, or `pairs` alone."""
        if self.seen < 0.5:
            return "pairs" if any(pair.sure >= 0.5 for pair in self.confused) else "none seen"
        return "common" if self.apart(weights) < 0.5 else "per label"


@dataclass(frozen=True)
class Seen:
    """What predictions of n rows show, and all that other rows are judged by."""

    model: NoiseModel
    scores: Array  # (n, q), predictions by features and other labels, which the curves are of
    others: "Others | None"  # that made scores of predictions; None: predictions are the scores
    span: "Span"  # of the scores
    bins: "Bins"


def fit(P: Array, Y: Array, cautious: bool = False) -> Seen:
    """Find out which noise is in candidates Y, by predictions P of them, both ``(n, q)``.

    Every label has candidates. P has not seen the row that it is of. A `cautious` one hears other
    labels as far as their evidence is not chance (`Others.real`).
    """
    groups, first = alike(Y)
    found = dispersion(P, Y)
    free = freedom(found)
    pairs = confusion.confused(P, Y) if free else []
    by_others = heard(free, pairs, Y.shape[1])
    others, scores = learn_others(P, Y, first, by_others)
    if cautious and others is not None:
        others = replace(others, share=others.real)
        scores = P + others.share * (scores - P)
    by_row = None
    if others is not None and found > ALONE:
        by_row = taggers.learn(P, Y, scores, first, by_others)
    if others is not None and by_row:
        scores = by_row.taken_from(scores, P, Y, others.told)
    bins, span = by_label(scores, Y)
    floors = bins
    if groups and free:  # what labels say for each other may hide a floor, never make one
        among, scored_alone = learn_others(P, Y, np.arange(Y.shape[1]), by_others)
        if among is not None and by_row:
            scored_alone = by_row.taken_from(scored_alone, P, Y, among.told)
        floors, _ = by_label(scored_alone, Y)
    model = by_bins(bins, floors, weights_of(Y), found, groups, first, pairs, by_row)
    return Seen(model, scores, others, span, bins)


def by_bins(
    bins: "Bins",
    floors: "Bins",
    weights: Array,
    dispersion: float,
    groups: list[list[int]],
    first: Array,
    pairs: list[Confused],
    by_row: Taggers | None,
) -> NoiseModel:
    """Which noise it is, by the bins of each label's scores; `floors` show whether there is any."""
    beliefs, curves = levelled(bins, weights, freedom(dispersion))
    seen = seen_noise(fit_curves(floors, HARDLY_ANY))
    return NoiseModel(beliefs, curves, dispersion, seen, groups, first, pairs, by_row)


def scored(others: "Others | None", by_row: Taggers | None, P: Array, Y: Array) -> Array:
    """The scores of rows that nothing was learned from, by predictions P of Y ``(b, q)``."""
    if others is None:
        return P
    scores = others.added_to(P, Y)
    return scores if by_row is None else by_row.taken_from(scores, P, Y, others.told)


def weights_of(Y: Array) -> Array:
    """What each label counts, ``(q,)``: as much as it has candidates, 1 on average."""
    share = Y.mean(axis=0)
    return share / share.mean()


def dispersion(P: Array, Y: Array) -> float:
    """Variance of rows' counts beyond their predictions, in units of independent labels'."""
    expected, beyond = 0.0, np.empty(len(P))
    for rows in pair_blocks(*P.shape):
        expected += np.clip(P[rows] * (1 - P[rows]), 0, None).sum(axis=1).sum()
        beyond[rows] = (Y[rows] - P[rows]).sum(axis=1)
    return float(beyond.var() / max(expected / len(P), 1e-12))


def freedom(dispersion: float) -> float:
    """How far labels are free of each other, 0 ... 1, by the dispersion of rows' counts."""
    return float(np.clip((dispersion - COMPETE) / (FREE - COMPETE), 0, 1))


def heard(free: float, pairs: list[Confused], q: int) -> Array:
    """How far other labels are evidence of each of q labels, ``(q,)``, 0 ... 1.

    As far as labels are free; but not of one that is confused: its twin would speak for it.
    """
    return free * (1 - confusion.dragged(pairs, q))


@dataclass(frozen=True)
class Others:
    """What a row's other labels add to the prediction of each, as far as they are heard.

    Ridge regression of each label's residual on the other labels', at the penalty of the smallest
    squared error with the row left out, label by label; nothing where none makes it smaller. With
    M the Gram matrix of the residuals plus penalty, one inverse serves all labels: their residuals
    are M^-1 z / diag M^-1, their leverages follow from the same products. Labels that are given to
    the same rows do not testify for each other: only the first of them does.
    """

    ones: Array  # (k,), the labels that testify
    back: Array  # (q,), which of these speaks for each label
    size: Array  # (k,), of the residuals
    inverse: Array  # (k, k), of M, a column by the penalty of its label
    penalty: Array  # (k,), which it is; -1: none, the others say nothing
    heard: Array  # (q,), how far it counts
    share: float = 1.0  # and all of them

    @property
    def told(self) -> Array:
        """How far each label is told by the others, ``(q,)``, beside how far it is heard."""
        return self.share * (self.penalty >= 0)[self.back]

    @property
    def real(self) -> float:
        """The share of what is chosen that is not by chance, 0 ... 1.

        A label that the others say nothing of seems to be told by them half of the time: so there
        are as many of these as of labels without evidence (Storey's false discovery rate).
        """
        told = float((self.penalty >= 0).mean())
        return max(2 - 1 / told, 0) if told else 0.0

    @property
    def own(self) -> Array:
        """The diagonal ``(k,)`` of M^-1."""
        return np.where(self.penalty >= 0, self.inverse.diagonal(), 1)

    def added_to(self, P: Array, Y: Array, of_row: Array | None = None) -> Array:
        """Predictions P of Y, both ``(n, q)``, with what the other labels add to them.

        Of rows that it was learned from, `of_row` ``(n, len(PENALTIES))`` tells how far to leave
        them out: the products of their residuals with M^-1 and themselves.
        """
        R = (Y - P)[:, self.ones]
        along = (R / self.size) @ self.inverse
        if of_row is None:
            left_out = self.size * (along / self.own)
        else:
            leverages = of_row[:, self.penalty]
            left_out = residual_left_out(along, leverages, self.own, self.size)
        return P + self.heard * self.told * (R - left_out)[:, self.back]


def learn_others(P: Array, Y: Array, first: Array, heard: Array) -> tuple[Others | None, Array]:
    """What the labels say for each other, and predictions P of Y with that, both ``(n, q)``.

    Of labels that are given to the same rows only the ``first (q,)`` testifies. Those that others
    are not `heard` of ``(q,)`` keep their predictions.
    """
    if not heard.any():
        return None, P
    ones, back = np.unique(first, return_inverse=True)
    n, k, blocks = len(P), len(ones), pair_blocks(*P.shape)
    squares = sum(((Y[rows] - P[rows])[:, ones] ** 2).sum(axis=0) for rows in blocks)
    least = squares / n
    size = np.maximum(np.sqrt(least), 1e-9)

    def standard_residuals(rows: slice) -> Array:
        return (Y[rows] - P[rows])[:, ones] / size

    gram = np.zeros((k, k))
    for rows in blocks:
        Z = standard_residuals(rows)
        gram += Z.T @ Z
    chosen, best = np.full(k, -1), np.zeros((k, k))
    of_row = np.empty((n, len(PENALTIES)))
    for place, penalty in enumerate(PENALTIES):
        inverse, error = np.linalg.inv(gram + penalty * np.eye(k)), np.zeros(k)
        for rows in blocks:
            Z = standard_residuals(rows)
            along = Z @ inverse
            of_row[rows, place] = np.einsum("ij,ij->i", along, Z)
            left_out = residual_left_out(along, of_row[rows, place, None], inverse.diagonal(), size)
            error += (left_out**2).sum(axis=0)
        better = error / n < least
        least = np.where(better, error / n, least)
        chosen[better], best[:, better] = place, inverse[:, better]
    others = Others(ones, back, size, best, chosen, heard)
    scores = np.empty(P.shape)
    for rows in blocks:
        scores[rows] = others.added_to(P[rows], Y[rows], of_row[rows])
    return others, scores


def residual_left_out(along: Array, of_row: Array, own: Array, size: Array) -> Array:
    """Residuals ``(n, k)`` of some labels by the others', in a fit without the row.

    Takes the rows times M^-1, their products with themselves, and of each label the diagonal of
    M^-1 and what its residuals were divided by.
    """
    leverage = of_row - along**2 / own
    return size * (along / own) / np.maximum(1 - leverage, 1e-3)


@dataclass(frozen=True)
class Curves:
    """Fits of each label's candidates at each rate, all ``(G, q)``."""

    value: Array  # log likelihood and prior
    a: Array
    b: Array
    det: Array  # determinant of the information of a and b, with the prior's

    def evidence(self) -> Array:
        """Log evidence of each rate, by Laplace's method, up to a constant of each label."""
        found = self.value - np.log(self.det) / 2
        return found - found.max(axis=0)

    def floors(self) -> Array:
        """Log likelihood ``(q,)`` that a floor adds to a curve without one."""
        return self.value.max(axis=0) - self.value[0]


def log_odds(S: Array, soft: Array) -> Array:
    """Log odds of predictions ``(m,)`` or ``(n, q)``, which may also be below 0 or above 1.

    What is near or beyond these ends keeps its order, as far as ``soft`` of each is small.
    """
    below, above = (value + np.sqrt(value**2 + 4 * soft**2) for value in (S, 1 - S))
    return np.asarray(np.log(below / above))


@dataclass(frozen=True)
class Span:
    """Where the log odds of the scores of q labels lie, all ``(q,)``."""

    soft: Array
    mean: Array
    spread: Array
    low: Array  # in units of the spread, the least standard score
    width: Array  # and how far it is to the greatest

    def place(self, scores: Array, label: Array | None = None) -> Array:
        """Where scores are between the label's least, at 0, and greatest, at 1.

        They are ``(n, q)``; or ``(m,)``, of pairs of the labels that are given.
        """
        of = slice(None) if label is None else label
        standard = (log_odds(scores, self.soft[of]) - self.mean[of]) / self.spread[of]
        return (standard - self.low[of]) / self.width[of]


Bins = tuple[Array, Array, Array]


def binned(S: Array, Y: Array) -> Bins:
    """Rows in bins per label, by S: sizes ``(B, 1)``, candidates and mean S ``(B, q)``."""
    n = len(S)
    edges = np.unique(np.linspace(0, n, min(BINS, max(2, n // 4)) + 1).astype(int))[:-1]
    size = np.diff(np.append(edges, n))[:, None]
    order = np.argsort(S, axis=0, kind="stable")
    on, sums = (np.add.reduceat(np.take_along_axis(M, order, 0), edges, axis=0) for M in (Y, S))
    return size, on, sums / size


def by_label(S: Array, Y: Array) -> tuple[Bins, Span]:
    """The bins of standard log odds, by scores S of Y ``(n, q)``, and their span, in parts."""
    found = [
        _binned_and_spanned(S[:, labels], Y[:, labels])
        for labels in pair_blocks(S.shape[1], len(S))
    ]
    bins, spans = zip(*found, strict=True)
    on, means = (np.concatenate([each[part] for each in bins], axis=1) for part in (1, 2))
    return (bins[0][0], on, means), Span(*map(np.concatenate, zip(*spans, strict=True)))


def _binned_and_spanned(S: Array, Y: Array) -> tuple[Bins, tuple[Array, ...]]:
    soft = SOFT * np.maximum(Y.sum(axis=0), 1) / len(Y)
    V = log_odds(S, soft)
    mean, spread = V.mean(axis=0), V.std(axis=0)
    spread = np.where(spread > 1e-9, spread, 1)
    Z = (V - mean) / spread
    return binned(Z, Y), (soft, mean, spread, Z.min(axis=0), np.maximum(np.ptp(Z, axis=0), 1e-9))


def fit_curves(bins: Bins, prior: Prior, near: Curves | None = None) -> Curves:
    """Fit ``rate + (1 - rate) sigmoid(a + b s)`` to every label at every rate.

    A fit that is near by is where it begins.
    """
    size, on, s = bins
    if near is None:
        start = np.full((len(RATES), s.shape[1]), LEVEL), np.ones((len(RATES), s.shape[1]))
    else:
        start = near.a, near.b
    steps = STEPS if near is None else MORE_STEPS
    fits = [
        _fit(size, on[:, part], s[:, part], prior, start[0][:, part], start[1][:, part], steps)
        for part in row_blocks(s.shape[1], LABELS_AT_ONCE)
    ]
    return Curves(*(np.concatenate(each, axis=1) for each in zip(*fits, strict=True)))


def _fit(
    size: Array,
    on: Array,
    s: Array,
    prior: Prior,
    a: Array,
    b: Array,
    steps: int,
    rate: Array = RATES[:, None],
    ceiling: Array | float = 1.0,
) -> tuple[Array, ...]:
    """Fisher scoring with steps that never make the fit worse, of all rates and labels at once.

    A curve stays where it is once it hardly moves, or cannot come near the best one of its label.
    """
    shape = a.shape
    level, of_a, of_b = prior.level, prior.spread**-2, prior.steep**-2
    label = np.broadcast_to(np.arange(shape[1]), shape).ravel()
    rate, span = (np.broadcast_to(each, shape).ravel() for each in (rate, ceiling - rate))

    def data(at: Array) -> tuple[Array, ...]:
        """What the curves at some places are fitted to, bins first: sums over them are fast."""
        of = label[at]
        return s[:, of], on[:, of], size - on[:, of], rate[at], span[at]

    def value(a: Array, b: Array) -> tuple[Array, Array, Array]:
        p = expit(a + b * s_at)
        seen = np.clip(floor + width * p, 1e-9, 1 - 1e-9)
        fit = (on_at * np.log(seen) + off_at * np.log(1 - seen)).sum(axis=0)
        return fit - (of_a * (a - level) ** 2 + of_b * b**2) / 2, p, seen

    def information(a: Array, b: Array, p: Array, seen: Array) -> tuple[Array, ...]:
        slope, spread = width * p * (1 - p), seen * (1 - seen)
        w, g = size * slope**2 / spread, (on_at - size * seen) / spread * slope
        ga, gb = g.sum(axis=0) - of_a * (a - level), (g * s_at).sum(axis=0) - of_b * b
        ws = w * s_at
        haa, hab, hbb = w.sum(axis=0) + of_a, ws.sum(axis=0), (ws * s_at).sum(axis=0) + of_b
        return ga, gb, haa, hab, hbb, haa * hbb - hab**2

    at = np.arange(a.size)
    s_at, on_at, off_at, floor, width = data(at)
    a, b = a.ravel(), b.ravel()
    now, p, seen = value(a, b)
    damp = np.ones(a.size)
    fitted = np.empty((4, a.size))  # value, a, b and det
    for _ in range(steps):
        ga, gb, haa, hab, hbb, det = information(a, b, p, seen)
        da, db = (hbb * ga - hab * gb) / det, (haa * gb - hab * ga) / det
        length = damp * np.minimum(1, 2 / np.maximum(np.maximum(abs(da), abs(db)), 1e-9))
        tried = a + length * da, np.maximum(b + length * db, 0)
        fitted[:, at] = now, a, b, det
        best = fitted[0].reshape(shape).max(axis=0)[label[at]]
        goes_on = np.maximum(abs(tried[0] - a), abs(tried[1] - b)) > STILL
        goes_on &= now + REACH * np.maximum(ga * da + gb * db, 0) > best - FAR
        if goes_on.mean() < WORTH_LEAVING:
            at = at[goes_on]
            if not len(at):
                break
            s_at, on_at, off_at, floor, width = data(at)
            a, b, now, damp = (each[goes_on] for each in (a, b, now, damp))
            tried = tried[0][goes_on], tried[1][goes_on]
            p, seen = p[:, goes_on], seen[:, goes_on]
        found, *rest = value(*tried)
        good = found >= now
        a, b, now, p, seen = (
            np.where(good, new, old)
            for new, old in zip((*tried, found, *rest), (a, b, now, p, seen), strict=True)
        )
        damp = np.where(good, np.minimum(1, damp * 2), damp / 4)
    else:
        fitted[:, at] = now, a, b, information(a, b, p, seen)[-1]
    return tuple(each.reshape(shape) for each in fitted)


def look_up(place: Array, table: Array, label: Array | None = None) -> Array:
    """Each label's table ``(K, q)`` at places from 0 to 1, linear between entries.

    Places are ``(n, q)``; or ``(m,)``, of pairs of the labels that are given.
    """
    label = np.arange(table.shape[1]) if label is None else label
    last = len(table) - 1
    place = np.clip(place, 0, 1) * last
    low = np.minimum(place.astype(int), last - 1)
    below, above = (table[low + k, label] for k in (0, 1))
    return below + (place - low) * (above - below)


def seen_noise(curves: Curves) -> float:
    """The weight of the noise that is seen, 0 ... 1, by the log likelihood that all floors add.

    A floor that is not there adds about 0.1 on average and seldom more than 1 (`EXCESS`); so what
    is beyond, of all labels, has to pass `EACH` per label, and `LEAST`.
    """
    floor = float(np.maximum(curves.floors() - EXCESS, 0).sum())
    enough = LEAST + EACH * curves.value.shape[1]
    return float(expit(2 * (floor - enough)))


def lost_share(bins: Bins, rates: Array) -> float:
    """The share of true labels that are no candidates, by the ceilings of labels' curves.

    If a true label is lost with chance m wherever it is, no row is a candidate with more than
    1 - m, however sure the features are. The share is that of all labels; it is averaged over
    `LOST` by the evidence of each, at the labels' rates ``(q,)``, which counts for a part
    (`BENT`): a curve that bends for another reason looks the same.
    """
    size, on, s = bins
    ceiling = np.maximum(1 - LOST[:, None], rates + LEAST_SPAN)
    shape = (len(LOST), s.shape[1])
    start = np.full(shape, LEVEL), np.ones(shape)
    prior = Prior(LEVEL, SPREAD, STEEP)
    found = Curves(*_fit(size, on, s, prior, *start, STEPS, rates[None], ceiling))
    evidence = BENT * found.evidence().sum(axis=1) + SELDOM
    return float(LOST @ _normal(np.exp(evidence - evidence.max())))


def levelled(bins: Bins, weights: Array, free: float) -> tuple[Array, Curves]:
    """Beliefs ``(G, q)``, curves, and along with them the truth's level on average (EM)."""
    size, on, _ = bins
    share = np.arcsin(np.sqrt(on.sum(axis=0) / size.sum()))
    level, curves = LEVEL, fit_curves(bins, Prior(LEVEL, SPREAD, STEEP))
    for _ in range(ROUNDS):
        beliefs = believed(curves.evidence(), weights, share, free)
        mean = (beliefs * curves.a).sum(axis=0)
        level = (weights @ mean + PRIORS * LEVEL) / (weights.sum() + PRIORS)
        curves = fit_curves(bins, Prior(level, SPREAD, STEEP), curves)
    return believed(curves.evidence(), weights, share, free), curves


def believed(evidence: Array, weights: Array, share: Array, free: float) -> Array:
    """Posterior ``(G, q)`` of each label's rate.

    A label's prior is what the other labels are believed to have, each as much as it has
    candidates; and, as if of some labels more, what their trend foretells at the label's candidate
    share (in units of arcsin sqrt), or any rate or none (a Dirichlet process, in mean field). How
    many more (`FRESH`) is averaged over, by how well rates of labels are foretold by the others'.
    Where labels compete, one rate for all of them takes its place.
    """
    base = np.full((len(RATES), 1), (1 - NONE) / (len(RATES) - 1))
    base[0] = NONE
    likelihood = np.exp(evidence)
    found, scores = zip(
        *(_shared(likelihood, base, weights, share, each) for each in FRESH), strict=True
    )
    part = _normal(np.exp(np.array(scores) - max(scores)))
    beliefs = np.tensordot(part, np.array(found), 1)
    if free < 1:
        pooled = np.log(likelihood + OUTLIER) @ weights
        common = _normal(np.exp(pooled - pooled.max()))
        beliefs = free * beliefs + (1 - free) * common[:, None]
    return beliefs


def _shared(
    likelihood: Array, base: Array, weights: Array, share: Array, fresh: float
) -> tuple[Array, float]:
    """The beliefs at which each label's prior is what the others are believed to have."""
    beliefs = _normal(likelihood * base)
    for _ in range(100):
        every = beliefs * weights
        new_ones = TREND * trend(beliefs, weights, share) + (1 - TREND) * base
        prior = every.sum(axis=1, keepdims=True) - every + fresh * new_ones
        new = _normal(likelihood * prior)
        change = abs(new - beliefs).max()
        beliefs = new
        if change < 1e-3:
            break
    return beliefs, float(weights @ np.log((likelihood * _normal(prior)).sum(axis=0) + 1e-300))


def trend(beliefs: Array, weights: Array, share: Array) -> Array:
    """What the other labels' rates foretell of each label's, by its candidate share, ``(G, q)``.

    A line through the others' mean rates, all in units of arcsin sqrt; it does not fall, since
    false candidates add to the share. Labels count by their weight, and less where their own rate
    is not known.
    """
    mean = ANGLES @ beliefs
    variance = np.maximum(ANGLES**2 @ beliefs - mean**2, 0)
    counts = weights / (1 + variance / SCATTER)

    def of_others(values: Array) -> Array:
        return (counts * values).sum() - counts * values

    total = np.maximum(of_others(np.ones(len(share))), 1e-9)
    x, y = of_others(share) / total, of_others(mean) / total
    xx = np.maximum(of_others(share**2) - total * x**2, 0) + SCATTER
    xy = of_others(share * mean) - total * x * y
    yy = np.maximum(of_others(mean**2) - total * y**2, 0)
    slope = np.maximum(xy / xx, 0)
    left = np.maximum(yy - slope * (2 * xy - slope * (xx - SCATTER)), 0)
    scatter = (left + SURE * SCATTER) / (total + SURE)
    scatter *= 1 + 1 / total + (share - x) ** 2 / xx
    far = (ANGLES[:, None] - y - slope * (share - x)) ** 2 / (2 * scatter)
    return _normal(np.exp(far.min(axis=0) - far))


def _normal(values: Array) -> Array:
    return values / np.maximum(values.sum(axis=0), 1e-300)


def alike(Y: Array) -> tuple[list[list[int]], Array]:
    """Groups of labels that are given to the same rows, and the first ``(q,)`` of each one's group.

    Which of them is wrong cannot be known.
    """
    mean = Y.mean(axis=0)
    squares, products = np.zeros(len(mean)), np.zeros((len(mean), len(mean)))
    for rows in pair_blocks(*Y.shape):
        Z = Y[rows] - mean
        squares += (Z**2).sum(axis=0)
        products += Z.T @ Z
    size = np.where(mean > 0, np.sqrt(squares), np.nan)  # what is given to no row is like nothing
    return grouped(size, products)


def grouped(size: Array, products: Array) -> tuple[list[list[int]], Array]:
    """The same by the lengths ``(q,)`` and products ``(q, q)`` of columns without their mean."""
    close = ALIKE * size[:, None] * size <= products
    close &= (size[:, None] > 0) == (size > 0)  # columns without a gap are alike, but no others
    _, group = connected_components(close, directed=False)
    _, first = np.unique(group, return_index=True)
    several = np.flatnonzero(np.bincount(group) > 1)
    return [np.flatnonzero(group == k).tolist() for k in several], first[group]
