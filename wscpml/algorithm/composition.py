"""WSC-PML, composed once: its steps in their order, for stages, estimators, benchmarks and docs.

    represent   the training rows: scaled, mapped by a kernel, and their principal axes
    supervise   prototypes, and by them the weak supervision B (Eqs. 1-5)
    cluster     pseudo-labels F, memberships Pi and prototypes O (Eqs. 6-10, 12-19)
    train       the classifier, a network for each label (Eq. 11) or the closed form

Between the last two, `wscpml.quality.judging.judge` says how likely each candidate is to be true.
What a step takes at random comes from the generator that it is given.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from wscpml.algorithm import clustering, features, network, prototypes, ridge, weak_supervision
from wscpml.algorithm.clustering import Clustering
from wscpml.algorithm.features import FeatureMap
from wscpml.algorithm.network import Network, Problem, Progress
from wscpml.algorithm.ridge import Ridge
from wscpml.arrays import (
    EVEN_ODDS,
    Array,
    Matrix,
    Rows,
    row_blocks,
    to_dense,
    to_unit_interval,
    values_at,
)
from wscpml.blocks import Engine
from wscpml.evaluation.metrics import average_precision, rankable
from wscpml.parameters import (
    ClassifierSettings,
    ClusteringSettings,
    FeatureSettings,
    NetworkSettings,
    WeakSupervisionSettings,
    part_of,
)

Head = Network | Ridge
Room = Callable[[tuple[int, int]], Array]
NEVER_SURE = 0.002  # a threshold is at least so far from 0 and 1
MOST_PAIRS = 4_000_000  # rows times labels that a threshold is found on, of evenly spaced rows
ROWS_AT_ONCE = 2048  # of very many, that are added up or left out as a block
STRIPS = 8  # of blocks, that are added up side by side; a constant, so that bytes are too
BELIEVES = 0.6  # weight of label confidences from which candidates do not tell a good ranking


def in_memory(shape: tuple[int, int]) -> Array:
    """Room for a float32 matrix."""
    return np.empty(shape, np.float32)


@dataclass(frozen=True)
class TrainingRows:
    """The features of the training rows as each step takes them; what is costly is made once."""

    feature_map: FeatureMap
    scaled: Matrix  # (n, d)
    room: Room = in_memory  # for the mapped features
    engine: Engine = field(default_factory=Engine)  # for what is done block by block

    @cached_property
    def mapped(self) -> Array:
        """The kernel features, float32 ``(n, r)``."""
        room = self.room((self.scaled.shape[0], self.feature_map.size))
        return self.feature_map.map_scaled(self.scaled, out=room)

    @cached_property
    def sampled(self) -> Array:
        """The kernel features of the rows that the axes are of."""
        chosen = self.of_axes
        if len(chosen) == self.scaled.shape[0]:
            return self.mapped
        return self.feature_map.map_scaled(self.scaled[chosen])

    @cached_property
    def axes(self) -> ridge.Axes:
        """The principal axes of the kernel features; of very many rows, those of some."""
        return ridge.factorise(self.sampled)

    @cached_property
    def axes_of_all(self) -> ridge.Axes:
        """The principal axes of the kernel features of all of very many rows."""
        linear = self.feature_map.unfolding
        total, products = self.added_up(None)
        products = linear.T @ products
        return ridge.axes_of_sums(self.scaled.shape[0], total @ linear, products, self.sampled)

    def added_up(self, labels: Matrix | None) -> tuple[Array, Array]:
        """What labels ``(n, q)`` add up, and their products with kernel features ``(q, r)``.

        Without labels it is the kernel itself ``(m,)``, ``(m, r)``.
        """
        engine, map_, n = self.engine, self.feature_map, self.scaled.shape[0]
        m = max(map_.anchors.shape[0], map_.size)
        need = 8 * m * (3 * (m if labels is None else labels.shape[1]) + 3 * ROWS_AT_ONCE)
        work = _Adding(engine.shared(self.scaled), engine.shared(labels), map_.kernel_alone)
        strips = row_blocks(n, -(-n // STRIPS))
        total, products = reduce(_plus, engine.over(work, strips, need, "adding rows up"))
        return total, products @ map_.unfolding

    @cached_property
    def of_axes(self) -> Array:
        """The rows that the axes are of."""
        return network.start_rows(self.scaled.shape[0])


@dataclass(frozen=True)
class TrainedHead:
    """What stands between kernel features and probabilities, and how it came about."""

    head: Head
    course: pd.DataFrame  # step, training_loss, validation_loss: per epoch, or per penalty
    closed_form: ridge.Fit | None = None  # kernel ridge regression on the same labels


def represent(X: Matrix, settings: FeatureSettings, rng: np.random.Generator) -> TrainingRows:
    """Fit scaling and kernel map to the training rows ``(n, d)``, and take them through."""
    feature_map = fit_features(X, settings, rng)
    return TrainingRows(feature_map, scaled_by(feature_map, X))


def fit_features(X: Matrix, settings: FeatureSettings, rng: np.random.Generator) -> FeatureMap:
    """Fit scaling and kernel map to the training rows ``(n, d)``, which may be on disk."""
    return features.fit(X, **asdict(settings), rng=rng)


def scaled_by(feature_map: FeatureMap, X: Matrix) -> Matrix:
    """Rows ``(n, d)`` as the map scales them; of rows on disk, those that are asked for."""
    return X.changed(feature_map.scale) if isinstance(X, Rows) else feature_map.scale(X)


def supervise(scaled: Matrix, candidates: Matrix, settings: WeakSupervisionSettings) -> Matrix:
    """The weak supervision B ``(n, q)`` by the prototypes of the candidates."""
    return weak_supervision.build(
        scaled, candidates, *prototypes.learn(scaled, candidates), settings.theta
    )


def cluster(
    scaled: Matrix,
    candidates: Matrix,
    B: Matrix,
    settings: ClusteringSettings,
    device: str = "cpu",
    progress: Progress = iter,
) -> Clustering:
    """Cluster the scaled rows under weak supervision: F, Pi and O."""
    return clustering.cluster(
        scaled, candidates, B, **asdict(settings), device=device, progress=progress
    )


def train(
    rows: TrainingRows,
    candidates: Matrix,
    pseudo_labels: Matrix,
    label_confidence: Matrix,
    weight: float,
    settings: ClassifierSettings,
    rng: np.random.Generator,
    device: str = "cpu",
    progress: Progress = iter,
) -> TrainedHead:
    """Train the classifier on the labels that the settings name, all ``(n, q)``.

    `printed` is the paper: it learns F, and a probability of a half makes a label. `cleaned` learns
    the label confidences, by their weight, and its probabilities are shifted: even odds are then
    where the fewest errors are to be expected. What it learns is compared by how it ranks the
    candidates; but where these are too noisy for that, by the weight, those that are believed.
    Of very many rows a network is trained on those that the axes are of, the closed form on all.
    """
    shifts, everyone = settings.labels == "cleaned", settings.kind == "kernel_ridge"
    n, some = candidates.shape[0], rows.of_axes
    F, known, confidence = (
        each if everyone or len(some) == n else each[some]
        for each in (pseudo_labels, candidates, label_confidence)
    )
    targets = to_learn(F, known, confidence, weight, settings)
    if known.shape[0] == len(some):
        known, targets, confidence = map(to_dense, (known, targets, confidence))
    targets = targets.astype(np.float64, copy=False)
    ranked = known * (confidence >= EVEN_ODDS) if shifts and weight > BELIEVES else known
    fitted = closed_form(rows, ranked, targets)
    if everyone:
        trained = TrainedHead(fitted.head, fitted.course, fitted)
    else:
        settled = part_of(settings, NetworkSettings)
        trained = train_network(rows, ranked, targets, settled, rng, fitted, device, progress)
    if not shifts:
        return trained
    if known.shape[0] > len(some):
        confidence = to_dense(confidence[some])
    threshold = even_odds(trained.head, rows, fitted, confidence)
    shifted = trained.head.with_even_odds_at(threshold)
    return TrainedHead(shifted, trained.course, fitted)


def to_learn(
    pseudo_labels: Matrix,
    candidates: Matrix,
    label_confidence: Matrix,
    weight: float,
    settings: ClassifierSettings,
) -> Matrix:
    """What the classifier is to learn, by the labels that the settings name, all ``(n, q)``."""
    if settings.labels == "printed":
        return pseudo_labels
    return cleaned(label_confidence, candidates, weight)


def cleaned(label_confidence: Matrix, candidates: Matrix, weight: float) -> Matrix:
    """What to learn, ``(n, q)``: between candidates, at weight 0, and label confidences, at 1.

    What is known to be false, with a label confidence of 0, is so at every weight. Labels that are
    no candidates, but may be true, are learned as they are.
    """
    if sparse.issparse(label_confidence):
        found = label_confidence.copy()
        row = np.repeat(np.arange(found.shape[0]), np.diff(found.indptr))
        given = values_at(candidates, row, found.indices) == 1
        found.data = np.where(given, (found.data > 0) * found.data**weight, found.data)
        return found
    candidates = to_dense(candidates)
    of_candidates = candidates * (label_confidence > 0) * label_confidence**weight
    return np.where(candidates == 1, of_candidates, label_confidence)


def train_network(
    rows: TrainingRows,
    candidates: Array,
    targets: Array,
    settings: NetworkSettings,
    rng: np.random.Generator,
    fitted: ridge.Fit | None = None,
    device: str = "cpu",
    progress: Progress = iter,
) -> TrainedHead:
    """Train a network on targets ``(n, q)`` of the rows that the axes are of.

    The closed form that it starts from may be there.
    """
    problem = Problem(rows.sampled, candidates, targets, rng, rows.axes, fitted)
    ((head, course),) = network.fit_all(
        [problem], **asdict(settings), device=device, progress=progress
    )
    return TrainedHead(head, course, fitted)


def closed_form(rows: TrainingRows, candidates: Matrix, targets: Matrix) -> ridge.Fit:
    """Kernel ridge regression on all rows, or on those of the axes: then nothing is factorised.

    Of all of very many rows those of the axes choose the penalty, and are left out.
    """
    n, some = targets.shape[0], rows.of_axes
    if n == len(some):
        return rows.axes.fit(candidates, targets)
    axes = rows.axes_of_all
    projected = axes.project_sums(n, *rows.added_up(targets))
    return axes.fit(to_dense(candidates[some]), to_dense(targets[some]), projected)


@dataclass(frozen=True)
class _Adding:
    """Adding up labels, or kernels, and their products with kernels."""

    scaled: Any  # (n, d)
    labels: Any | None  # (n, q)
    feature_map: FeatureMap

    def __call__(self, strip: slice) -> tuple[Array, Array]:
        """What a strip of rows adds up, block by block."""
        return reduce(_plus, map(self._of, _within(strip)))

    def _of(self, block: slice) -> tuple[Array, Array]:
        kernel = self.feature_map.centred_kernel(self.scaled[block])
        return ridge.added_up(kernel, kernel if self.labels is None else self.labels[block])


def _plus(some: tuple[Array, Array], more: tuple[Array, Array]) -> tuple[Array, Array]:
    return some[0] + more[0], some[1] + more[1]


def left_out(rows: TrainingRows, fitted: ridge.Fit, candidates: Matrix, targets: Matrix) -> Array:
    """Leave-one-out predictions of the candidates, row by row, by a fit to all rows.

    Candidates and targets are ``(n, q)``.
    """
    n, map_ = candidates.shape[0], rows.feature_map
    if len(fitted.left_out) == n:
        return values_at(fitted.left_out, *np.nonzero(candidates))

    def of_block(block: slice) -> Array:
        found = fitted.leaves_out(map_.map_scaled(rows.scaled[block]), to_dense(targets[block]))
        return values_at(found, *np.nonzero(candidates[block]))

    need = ROWS_AT_ONCE * (24 * map_.size + 32 * candidates.shape[1])
    alone = replace(rows.engine, client=None)
    blocks = row_blocks(n, ROWS_AT_ONCE)
    return np.concatenate(list(alone.over(of_block, blocks, need, "leaving rows out")))


def _within(strip: slice) -> list[slice]:
    """The blocks of a strip of rows."""
    start = strip.start
    blocks = row_blocks(strip.stop - start, ROWS_AT_ONCE)
    return [slice(start + each.start, start + each.stop) for each in blocks]


def even_odds(head: Head, rows: TrainingRows, fitted: ridge.Fit, label_confidence: Array) -> float:
    """The probability from which a trained classifier should predict a label.

    Label confidences ``(m, q)`` are of the rows that the axes are of. A classifier is
    too sure of rows that it was trained on. So the closed form on the same labels finds the
    threshold on rows that it leaves out, and the classifier takes the probability that has the
    same rank among its own.
    """
    some = slice(None, None, -(-label_confidence.size // MOST_PAIRS))
    found = threshold(to_unit_interval(fitted.left_out[some]), label_confidence[some])
    if found is None:
        return EVEN_ODDS
    theirs, ours = (
        np.sort(each.predict_proba(rows.sampled[some]), axis=None) for each in (fitted.head, head)
    )
    return float(np.clip(np.interp(found, theirs, ours), NEVER_SURE, 1 - NEVER_SURE))


def left_out_average_precision(
    rows: TrainingRows, fitted: ridge.Fit, candidates: Matrix
) -> float | None:
    """How well predictions for rows that are left out rank the candidates ``(n, q)`` of each.

    It needs no truth. None where no row can be ranked.
    """
    n = candidates.shape[0]
    Y = to_dense(candidates[slice(None) if len(fitted.left_out) == n else rows.of_axes])
    ranked = rankable(Y)
    return average_precision(Y[ranked], fitted.left_out[ranked]) if ranked.any() else None


def threshold(scores: Array, label_confidence: Array) -> float | None:
    """The score from which a label is to be predicted, for the fewest errors to be expected.

    None where that is to predict none or all of them.
    """
    order = np.argsort(-scores, axis=None)
    gains = np.cumsum(2 * label_confidence.ravel()[order] - 1)
    best = int(gains.argmax())
    if best + 1 == len(order) or gains[best] <= 0:
        return None
    return float(scores.ravel()[order[best : best + 2]].mean())
