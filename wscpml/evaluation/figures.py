"""Pictures of a run, for people who would rather look than read."""

import math
from collections.abc import Callable
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

COLOURS = {"true": "#1b7837", "false": "#c2410c", "unknown": "#4c72b0"}


def overview(
    iterations: pd.DataFrame, training: pd.DataFrame, labels: pd.DataFrame, candidates: pd.DataFrame
) -> Figure:
    """The course of the method, as far as it has one, and how well it did.

    The tables are those of metrics/: iterations.csv, training.csv, per_label.csv, candidates.csv.
    """
    clustered = "change" in iterations
    title = "Clustering: objective (Eq. 10)" if clustered else "Objective of the method"
    panels: list[tuple[bool, Callable[..., None], tuple[Any, ...]]] = [
        (len(iterations) > 0, _curve, (iterations, "iteration", ["objective"], title)),
        (len(training) > 0, _losses, (training,)),
        (clustered, _histogram, (candidates, "pi", "Membership pi of the candidates")),
        (True, _histogram, (candidates, "F", "Pseudo-label F of the candidates")),
        (
            clustered,
            _histogram,
            (candidates, "label_confidence", "Probability that a candidate is true"),
        ),
        (True, _bars, (labels,)),
    ]
    shown = [(draw, content) for there, draw, content in panels if there]
    rows, columns = math.ceil(len(shown) / 3), min(len(shown), 3)
    figure = Figure(figsize=(13 / 3 * columns, 3.75 * rows), layout="constrained")
    for axis, (draw, content) in zip(figure.subplots(rows, columns).flat, shown, strict=True):
        draw(axis, *content)
        axis.spines[["top", "right"]].set_visible(False)
    return figure


def _losses(axis: Axes, training: pd.DataFrame) -> None:
    losses = ["training_loss", "validation_loss"]
    _curve(axis, training, "step", losses, "Classifier: loss per epoch or penalty")


def _curve(axis: Axes, table: pd.DataFrame, x: str, ys: list[str], title: str) -> None:
    for y in ys:
        axis.plot(table[x], table[y], marker="o", markersize=3, label=y.replace("_", " "))
    axis.set(title=title, xlabel=x)
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    if len(ys) > 1:
        axis.legend(frameon=False)


def _histogram(axis: Axes, table: pd.DataFrame, quantity: str, title: str) -> None:
    for kind, colour in COLOURS.items():
        shares = table[f"{quantity}_{kind}"]
        if not shares.any():
            continue
        axis.step(table.value, shares, where="mid", color=colour, label=f"{kind} candidates")
        axis.fill_between(table.value, shares, step="mid", color=colour, alpha=0.15)
    axis.set(title=title, xlabel="value", ylabel="share")
    axis.legend(frameon=False)


def _bars(axis: Axes, labels: pd.DataFrame) -> None:
    ordered = labels.sort_values("average_precision", na_position="first").tail(30)
    axis.barh(ordered.label, ordered.average_precision, color="#4c72b0", label="classifier")
    axis.plot(ordered.frequency, ordered.label, "|", color="black", label="label frequency")
    axis.set(title="Average precision per label (test rows)", xlim=(0, 1))
    axis.legend(frameon=False, loc="lower right")
