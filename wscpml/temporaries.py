"""Files and directories that are being written, beside the place where they will be.

Each has a name of its own that nobody else gives, and a lock for as long as its writer lives. So
what a writer left behind that was killed can be told from what is being written, and from what is
a person's own; the next writer to the same place sweeps it away.
"""

import errno
import os
import re
import secrets
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

if sys.platform != "win32":
    import fcntl

OURS = re.compile(r"\.wscpml-[0-9a-f]{16}\.tmp")
ASIDE = re.compile(r"\.wscpml-[0-9a-f]{16}\.old-(.+)")  # what a directory was until a moment ago
HERE, EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux
BUSY = (errno.EEXIST, errno.ENOTEMPTY)

_held: set[Path] = set()  # by this process


@contextmanager
def file(directory: Path) -> Iterator[Path]:
    """A new empty file to write to; gone at the end, unless it was moved."""
    with _new(directory, lambda path: path.touch(exist_ok=False)) as path:
        yield path


@contextmanager
def directory(parent: Path) -> Iterator[Path]:
    """A new empty directory to write to; gone at the end, unless it was moved."""
    with _new(parent, Path.mkdir) as path:
        yield path


def put_in_place(new: Path, path: Path) -> None:
    """Move a directory to its place; what was there is swapped for it, and is then removed."""
    while True:
        try:
            new.rename(path)
            return
        except OSError as error:
            if error.errno not in BUSY:
                raise
        with suppress(FileNotFoundError):  # somebody has just moved it away
            if not _exchange(new, path):
                _move_aside(new, path)
            return


def discard() -> None:
    """Remove all that this process is writing: it ends at once."""
    for path in list(_held):
        _remove(path)


def sweep(directory: Path) -> None:
    """Remove what writers that live no more have left in a directory."""
    with suppress(OSError):
        for entry in list(os.scandir(directory)):
            moved = ASIDE.fullmatch(entry.name)
            if moved or OURS.fullmatch(entry.name):
                _sweep(Path(entry.path), moved and directory / moved[1])


@contextmanager
def _new(parent: Path, make: Callable[[Path], None]) -> Iterator[Path]:
    sweep(parent)
    while True:
        path = parent / f".wscpml-{secrets.token_hex(8)}.tmp"
        _held.add(path)
        lock = None
        try:
            make(path)
            lock = _lock(path, wait=True)
            if not path.exists():  # swept before it was locked
                continue
            yield path
            return
        finally:
            _remove(path)
            _held.discard(path)
            if lock is not None:
                os.close(lock)


def _lock(path: Path, wait: bool) -> int | None:
    """A lock on a file or directory, to be closed; None if another has it, or there is none."""
    if sys.platform == "win32":  # nothing is locked there, and so nothing swept
        return None
    opened = None
    try:
        opened = os.open(path, os.O_RDONLY)
        fcntl.flock(opened, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        if opened is not None:
            os.close(opened)
        return None
    return opened


def _sweep(path: Path, was: Path | None) -> None:
    lock = _lock(path, wait=False)
    if lock is None:
        return
    if was is not None and not was.exists():
        path.rename(was)  # its writer was killed between two moves
    else:
        _remove(path)
    os.close(lock)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def _exchange(new: Path, path: Path) -> bool:
    """Swap two directories at one moment, where the system can."""
    if sys.platform != "linux":
        return False
    import ctypes

    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    if rename(HERE, os.fsencode(new), HERE, os.fsencode(path), EXCHANGE) == 0:
        return True
    if ctypes.get_errno() == errno.ENOENT:
        raise FileNotFoundError
    return False


def _move_aside(new: Path, path: Path) -> None:
    """The same by two moves; should it be killed between them, `sweep` takes the first one back."""
    aside = path.with_name(f"{new.stem}.old-{path.name}")
    lock = _lock(path, wait=True)
    path.rename(aside)
    try:
        new.rename(path)
    except OSError:
        with suppress(OSError):  # somebody else has taken the place
            aside.rename(path)
        raise
    finally:
        if path.exists():
            _remove(aside)
        if lock is not None:
            os.close(lock)
