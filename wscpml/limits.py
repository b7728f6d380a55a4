"""What reading may take: memory is asked for before it is used, and a parser's end is told.

The budget is half of the memory that is free, or what WSCPML_MAX_MEMORY says, such as `2 GB`.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wscpml.errors import UserError, reason

SHARE = 0.5  # of the free memory
UNKNOWN = 8 << 30  # bytes that are taken to be free where nobody says
NAME = 256  # bytes that a column takes by its name alone
TABLE_COLUMN = 10_000  # bytes that a column of a table takes by being there
COLUMNS_A_BYTE = 64  # columns of a sparse matrix that a byte of its file may stand for
FEW_COLUMNS = 1 << 20  # that are always allowed
UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


def budget() -> int:
    """Bytes that reading one file may take."""
    given = os.environ.get("WSCPML_MAX_MEMORY", "").strip()
    if not given:
        return int(SHARE * _free())
    found = re.fullmatch(r"(\d{1,15}(?:\.\d{1,9})?)\s*([kmgt]?)i?b?", given.lower())
    if not found or not float(found[1]):
        raise UserError(f"WSCPML_MAX_MEMORY: must be a size such as 2 GB, got {given!r}")
    return int(float(found[1]) * UNITS[found[2]])


def ask(size: int, source: object, what: str) -> None:
    """Refuse what takes more bytes than the budget has; `source` and `what` are for the message."""
    most = budget()
    if size > most:
        raise UserError(
            f"{source}: {what}, which takes {_told(size)} of memory, and {_told(most)} may be "
            "taken; check the file, or set WSCPML_MAX_MEMORY to more if there is more"
        )


def ask_for_columns(count: int, path: Path) -> None:
    """Refuse more columns of a sparse matrix than its file or the budget can stand for."""
    most = max(FEW_COLUMNS, COLUMNS_A_BYTE * path.stat().st_size)
    if count > most:
        raise UserError(
            f"{path}: has a column {count}, and is far too small for so many; check its indices"
        )
    ask(count * NAME, path, f"it has {count} columns")


@contextmanager
def told_if_unreadable(path: Path, kind: str = "") -> Iterator[None]:
    """Whatever ends a parser is the user's to mend: it is given a file that is not of its kind.

    Parsers that are not ours raise what they like; no list of that would be whole. The `kind` is
    what the path's ending says unless it is given.
    """
    try:
        yield
    except UserError:
        raise
    except MemoryError:
        raise UserError(
            f"{path}: takes more memory than there is; check the file, or split it"
        ) from None
    except Exception as error:
        raise UserError(
            f"{path}: cannot be read as {kind or path.suffix[1:]} ({reason(error)})"
        ) from None


def _told(size: int) -> str:
    return f"{size / 1e9:,.1f} GB" if size >= 10**8 else f"{size / 1e6:,.1f} MB"


def _free() -> int:
    """Bytes of memory that are free, also within what a container may have."""
    found = [_of_system()]
    group = Path("/sys/fs/cgroup")
    try:
        limit, used = ((group / f"memory.{name}").read_text() for name in ("max", "current"))
        found.append(max(int(limit) - int(used), 0))
    except (OSError, ValueError):  # no such group, or no limit
        pass
    return min(found)


def _of_system() -> int:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("MemAvail")) << 10
    except (OSError, ValueError, StopIteration):
        pass
    try:
        return int(os.sysconf("SC_PHYS_PAGES")) * int(os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):
        return UNKNOWN
