"""What is being done and how far it is, on the terminal, while something takes long."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import Event, Thread
from typing import Any, TypeVar

SECONDS = 2  # that something may take without a word
TICK = 1.0  # seconds after which the time that it has taken is told anew

T = TypeVar("T")


class Steps:
    """The steps of something long: which is being done, of how many, how far it is, and the time.

    The time goes on by itself: of a step that is one long computation, nothing else can be told.
    """

    def __init__(self, count: int, shown: bool, delay: float = 0) -> None:
        from tqdm import tqdm

        self.shown = shown
        which = "step {n_fmt} of {total_fmt}, " if count > 1 else ""
        self.bar = tqdm(
            total=count,
            bar_format="{desc} (" + which + "{elapsed})",
            mininterval=0,
            miniters=0,
            disable=not shown,
            leave=False,
            delay=delay,
        )
        self._ended, self._ticking = Event(), Thread(target=self._tick, daemon=True)
        if shown:
            self._ticking.start()

    def _tick(self) -> None:
        while not self._ended.wait(TICK):
            self.bar.update(0)

    def begin(self, what: str) -> None:
        """Say which step comes now."""
        self.bar.set_description_str(what, refresh=False)
        self.bar.update()

    def rounds(self, what: str) -> Any:
        """What counts the rounds of a step, once they take long."""
        return partial(counted, what=what, shown=self.shown)

    def end(self) -> None:
        """Say nothing more."""
        self._ended.set()
        if self.shown:
            self._ticking.join()
        self.bar.close()


@contextmanager
def steps(count: int, shown: bool, delay: float = 0) -> Iterator[Steps]:
    """So many steps that are told if `shown`, once they have taken a `delay` in seconds."""
    found = Steps(count, shown, delay)
    try:
        yield found
    finally:
        found.end()


def counted(items: Iterable[T], what: str, shown: bool) -> Iterable[T]:
    """The items; if `shown`, a bar counts them once they take long."""
    if not shown:
        return items
    from tqdm import tqdm

    return tqdm(items, what, leave=False, delay=SECONDS)
