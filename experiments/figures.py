"""The study's pictures, each small enough for a phone; wscpml.evaluation.figures has the look."""

import base64
import io

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator

from experiments.cells import METRICS, WSC, Results, title
from experiments.comparisons import Comparison
from experiments.paper import printed
from experiments.tables import MODERATE, exponent

OURS, OTHER, QUIET = "#c2410c", "#4c72b0", "#6b7280"
LEVELS = ["#9db7dc", "#4c72b0", "#1f3a68"]  # few to many candidates


def svg(figure: Figure) -> str:
    """A figure as the address of an image, the same bytes for the same figure."""
    file = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "wscpml"}):
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    return "data:image/svg+xml;base64," + base64.b64encode(file.getvalue()).decode()


def critical_differences(comparison: Comparison) -> Figure:
    """Mean ranks; those joined by a bar do not differ significantly."""
    from scikit_posthocs import critical_difference_diagram

    names = {name: title(name) for name in comparison.methods}
    ranks = comparison.ranks.rename(names)
    p = comparison.nemenyi.rename(index=names, columns=names)
    colours = {name: OURS if name == names[WSC] else QUIET for name in ranks.index}
    figure = Figure(figsize=(6.6, 1.6 + 0.17 * len(ranks)))
    axis = figure.subplots(gridspec_kw={"left": 0.25, "right": 0.75, "bottom": 0, "top": 1})
    artists = critical_difference_diagram(
        ranks,
        p,
        ax=axis,
        color_palette=colours,
        label_fmt_left="{label} {rank:.2f} ",
        label_fmt_right=" {rank:.2f} {label}",
        text_h_margin=0.04 * len(ranks),
        label_props={"fontsize": 10},
        marker_props={"s": 22},
        elbow_props={"linewidth": 1},
        crossbar_props={"color": OTHER, "linewidth": 3, "solid_capstyle": "round"},
    )
    for (bar,) in artists["crossbars"]:
        bar.set_xdata(sorted(bar.get_xdata()))  # it comes in a set's order, each process its own
    for label in artists["labels"]:
        label.set_fontweight("bold" if names[WSC] in label.get_text() else "normal")
    axis.set_xlim(1, len(ranks))
    axis.xaxis.set_major_locator(FixedLocator(range(1, len(ranks) + 1)))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.tick_params(colors=QUIET, labelsize=9)
    axis.spines["top"].set_color(QUIET)
    lowest = min(label.get_position()[1] for label in artists["labels"])
    axis.set_ylim(lowest - 0.5, 2.4)
    reach = comparison.critical_difference
    axis.plot([1, 1 + reach], [1.2, 1.2], color="black", linewidth=1.5, marker="|", clip_on=False)
    axis.text(1, 1.8, f"critical difference {reach:.2f}", va="center", fontsize=9)
    name = METRICS[comparison.metric].title
    figure.text(0.99, 0.98, name, ha="right", va="top", weight="bold")
    return figure


def heat_map(study: Results, benchmark: str) -> Figure:
    """Average precision over the grid of alpha and beta, coloured by its distance from the best."""
    grid = study.grid[study.grid.benchmark == benchmark]
    table = grid.pivot_table("average_precision", "alpha", "beta")
    deviation = printed("average_precision")["WSC-PML std"][benchmark]
    precision = table.to_numpy(float)
    apart = (precision - np.nanmax(precision)) / deviation
    figure = Figure(figsize=(3.3, 3.1), layout="constrained")
    axis = figure.subplots()
    axis.imshow(apart, cmap="Blues", vmin=-2, vmax=0.6, origin="lower")
    for (row, column), value in np.ndenumerate(precision):
        if not np.isnan(value):
            ink = "white" if apart[row, column] > -0.5 else "black"
            axis.text(column, row, f"{value:.3f}", ha="center", va="center", color=ink, fontsize=8)
    row, column = np.unravel_index(np.nanargmax(precision), table.shape)
    axis.add_patch(
        Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, edgecolor=OURS, linewidth=2.5)
    )
    axis.set_xticks(range(table.shape[1]), [f"{value:g}" for value in table.columns])
    axis.set_yticks(range(table.shape[0]), [f"{value:g}" for value in table.index])
    axis.set(title=benchmark, xlabel="beta", ylabel="alpha")
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)
    places = [
        [place for place, value in enumerate(values) if value in MODERATE]
        for values in (table.columns, table.index)
    ]
    if all(places):
        (left, bottom), (width, height) = ([p[0] - 0.5 for p in places], [len(p) for p in places])
        frame = Rectangle((left, bottom), width, height, fill=False, linestyle="--", linewidth=1)
        axis.add_patch(frame)
    return figure


def convergence(courses: dict[str, pd.DataFrame], dataset: str, tolerance: float) -> Figure:
    """Objective and change per iteration, of a data set with each number of candidates."""
    figure = Figure(figsize=(3.9, 4.2), layout="constrained")
    upper, lower = figure.subplots(2, sharex=True)
    for (benchmark, course), colour in zip(
        courses.items(), LEVELS if len(courses) > 1 else [OTHER], strict=False
    ):
        label = benchmark.removeprefix(f"{dataset}-")
        start = abs(course.objective.iloc[0]) or 1.0
        for axis, values in ((upper, course.objective / start), (lower, course.change)):
            axis.plot(course.iteration, values, marker="o", markersize=3, color=colour, label=label)
    lower.axhline(tolerance, color=QUIET, linewidth=1, linestyle="--")
    lower.set(yscale="log", xlabel="iteration", ylabel="change of F")
    last = max(course.iteration.max() for course in courses.values())
    lower.set_xlim(0.8, max(last, 2) + 0.2)
    lower.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    upper.set(title=dataset, ylabel="objective, first = 1")
    if len(courses) > 1:  # changes fall, so that this corner is free
        lower.legend(
            loc="upper right", frameon=False, title="candidates", fontsize=8, title_fontsize=8
        )
    _plain(upper, lower)
    return figure


def cost(axis_name: str, sizes: list[tuple[float, float]]) -> Figure:
    """Seconds per iteration against a size, and the power of it that fits."""
    size, seconds = np.transpose(sorted(sizes))
    power = exponent(sizes)
    figure = Figure(figsize=(3.4, 2.9), layout="constrained")
    axis = figure.subplots()
    level = np.exp(np.mean(np.log(seconds) - power * np.log(size)))
    axis.plot(size, level * size**power, color=QUIET, linewidth=1.2, linestyle="--")
    axis.plot(size, seconds, "o", color=OTHER, markersize=6)
    axis.set(xscale="log", yscale="log", xlabel=axis_name, ylabel="seconds an iteration")
    axis.set_title(f"{axis_name}: exponent {power:.2f}")
    axis.set_xticks(size, [f"{value:g}" for value in size], rotation=30)
    axis.xaxis.set_minor_locator(NullLocator())
    _plain(axis)
    return figure


def _plain(*axes: Axes) -> None:
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
