"""A review in progress: who sees which item, what was decided, and judging anew meanwhile.

Pairs come from the queue in batches, grouped by item. Every decision is a row of the decisions
table before anything else happens; that table is also all that is remembered, so that a review
goes on where it was after the server was stopped in whatever way, and takes notice of what others
append to the same file.
"""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from wscpml.arrays import values_at
from wscpml.errors import UserError
from wscpml.quality import decisions, queue
from wscpml.quality.decisions import Decided
from wscpml.review.items import Items
from wscpml.review.view import Judgement, View, describe

BATCH = 100  # pairs that are taken from the queue at a time
LEASE = 180.0  # seconds without a sign of life after which an item is free for others
LATELY = 20  # decisions that the pace is told by
MOST_WORDS = 1000  # characters of a note, or of a reviewer's name

Pair = tuple[int, int]  # row, label
Judge = Callable[[Decided], Judgement]


class Conflict(UserError):
    """A decision on an item that is not on that screen any more."""


class _Done(NamedTuple):
    """A decision that was written for a browser."""

    row: int
    asked: list[int]  # labels of that row
    label: int
    time: str  # by which it is known again
    reviewer: str
    before: dict[str, Any] | None  # the reviewer's own word that counted until then


@dataclass
class _Screen:
    """What one browser is at."""

    row: int | None = None
    asked: list[int] = field(default_factory=list)  # labels of that row
    seen: float = 0.0  # when it was last heard of
    skipped: set[Pair] = field(default_factory=set)
    done: list[_Done] = field(default_factory=list)  # what undo takes
    times: list[float] = field(default_factory=list)  # of the last decisions


def in_background(work: Callable[[], None]) -> None:
    """Do something beside all else, for as long as the program runs."""
    threading.Thread(target=work, daemon=True).start()


class Session:
    """The state of a review; every method may be called from any thread.

    It judges anew after `every` so many decisions. A `browser` is whatever names one.
    """

    def __init__(
        self,
        items: Items,
        judge: Judge,
        first: Judgement,
        journal: Path,
        *,
        every: int = 50,
        clock: Callable[[], float] = time.monotonic,
        start: Callable[[Callable[[], None]], None] = in_background,
    ) -> None:
        self.items, self.journal = items, journal
        self._judge, self._every = judge, every
        self._clock, self._start = clock, start
        self._lock = threading.Lock()
        self._screens: dict[str, _Screen] = {}
        self._batch: list[tuple[int, list[int]]] = []
        self._new = 0  # decisions since judging last began
        self._judging, self._rounds, self._problem = False, 0, ""
        self._version: tuple[int, int] | None = None  # of the journal that was last read
        self._lottery = queue.Lottery(items.ids, items.labels)
        self._ids = pd.Index(list(map(str, [*items.ids, *items.held_out])), dtype=object)
        decisions.append(journal, [])
        self._read()
        self._take(first)

    def next(self, browser: str, leave: bool = False) -> dict[str, Any] | None:
        """The item to look at, as before if that is not done; None if nothing is left.

        To `leave` an item is to skip what is still open of it.
        """
        with self._lock:
            self._read()
            me = self._screen(browser)
            if leave and me.row is not None:
                me.skipped |= {(me.row, label) for label in me.asked}
            if not self._open(me, me.row, me.asked):
                found = self._first(me)
                if found is None:
                    self._fill()
                    found = self._first(me)
                self._show(me, *(found or (None, [])))
            view = self._view(me)
        return describe(self.items, view) if view else None

    def decide(
        self, browser: str, row: int, label: int, true: bool, reviewer: str = "", note: str = ""
    ) -> None:
        """Put a decision on disk."""
        with self._lock:
            me = self._screen(browser)
            self._check(me, row, label)
            self._read()
            before, reviewer = self._words.get((row, label)), reviewer[:MOST_WORDS]
            own = before if before and before["reviewer"] == reviewer else None
            time = self._append(row, label, true, reviewer, note[:MOST_WORDS])
            me.done.append(_Done(row, me.asked, label, time, reviewer, own))
            me.times = [*me.times, self._clock()][-LATELY:]
            self._judge_if_due()

    def skip(self, browser: str, row: int, label: int) -> None:
        """Do not ask this browser for a pair again."""
        with self._lock:
            me = self._screen(browser)
            self._check(me, row, label)
            me.skipped.add((row, label))

    def undo(self, browser: str) -> dict[str, Any] | None:
        """Take back this browser's last decision, and return to its item; None if there is none.

        What its reviewer had said of the pair before counts again. Where others have spoken since,
        it stays as it is.
        """
        with self._lock:
            me = self._screen(browser)
            if not me.done:
                return None
            self._read()
            row, asked, label, time, reviewer, before = me.done[-1]
            last = self._words.get((row, label))
            if not last or last["time"] != time:
                me.done.pop()
                raise Conflict("this was decided anew since, so that it cannot be undone")
            if before:
                self._append(row, label, **before)
            else:
                self._append(row, label, None, reviewer)
            me.done.pop()
            self._show(me, row, [label, *(j for j in asked if j != label)])
            me.skipped.discard((row, label))
            me.times = me.times[:-1]
            self._judge_if_due()
            view = self._view(me)
        return describe(self.items, view) if view else None

    def again(self, browser: str) -> None:
        """Ask this browser for what it has skipped, after all."""
        with self._lock:
            self._screen(browser).skipped.clear()

    def progress(self, browser: str) -> dict[str, Any]:
        """How far the review is: counts, pace, and how many errors are likely to be left."""
        with self._lock:
            me = self._screen(browser)
            spent = me.times[-1] - me.times[0] if me.times else 0
            others = [s for s in self._screens.values() if s is not me and self._is_there(s)]
            of, confidence = self._decided, self._judgement.label_confidence
            given = values_at(self.items.candidates, of.row, of.label) == 1
            settled = 1 - values_at(confidence, of.row[given], of.label[given])
            return {
                "decided": len(self._words),
                "false": int((~of.true).sum()),
                "tags": self._tags,
                "wrong": self._wrong_share.told() if self._wrong_share else "",
                "errors_left": max(self._doubt - float(settled.sum()), 0.0),
                "per_minute": 60 * (len(me.times) - 1) / spent if spent else None,
                "skipped": len(me.skipped - self._words.keys()),
                "undo": bool(me.done),
                "others": len(others),
                "judging": self._judging,
                "rounds": self._rounds,
                "until_judged": max(self._every - self._new, 0),
                "problem": self._problem,
            }

    # All below is called with the lock held, but for the judging itself.

    def _screen(self, browser: str) -> _Screen:
        me = self._screens.setdefault(browser, _Screen())
        me.seen = self._clock()
        return me

    def _is_there(self, screen: _Screen) -> bool:
        return self._clock() - screen.seen < LEASE

    def _show(self, me: _Screen, row: int | None, asked: list[int]) -> None:
        """Put an item on a screen, and off all others."""
        for other in self._screens.values():
            if other.row == row:
                other.row = None
        me.row, me.asked = row, asked

    def _check(self, me: _Screen, row: int, label: int) -> None:
        if me.row != row:
            raise Conflict("this item is not on your screen any more; here is the next")
        if not 0 <= label < len(self.items.labels):
            raise UserError(f"label {label}: there is none")

    def _view(self, me: _Screen) -> View | None:
        """What `describe` needs; it takes its time, and does without the lock."""
        if me.row is None:
            return None
        words = {j: word for (i, j), word in self._words.items() if i == me.row}
        left = self._open(me, me.row, me.asked)
        return View(me.row, list(me.asked), left, words, self._judgement, self._decided)

    def _open(self, me: _Screen, row: int | None, labels: list[int]) -> list[int]:
        """The labels of a row that are neither decided nor skipped by this browser."""
        if row is None:
            return []
        return [j for j in labels if (row, j) not in self._words and (row, j) not in me.skipped]

    def _first(self, me: _Screen) -> tuple[int, list[int]] | None:
        """The first item of the batch that is on no other screen, and what is to be asked of it."""
        others = [s.row for s in self._screens.values() if s is not me and self._is_there(s)]
        for row, labels in self._batch:
            if row not in others and (left := self._open(me, row, labels)):
                return row, left
        return None

    def _fill(self) -> None:
        """Take a batch from the queue, so large that there is something in it for everybody."""
        screens = self._screens.values()
        waiting: set[Pair] = set().union(*(screen.skipped for screen in screens))
        waiting |= {(s.row, j) for s in screens if s.row is not None for j in s.asked}
        asked = queue.choose(
            self._judgement.label_confidence,
            self.items.candidates,
            self._decided,
            BATCH + len(waiting),
            self._lottery,
        )
        grouped: dict[int, list[int]] = {}
        for row, label in zip(asked.row.tolist(), asked.label.tolist(), strict=True):
            grouped.setdefault(row, []).append(label)
        self._batch = list(grouped.items())

    def _append(
        self,
        row: int,
        label: int,
        true: bool | None,
        reviewer: str,
        note: str = "",
        time: str | None = None,
    ) -> str:
        """Put a word on disk, of now or of a time; returns that. Call it when all was read."""
        time = time or datetime.now(UTC).isoformat(timespec="microseconds")
        word = {
            "instance": self.items.ids[row],
            "label": self.items.labels[label],
            "decision": true,
            "reviewer": reviewer,
            "time": time,
            "note": note,
        }
        decisions.append(self.journal, [word])
        self._new += 1
        with suppress(UserError):  # it is on disk; what others broke since is told by the next read
            self._read()
        return time

    def _read(self) -> None:
        """Take notice of what the journal says, by whoever wrote it."""
        status = self.journal.stat() if self.journal.exists() else None
        version = (status.st_mtime_ns, status.st_size) if status else None
        if version and version == self._version:
            return
        words = decisions.last_words(decisions.read(self.journal))
        every = decisions.decided(words, self._ids, self.items.labels, str(self.journal))
        of = every.of_rows(np.arange(len(self._ids)) < len(self.items.ids))
        said = {
            (each.instance, each.label): {
                "reviewer": each.reviewer,
                "note": each.note,
                "time": each.time,
            }
            for each in words.itertuples()
        }
        self._words = {
            (i, j): {"true": true, **said[str(self.items.ids[i]), self.items.labels[j]]}
            for i, j, true in zip(*(a.tolist() for a in (of.row, of.label, of.true)), strict=True)
        }
        self._decided, self._version = of, version

    def _take(self, judgement: Judgement) -> None:
        """Go on with a judgement, and with a batch that is chosen by it."""
        given = np.nonzero(self.items.candidates)
        self._judgement, self._tags = judgement, len(given[0])
        self._doubt = float((1 - values_at(judgement.label_confidence, *given)).sum())
        self._wrong_share = queue.wrong_share(self.items.candidates, self._decided, self._lottery)
        self._batch = []

    def _judge_if_due(self) -> None:
        if not self._judging and self._new >= self._every:
            self._judging, self._new = True, 0
            self._start(self._judge_anew)

    def _judge_anew(self) -> None:
        """Judge all labels in the light of what is decided."""
        try:
            found, problem = self._judge(self._decided), ""
        except Exception as error:  # the review goes on with what was known
            found, problem = None, f"judging anew failed: {error}"
        with self._lock:
            if found:
                self._take(found)
                self._rounds += 1
            self._problem, self._judging = problem, False
            self._judge_if_due()
