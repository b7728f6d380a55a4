"""What the page is told of one item: its content, its tags and why, and what may be missing."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from wscpml.arrays import Array, Matrix, to_dense
from wscpml.quality.decisions import Decided
from wscpml.review.items import Items

SIMILAR = 3  # items that have a tag, and items that do not
MISSING, LIKELY = 3, 0.2  # labels that may be missing: how many, and from which probability
EXCERPT = 200  # characters of a similar item's cells


@dataclass(frozen=True)
class Judgement:
    """What is thought of the labels of n items."""

    label_confidence: Matrix  # (n, q)
    probabilities: Callable[[int], Array]  # of the labels of one row, (q,), by the trained model

    @classmethod
    def of(cls, estimator: Any, X: Matrix) -> "Judgement":
        """What a WSCPML thinks that was fitted to the rows ``X``."""
        map_, head = estimator.map_, estimator.head_
        return cls(
            estimator.judged_.label_confidence,
            lambda row: head.predict_proba(map_(X[[row]]))[0],
        )


@dataclass(frozen=True)
class View:
    """An item on a screen, at one moment."""

    row: int
    asked: list[int]  # the labels that it is there for
    open: list[int]  # those of them that are neither decided nor skipped
    words: Mapping[int, dict[str, Any]]  # what was decided of its labels, by whom, with which note
    judgement: Judgement
    decided: Decided  # of all items


def describe(items: Items, view: View) -> dict[str, Any]:
    """The item as plain data: the tags that are asked first, then the least likely."""
    row, every = view.row, view.judgement.label_confidence
    tagged, confidence = (to_dense(each[[row]])[0] for each in (items.candidates, every))
    given = tagged == 1
    there = set(np.flatnonzero(given).tolist()) | set(view.words) | set(view.asked)
    chances = view.judgement.probabilities(row)
    likely = [j for j in np.argsort(-chances, kind="stable").tolist() if chances[j] >= LIKELY]
    near = items.by_nearness(row)
    mentioned: set[int] = set()

    def tag(j: int) -> dict[str, Any]:
        have = _has(items, view.decided, j)[near]
        sides = [near[have][:SIMILAR].tolist(), near[~have][:SIMILAR].tolist()]
        mentioned.update(*sides)
        return {
            "label": j,
            "name": items.labels[j],
            "given": bool(given[j]),
            "chance": float(confidence[j] if given[j] else chances[j]),
            "word": view.words.get(j),
            "with": [{"row": i, "chance": float(every[i, j])} for i in sides[0]],
            "without": [{"row": i} for i in sides[1]],
        }

    rest = sorted(there - set(view.asked), key=lambda j: (confidence[j], j))
    return {
        "row": row,
        "id": str(items.ids[row]),
        "cells": items.cells(row),
        "open": view.open,
        "tags": [tag(j) for j in (*view.asked, *rest)],
        "missing": [tag(j) for j in [j for j in likely if j not in there][:MISSING]],
        "similar": {
            i: {"id": str(items.ids[i]), "cells": items.cells(i, EXCERPT)}
            for i in sorted(mentioned)
        },
    }


def _has(items: Items, decided: Decided, j: int) -> Array:
    """Which items have a label, a boolean ``(n,)``: by their tags, and by what was decided."""
    has = to_dense(items.candidates[:, [j]])[:, 0] == 1
    about = decided.label == j
    has[decided.row[about]] = decided.true[about]
    return has
