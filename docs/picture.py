"""The README's picture: `python -m docs.picture` draws it into docs/images/tags.png.

The first songs of the public set emotions, with the noise of the tutorial: their tags as they came,
the label confidence that `WSCPML` finds, and the truth, which it does not see.
"""

from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from wscpml import WSCPML, artifacts
from wscpml.datasets import noise
from wscpml.datasets.registry import REGISTRY
from wscpml.evaluation.figures import COLOURS

FILE = Path(__file__).parent / "images/tags.png"
MOODS = ["amazed", "happy", "relaxed", "quiet", "sad", "angry"]
SONGS = 6
GREY, INK = "#6b7280", "#111827"
KEPT, DOUBTED = ("#dcf0e1", COLOURS["true"]), ("#fbe3d8", COLOURS["false"])
PLAIN = ("#eef0f3", INK)
SECOND, THIRD = 4.4, 10.3  # where the columns begin; the first at 0
WIDE, GAP = 1.35, 0.08  # a chip with a number, what is between two


def draw() -> Figure:
    """Tags in, tags with a label confidence out."""
    emotions = REGISTRY["emotions"].load()
    tags = noise.pad_candidates(emotions.truth, 4, np.random.default_rng(0))
    fitted = WSCPML(random_state=0).fit(emotions.features, pd.DataFrame(tags, columns=MOODS))
    confidence = fitted.label_confidence_.to_numpy()
    with mpl.rc_context({"font.size": 10}):
        figure = Figure(figsize=(9.6, 3.1), layout="constrained")
        axis = figure.subplots()
        axis.set(xlim=(-1.1, 12.3), ylim=(SONGS - 0.35, -1.05))
        axis.axis("off")
        heads = {0: "tags as they came", SECOND: "label confidence", THIRD: "true in fact"}
        for left, head in heads.items():
            axis.text(left, -0.75, head, color=INK, weight="bold", va="center")
        for row in range(SONGS):
            axis.text(-1.05, row, f"song {row}", color=GREY, va="center")
            for place, label in enumerate(np.flatnonzero(tags[row])):
                _chip(axis, place, 1, row, MOODS[label], PLAIN)
                said = confidence[row, label]
                text = f"{MOODS[label]} {100 * said:.0f}%"
                left = SECOND + WIDE * place
                _chip(axis, left, WIDE, row, text, KEPT if said >= 0.5 else DOUBTED)
            true = [MOODS[label] for label in np.flatnonzero(emotions.truth[row])]
            axis.text(THIRD, row, ", ".join(true), color=INK, va="center", size=9.5)
        for left in (SECOND - 0.2, THIRD - 0.2):
            axis.plot([left, left], [-0.9, SONGS - 0.5], color="#d1d5db", linewidth=1)
    return figure


def _chip(
    axis: Axes, left: float, width: float, row: int, text: str, colours: tuple[str, str]
) -> None:
    fill, ink = colours
    box = mpl.patches.FancyBboxPatch(
        (left + GAP / 2, row - 0.3),
        width - GAP,
        0.6,
        boxstyle="round,pad=0,rounding_size=0.12",
        facecolor=fill,
        edgecolor="none",
    )
    axis.add_patch(box)
    axis.text(left + width / 2, row, text, color=ink, ha="center", va="center", size=8.5)


def main(file: Path = FILE) -> None:
    """Draw it."""
    artifacts.write(file, draw())


if __name__ == "__main__":
    main()
