"""Pictures of a run, for people who would rather look than read."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

COLOURS = {"true": "#1b7837", "false": "#c2410c", "unknown": "#4c72b0"}


def overview(
    clustering: pd.DataFrame, training: pd.DataFrame, labels: pd.DataFrame, candidates: pd.DataFrame
) -> Figure:
    """The course of the method, and how well it did.

    The tables are those of metrics/: clustering.csv, training.csv, per_label.csv, candidates.csv.
    """
    figure = Figure(figsize=(13, 7.5), layout="constrained")
    axes = figure.subplots(2, 3)
    _curve(axes[0, 0], clustering, "iteration", ["objective"], "Clustering: objective (Eq. 10)")
    _curve(axes[0, 1], clustering, "iteration", ["change"], "Clustering: relative change of F")
    axes[0, 1].set_yscale("symlog", linthresh=1e-6)
    losses = ["training_loss", "validation_loss"]
    _curve(axes[0, 2], training, "step", losses, "Classifier: loss per epoch or penalty")
    _histogram(axes[1, 0], candidates, "pi", "Membership pi of the candidates")
    _histogram(axes[1, 1], candidates, "F", "Pseudo-label F of the candidates")
    _bars(axes[1, 2], labels)
    for axis in axes.flat:
        axis.spines[["top", "right"]].set_visible(False)
    return figure


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
