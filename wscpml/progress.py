"""What is being done and how far it is, on the terminal, while something takes long."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

SECONDS = 2  # that something may take without a word


class Steps:
    """The steps of something long: which is being done, of how many, and how far it is."""

    def __init__(self, count: int, shown: bool) -> None:
        from tqdm import tqdm

        self.shown = shown
        form = "{desc} (step {n_fmt} of {total_fmt})"
        self.bar = tqdm(total=count, bar_format=form, disable=not shown, leave=False)

    def begin(self, what: str) -> None:
        """Say which step comes now."""
        self.bar.set_description_str(what, refresh=False)
        self.bar.update()
        self.bar.refresh()

    def each(self, rounds: Iterable[int], what: str = "") -> Iterable[int]:
        """The rounds of a step; a bar counts them once they take long."""
        from tqdm import tqdm

        return tqdm(rounds, what, disable=not self.shown, leave=False, delay=SECONDS)

    def rounds(self, what: str) -> Any:
        """The same as a function of the rounds alone."""
        return partial(self.each, what=what)


@contextmanager
def steps(count: int, shown: bool) -> Iterator[Steps]:
    """So many steps that are told if `shown`."""
    found = Steps(count, shown)
    try:
        yield found
    finally:
        found.bar.close()
