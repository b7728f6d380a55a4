"""What a reviewer sees of an item: its content, what stands out of it, and the items like it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from wscpml.arrays import ROWS_AT_ONCE, Array, Matrix, row_blocks, squared_distances, to_dense
from wscpml.datasets.media import PICTURES, SOUNDS, ending, is_address, medium

if TYPE_CHECKING:
    import pandas as pd

MOST_TEXT = 20_000  # characters of a cell that are sent
TELLING = 6  # features that are told of an item without content


@dataclass(frozen=True)
class Items:
    """n items of q labels, as people know them and as the method does."""

    title: str
    ids: Sequence[Any]  # n
    labels: list[str]  # q
    candidates: Matrix  # (n, q)
    features: Matrix  # (n, d), raw
    feature_names: list[str]
    scaled: Matrix  # (n, d), in which items are near or far
    shown: "pd.DataFrame | None" = None  # n rows of text, a column for each thing
    root: Path | None = None  # what local pictures and sounds are under
    allow_remote: bool = False  # whether the browser may ask other machines for pictures, sounds
    held_out: Sequence[Any] = ()  # ids of other items, which decisions may be about as well

    def cells(self, row: int, most: int = MOST_TEXT) -> list[dict[str, str]]:
        """The content of an item: the column, its kind (text, image, audio, link), and its value.

        Without columns to show it is what stands out among the item's features.
        """
        if self.shown is None:
            return [{"column": name, "kind": "text", "value": v} for name, v in self.telling(row)]
        found = []
        for c, column in enumerate(self.shown.columns):
            text = self._text(row, c)
            kind, value = self._kind(text), text
            if not text.strip():
                continue
            if kind in ("image", "audio") and not is_address(text):
                value = f"media/{row}/{c}"
            elif kind == "text" and len(text) > most:
                value = f"{text[:most]}…"
            found.append({"column": str(column), "kind": kind, "value": value})
        return found

    def file(self, row: int, column: int) -> tuple[Path, str] | None:
        """The picture or sound that a cell names and its media type, if it is under the root."""
        if self.shown is None or row >= len(self.shown) or column >= len(self.shown.columns):
            return None
        text = self._text(row, column)
        path = self._under_root(text)
        return (path, (PICTURES | SOUNDS)[ending(text)]) if path and medium(text) else None

    def telling(self, row: int) -> list[tuple[str, str]]:
        """Names and values of the features that are farthest from those of most items."""
        mean, deviation = self._spread
        values = to_dense(self.scaled[[row]])[0]
        far = np.divide(abs(values - mean), deviation, where=deviation > 0, out=np.zeros(len(mean)))
        raw = to_dense(self.features[[row]])[0]
        first = np.argsort(-far, kind="stable")[:TELLING]
        return [(self.feature_names[j], f"{raw[j]:.4g}") for j in first if far[j] > 0]

    @cached_property
    def _spread(self) -> tuple[Array, Array]:
        sample = self.scaled[:: -(-self.scaled.shape[0] // ROWS_AT_ONCE)]
        dense = to_dense(sample)
        return dense.mean(axis=0), dense.std(axis=0)

    def by_nearness(self, row: int) -> Array:
        """All other rows, the nearest first."""
        here = self.scaled[[row]]
        distances = np.concatenate(
            [
                squared_distances(self.scaled[rows], here)[:, 0]
                for rows in row_blocks(self.scaled.shape[0], ROWS_AT_ONCE)
            ]
        )
        order = np.argsort(distances, kind="stable")
        return order[order != row]

    def _text(self, row: int, column: int) -> str:
        assert self.shown is not None
        return str(self.shown.iat[row, column])

    def _kind(self, text: str) -> str:
        found = medium(text)
        if is_address(text):
            return found if found and self.allow_remote else "link"
        return found if found and self._under_root(text) else "text"

    def _under_root(self, text: str) -> Path | None:
        """The file under the root that a text names, if it is there."""
        if self.root is None or is_address(text):
            return None
        try:
            path = (self.root / text).resolve(strict=True)
            inside = path.is_relative_to(self.root.resolve()) and path.is_file()
        except (OSError, ValueError, RuntimeError):  # not there, no name, links in a circle
            return None
        return path if inside else None
