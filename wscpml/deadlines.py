"""A time after which whatever is waited for is given up, however it keeps one waiting."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

AGAIN = 0.5  # seconds: somebody may have taken the first call for something else


class _Late(BaseException):
    """No Exception, which libraries would take for a reason to try again."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raise a TimeoutError unless the block is done in time; inside of another, that one counts.

    It interrupts the main thread of a POSIX system. Elsewhere it does nothing.
    """
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or not hasattr(signal, "setitimer") or signal.getitimer(signal.ITIMER_REAL)[0]:
        yield
        return

    def late(_number: int, _frame: FrameType | None) -> None:
        raise _Late

    before = signal.signal(signal.SIGALRM, late)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)
        yield
    except _Late:
        raise TimeoutError(f"no answer in {seconds:.0f} seconds") from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
