"""WSC-PML, composed once: its steps in their order, for stages, estimators, benchmarks and docs.

    represent   the training rows: scaled, mapped by a kernel, and their principal axes
    supervise   prototypes, and by them the weak supervision B (Eqs. 1-5)
    cluster     pseudo-labels F, memberships Pi and prototypes O (Eqs. 6-10, 12-19)
    train       the classifier, a network for each label (Eq. 11) or the closed form

Between the last two, `wscpml.quality.judging.judge` says how likely each candidate is to be true.
What a step takes at random comes from the generator that it is given.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd
from scipy import sparse

from wscpml.algorithm import clustering, features, network, prototypes, ridge, weak_supervision
from wscpml.algorithm.clustering import Clustering
from wscpml.algorithm.features import FeatureMap
from wscpml.algorithm.network import Network, Problem, Progress
from wscpml.algorithm.ridge import Ridge
from wscpml.arrays import EVEN_ODDS, Array, Matrix, Rows, to_dense, to_unit_interval
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
    Of very many rows a network is trained on those that the axes are of.
    """
    shifts, everyone = settings.labels == "cleaned", settings.kind == "kernel_ridge"
    n = candidates.shape[0]
    chosen = np.arange(n) if everyone else rows.of_axes
    known, F, confidence = (
        each if len(chosen) == n else each[chosen]
        for each in (candidates, pseudo_labels, label_confidence)
    )
    labels = cleaned(confidence, known, weight) if shifts else F
    targets = to_dense(labels).astype(np.float64, copy=False)
    known, confidence = to_dense(known), to_dense(confidence)
    ranked = known * (confidence >= EVEN_ODDS) if shifts and weight > BELIEVES else known
    fitted = closed_form(rows, ranked, targets)
    if everyone:
        trained = TrainedHead(fitted.head, fitted.course, fitted)
    else:
        settled = part_of(settings, NetworkSettings)
        trained = train_network(rows, ranked, targets, settled, rng, fitted, device, progress)
    if not shifts:
        return trained
    threshold = even_odds(trained.head, rows, fitted, confidence)
    shifted = trained.head.with_even_odds_at(threshold)
    return TrainedHead(shifted, trained.course, fitted)


def cleaned(label_confidence: Matrix, candidates: Matrix, weight: float) -> Matrix:
    """What to learn, ``(n, q)``: between candidates, at weight 0, and label confidences, at 1.

    What is known to be false, with a label confidence of 0, is so at every weight. Labels that are
    no candidates, but may be true, are learned as they are. Sparse label confidences are those of
    the candidates alone.
    """
    if sparse.issparse(label_confidence):
        found = label_confidence.copy()
        found.data = (found.data > 0) * found.data**weight
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


def closed_form(rows: TrainingRows, candidates: Array, targets: Array) -> ridge.Fit:
    """Kernel ridge regression on all rows, or on those of the axes: then nothing is factorised."""
    if len(targets) == len(rows.of_axes):
        return rows.axes.fit(candidates, targets)
    return ridge.fit(rows.mapped, candidates, targets)


def even_odds(head: Head, rows: TrainingRows, fitted: ridge.Fit, label_confidence: Array) -> float:
    """The probability from which a trained classifier should predict a label.

    Label confidences ``(m, q)`` are of the rows that the closed form was fitted to. A classifier is
    too sure of rows that it was trained on. So the closed form on the same labels finds the
    threshold on rows that it leaves out, and the classifier takes the probability that has the
    same rank among its own.
    """
    some = slice(None, None, -(-label_confidence.size // MOST_PAIRS))
    found = threshold(to_unit_interval(fitted.left_out[some]), label_confidence[some])
    if found is None:
        return EVEN_ODDS
    mapped = rows.sampled if len(rows.of_axes) == len(fitted.left_out) else rows.mapped
    theirs, ours = (
        np.sort(each.predict_proba(mapped[some]), axis=None) for each in (fitted.head, head)
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
