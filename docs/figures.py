"""The pictures of docs/method.md: `python -m docs.figures` draws them into docs/images/method/.

Everything in them is what the package computes for a small set of two features and four labels.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from wscpml import artifacts
from wscpml.algorithm import clustering, composition, prototypes
from wscpml.algorithm.clustering import Clustering
from wscpml.algorithm.composition import TrainingRows
from wscpml.arrays import Array
from wscpml.datasets import noise
from wscpml.evaluation import metrics
from wscpml.evaluation.figures import COLOURS
from wscpml.parameters import FeatureSettings, WeakSupervisionSettings
from wscpml.quality import judging, noise_model
from wscpml.quality.judging import JudgedLabels
from wscpml.quality.noise_model import NoiseModel

FOLDER = Path(__file__).parent / "images/method"
TRUE, FALSE, OTHER = COLOURS["true"], COLOURS["false"], "#d1d5db"
LABELS = ["A", "B", "C", "D"]
LABEL_COLOURS = ["#c2410c", "#4c72b0", "#1b7837", "#7e3794"]
SHOWN = 0  # the label that pictures of one label are about
ALPHA = BETA = 1.0
ROUNDS = (1, 3, 20)
STYLE = {"font.size": 11, "axes.titlesize": 11, "legend.fontsize": 10}


@dataclass(frozen=True)
class Example:
    """A small data set, and what the method makes of it."""

    rows: TrainingRows
    truth: Array  # (n, 4)
    candidates: Array  # (n, 4)

    @property
    def X(self) -> Array:
        """The scaled features, ``(n, 2)``."""
        return self.rows.scaled

    @cached_property
    def is_candidate(self) -> Array:
        """Where there is a candidate, a boolean ``(n, q)``."""
        return self.candidates == 1

    @cached_property
    def prototypes(self) -> tuple[Array, Array]:
        """Positive and negative ones."""
        return prototypes.learn(self.X, self.candidates)

    @cached_property
    def B(self) -> Array:
        """The weak supervision."""
        return composition.supervise(self.X, self.candidates, WeakSupervisionSettings())

    @cached_property
    def rounds(self) -> dict[int, Clustering]:
        """The clustering after so many iterations."""
        return {
            count: clustering.cluster(
                self.X, self.candidates, self.B, ALPHA, BETA, "paper", count, tolerance=0
            )
            for count in ROUNDS
        }

    @cached_property
    def unseen(self) -> Array:
        """P, the chance of each label to be a candidate, by predictors that did not see the row."""
        Y = self.candidates.astype(float)
        return judging.predict_unseen(self.rows, self.candidates, Y, seed=0).unseen

    @cached_property
    def noise(self) -> tuple[NoiseModel, Array]:
        """Which noise it is, and the scores that show it."""
        seen = noise_model.fit(self.unseen, self.candidates.astype(float))
        return seen.model, seen.scores

    @cached_property
    def judged(self) -> JudgedLabels:
        """What our own score says."""
        return judging.judge(self.rows, self.candidates, np.random.default_rng(0))

    def auc(self, score: Array) -> float:
        """How well a score tells true from false candidates."""
        chosen = self.is_candidate
        return metrics.noise_auc(self.truth[chosen], score[chosen]) or 0.0


def example() -> Example:
    """Four clouds that overlap; a label is the likelier the nearer its cloud."""
    rng = np.random.default_rng(0)
    centres = 1.2 * np.array([[-1, -1], [1, -1], [-1, 1], [1, 1]])
    X = centres[rng.integers(4, size=400)] + 0.75 * rng.normal(size=(400, 2))
    squared = ((X[:, None] - centres) ** 2).sum(axis=2)
    nearest = squared == squared.min(axis=1, keepdims=True)
    truth = ((rng.random(squared.shape) < np.exp(-squared / 2.5)) | nearest).astype(np.uint8)
    rows = composition.represent(X, FeatureSettings(), rng)
    return Example(rows, truth, noise.pad_candidates(truth, 3, rng))


def draw_candidates(of: Example) -> Figure:
    """What is true, and what one is given."""
    figure, (left, right) = _panels(2)
    true, given = of.truth[:, SHOWN] == 1, of.is_candidate[:, SHOWN]
    name = LABELS[SHOWN]
    for axis, groups in (
        (left, [(true, TRUE, "true"), (~true, OTHER, "not true")]),
        (
            right,
            [
                (given & true, TRUE, "true"),
                (given & ~true, FALSE, "false"),
                (~given, OTHER, "none"),
            ],
        ),
    ):
        for rows, colour, label in groups:
            axis.scatter(*of.X[rows].T, s=14, c=colour, label=label)
        _legend_below(axis)
    left.set_title(f"The truth of label {name} ...")
    right.set_title("... and its candidates")
    return figure


def draw_prototypes(of: Example) -> Figure:
    """Where the prototypes are."""
    figure, (left, right) = _panels(2)
    positive, negative = of.prototypes
    given = of.is_candidate[:, SHOWN]
    left.scatter(*of.X[~given].T, s=14, c=OTHER, label="no candidate")
    left.scatter(*of.X[given].T, s=14, c="#9db7dc", label="candidate")
    _marks(left, positive[SHOWN], "*", LABEL_COLOURS[SHOWN], "positive")
    _marks(left, negative[SHOWN], "X", LABEL_COLOURS[SHOWN], "negative")
    middle, across = (positive[SHOWN] + negative[SHOWN]) / 2, positive[SHOWN] - negative[SHOWN]
    left.axline(
        middle, middle + [-across[1], across[0]], color="black", linewidth=1, linestyle="--"
    )
    left.set(title=f"Prototypes of label {LABELS[SHOWN]}", xlim=(-1.05, 1.05), ylim=(-1.05, 1.05))
    _legend_below(left)
    for j, (name, colour) in enumerate(zip(LABELS, LABEL_COLOURS, strict=True)):
        _marks(right, positive[j], "*", colour, f"{name}")
        _marks(right, negative[j], "X", colour, None)
    right.set(title="All of them, near the middle", xlim=(-0.4, 0.4), ylim=(-0.4, 0.4))
    _legend_below(right)
    return figure


def draw_weak_supervision(of: Example) -> Figure:
    """Which candidates B trusts, and whether it is right."""
    figure, (left, right) = _panels(2, square=(True, False))
    B, given = of.B[:, SHOWN], of.is_candidate[:, SHOWN]
    trusted = given & (B == 1)
    left.scatter(*of.X[~given].T, s=14, c=OTHER, label="no candidate")
    left.scatter(*of.X[given & ~trusted].T, s=14, c="#f4a582", label="B = θ")
    left.scatter(*of.X[trusted].T, s=14, c="#2166ac", label="B = 1")
    left.set_title(f"B of label {LABELS[SHOWN]}")
    _legend_below(left)
    shares = [(of.B == 1)[of.is_candidate & (of.truth == kind)].mean() for kind in (1, 0)]
    bars = right.bar(["true", "false"], shares, color=[TRUE, FALSE], width=0.6)
    right.bar_label(bars, fmt="{:.0%}")
    right.set(title="Candidates with B = 1", ylim=(0, 1))
    right.yaxis.set_major_formatter(mpl.ticker.PercentFormatter(1))
    return figure


def draw_clustering(of: Example) -> Figure:
    """Memberships and pseudo-labels of one label as the iterations go."""
    figure = Figure(figsize=(7.4, 5.2), layout="constrained")
    grid = figure.subplots(2, len(ROUNDS), sharex=True, sharey=True)
    given = of.is_candidate[:, SHOWN]
    for row, name in enumerate(("Pi", "F")):
        for axis, (count, found) in zip(grid[row], of.rounds.items(), strict=True):
            values = found.memberships if name == "Pi" else found.pseudo_labels
            axis.scatter(*of.X[~given].T, s=5, c=OTHER)
            drawn = axis.scatter(
                *of.X[given].T,
                s=12,
                c=values.toarray()[given, SHOWN],
                cmap="viridis",
                vmin=0,
                vmax=1,
            )
            _marks(axis, found.prototypes[SHOWN], "*", LABEL_COLOURS[SHOWN], None)
            axis.set(title=f"{name}, iteration {count}", aspect="equal", xticks=[], yticks=[])
    figure.colorbar(drawn, ax=grid, shrink=0.6)
    return figure


def draw_pseudo_labels(of: Example) -> Figure:
    """Why F does not tell true from false."""
    figure, (left, right) = _panels(2, square=(False, False))
    pi = np.linspace(0.02, 1, 200)
    for distance, colour in ((2.0, "#9db7dc"), (4.0, "#4c72b0"), (8.0, "#1f3a68")):
        left.plot(pi, _root(distance, pi), c=colour, label=f"D = {distance:g}", linewidth=2)
    left.set(title="f of Eq. 15, with B = 1", xlabel="membership π", ylim=(0, 1.05))
    _legend_below(left, -0.2)
    last = of.rounds[ROUNDS[-1]]
    scores = {
        "B": of.B,
        "Pi": last.memberships.toarray(),
        "F": last.pseudo_labels.toarray(),
        "label\nconfidence": of.judged.label_confidence,
    }
    aucs = [of.auc(score) for score in scores.values()]
    bars = right.bar(list(scores), aucs, color=["#9ca3af", "#9ca3af", FALSE, TRUE], width=0.6)
    right.bar_label(bars, fmt="{:.2f}")
    right.axhline(0.5, color="black", linewidth=1, linestyle="--")
    right.set(title="True from false candidates: ROC AUC", ylim=(0, 1))
    return figure


def draw_chance(of: Example) -> Figure:
    """Where rho is read off, and Bayes' rule."""
    figure, (left, right) = _panels(2, square=(False, False))
    model, scores = of.noise
    size, on, scores = noise_model.binned(scores, of.candidates.astype(float))
    shares = on[:, SHOWN] / size[:, 0]
    rho = float(model.chances[SHOWN])
    left.scatter(scores[:, SHOWN], shares, s=20, c="#1f3a68", label="share that are candidates")
    left.axhline(rho, color=FALSE, linestyle="--", label=f"the floor, ρ = {rho:.2f}")
    left.set(title=f"Label {LABELS[SHOWN]} by its P", xlabel="P", ylim=(0, 1.05))
    _legend_below(left, -0.2)
    p = np.linspace(0, 1, 200)
    right.plot(p, judging.posterior(p, rho), c="#1f3a68", linewidth=2, label=f"ρ = {rho:.2f}")
    right.plot(p, judging.posterior(p, 0.1), c="#9db7dc", linewidth=2, label="ρ = 0.10")
    right.set(
        title="A candidate is true with ...", xlabel="p, the chance of the label", ylim=(0, 1.05)
    )
    _legend_below(right, -0.2)
    return figure


def draw_calibration(of: Example) -> Figure:
    """Whether the label confidence keeps its word."""
    figure, (left, right) = _panels(2, square=(True, False))
    given = of.is_candidate[:, SHOWN]
    left.scatter(*of.X[~given].T, s=14, c=OTHER)
    values = of.judged.label_confidence[given, SHOWN]
    drawn = left.scatter(*of.X[given].T, s=14, c=values, cmap="viridis", vmin=0, vmax=1)
    figure.colorbar(drawn, ax=left, location="bottom", shrink=0.8)
    left.set_title(f"Label confidence of {LABELS[SHOWN]}")
    confidence_, true = (each[of.is_candidate] for each in (of.judged.label_confidence, of.truth))
    bins = np.array_split(np.argsort(confidence_, kind="stable"), 10)
    said, found = ([values[rows].mean() for rows in bins] for values in (confidence_, true))
    right.plot([0, 1], [0, 1], color="black", linewidth=1, linestyle="--")
    right.plot(said, found, marker="o", c=TRUE, linewidth=2)
    right.set(
        title="Tenths of the candidates",
        xlabel="mean label confidence",
        ylabel="share that is true",
    )
    right.set(xlim=(0, 1), ylim=(0, 1))
    return figure


def _root(distance: float, pi: Array) -> Array:
    """The pseudo-labels of candidates that differ in their membership alone."""
    import torch

    one = torch.ones(len(pi))
    shares = torch.from_numpy(pi.astype(np.float32))
    return clustering.update_pseudo_labels(distance * one, one, shares, ALPHA, BETA).numpy()


def _panels(count: int, square: tuple[bool, ...] = (True, True)) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=(7.4, 4.4), layout="constrained")
    axes = list(figure.subplots(1, count))
    for axis, is_square in zip(axes, square, strict=True):
        if is_square:
            axis.set(aspect="equal", xticks=[], yticks=[])
        else:
            axis.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _marks(axis: Axes, point: Array, marker: str, colour: str, label: str | None) -> None:
    axis.scatter(*point, s=190, c=colour, marker=marker, edgecolors="black", label=label, zorder=3)


def _legend_below(axis: Axes, height: float = -0.02) -> None:
    axis.legend(
        frameon=False,
        loc="upper center",
        bbox_to_anchor=(0.5, height),
        ncols=2 if len(axis.get_legend_handles_labels()[0]) == 4 else 3,
        columnspacing=1,
        handletextpad=0.4,
    )


PICTURES: dict[str, Callable[[Example], Figure]] = {
    "candidates": draw_candidates,
    "prototypes": draw_prototypes,
    "weak_supervision": draw_weak_supervision,
    "clustering": draw_clustering,
    "pseudo_labels": draw_pseudo_labels,
    "chance": draw_chance,
    "calibration": draw_calibration,
}


def main(folder: Path = FOLDER) -> None:
    """Draw all of them."""
    of = example()
    for name, draw in PICTURES.items():
        with mpl.rc_context(STYLE):
            artifacts.write(folder / f"{name}.png", draw(of))


if __name__ == "__main__":
    main()
