"""Ctrl-C, SIGTERM, a closed terminal: a program of ours ends at once, and leaves nothing half done.

It says one line, and ends where it is, without what other code would do or print on its way out.
All that is kept is written so that a kill does no harm; what is being written is discarded, and
workers end too.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM))
STOPPED = "stopped"
LOOK_AGAIN = 0.5  # seconds between two looks at whether a parent lives


def install(say: str = STOPPED) -> None:
    """End this program so from now on; a signal that it was started to ignore stays ignored."""

    def stop(number: int, _frame: FrameType | None) -> None:
        for each in SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        try:
            for last_act in (_end_workers, _discard_temporaries, sys.stdout.flush):
                with suppress(Exception):  # of modules, too, that are being imported
                    last_act()
            line = f"\n{say}\n" if sys.stderr.isatty() else f"{say}\n"  # a bar may be on the line
            os.write(2, line.encode())
        finally:  # also where nobody hears the line any more
            os._exit(128 + number)

    for each in SIGNALS:
        if signal.getsignal(each) != signal.SIG_IGN:
            signal.signal(each, stop)


@contextmanager
def in_one_line() -> Iterator[None]:
    """The same for as long as a block runs, where signals can be caught at all."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {each: signal.getsignal(each) for each in SIGNALS}
    install()
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def is_program(package: str) -> bool:
    """Whether Python was started with -m and this package, by its whole name, or a module in it."""
    given = sys.orig_argv
    module = given[given.index("-m") + 1 :] if "-m" in given else []
    return bool(module) and f"{module[0]}.".startswith(f"{package}.")


def end_with_parent() -> None:
    """Stop as by SIGTERM once the process that started this one is no more, or if it is already."""
    parent = os.getppid()

    def look() -> None:
        while os.getppid() == parent and _is_ours(parent):
            time.sleep(LOOK_AGAIN)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=look, daemon=True).start()


def _is_ours(parent: int) -> bool:
    """Whether a parent has started this process: whoever takes it in later has a session apart."""
    if sys.platform == "win32":
        return True
    try:
        return os.getsid(parent) == os.getsid(0)
    except OSError:  # it is gone, or so far apart that it may not be asked
        return False


def _discard_temporaries() -> None:
    if "wscpml.temporaries" in sys.modules:
        sys.modules["wscpml.temporaries"].discard()


def _end_workers() -> None:
    """Kill the processes that this one has started, and those that they have."""
    try:
        import psutil  # type: ignore[import-untyped]
    except ModuleNotFoundError:  # then nothing that starts processes is installed either
        return
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            process.kill()
