"""A review of made-up songs, some of which would do harm if they were not shown as text."""

from pathlib import Path

import numpy as np
import pandas as pd

from tests.quality.audits import HOSTILE
from wscpml.review.items import Items
from wscpml.review.session import Session
from wscpml.review.view import Judgement

LABELS = ["rock", "jazz", "folk", HOSTILE[0]]


def some_items(n=30, **changes) -> Items:
    """Songs in a row, each like its neighbours; song i has the labels i, i + 1 (modulo 4)."""
    candidates = np.zeros((n, len(LABELS)), np.uint8)
    for shift in (0, 1):
        candidates[np.arange(n), (np.arange(n) + shift) % len(LABELS)] = 1
    X = np.arange(n)[:, None] ** 1.1 @ np.array([[1.0, 0.5]])
    shown = pd.DataFrame(
        {
            "title": [HOSTILE[i] if i < len(HOSTILE) else f"Title {i}" for i in range(n)],
            "text": [f"words of\nsong {i}" for i in range(n)],
        }
    )
    given = {
        "title": "A <b>title</b>",
        "ids": [f"song {i}" for i in range(n)],
        "labels": LABELS,
        "candidates": candidates,
        "features": X,
        "feature_names": ["tempo", "loudness"],
        "scaled": X / n,
        "shown": shown,
    }
    return Items(**(given | changes))


def by_order(items: Items) -> Judgement:
    """The first items are the most suspicious; other labels than a row's own are likely at 0.3."""
    n, q = items.candidates.shape
    likely = (1 + np.arange(n * q).reshape(n, q)) / (n * q + 1)
    return Judgement(likely * items.candidates, lambda _: np.full(q, 0.3))


class Clock:
    """A clock that a test sets."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Review:
    """A session over made-up items, whose clock and background work a test has in hand."""

    def __init__(
        self, folder: Path, items: Items | None = None, judge=None, every=1000, first=None
    ) -> None:
        self.items = some_items() if items is None else items
        self.journal, self.clock, self.started = folder / "decisions.csv", Clock(), []
        self.session = Session(
            self.items,
            judge or (lambda _: by_order(self.items)),
            first or by_order(self.items),
            self.journal,
            every=every,
            clock=self.clock,
            start=self.started.append,
        )
