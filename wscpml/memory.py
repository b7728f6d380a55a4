"""Amounts of memory: as people write them, and how much of it is free."""

import ctypes
import os
import re
from contextlib import suppress
from pathlib import Path

UNITS = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
UNKNOWN = 8 << 30  # bytes that are taken to be free where nobody says
GROUP = Path("/sys/fs/cgroup")  # of a container


def parsed(amount: str | float) -> int:
    """A number of bytes, also as text such as `4 GB`; anything else is a ValueError."""
    found = re.fullmatch(
        r"\s*(\d{1,15}(?:\.\d{1,9})?)\s*([KMGT]?B)?\s*", str(amount), re.IGNORECASE
    )
    if not found or float(found[1]) <= 0:
        raise ValueError("must be an amount of memory such as 4 GB")
    unit = (found[2] or "").upper()
    return int(float(found[1]) * UNITS["" if unit == "B" else unit])


def told(size: float) -> str:
    """A number of bytes in words."""
    unit = next((each for each in ("GB", "MB", "KB") if size >= UNITS[each]), "")
    return f"{size / UNITS[unit]:.3g} {unit or 'bytes'}"


def free() -> int:
    """The bytes of memory that can be had now, also within what a container may have."""
    found = [_of_system()]
    try:
        limit, used = ((GROUP / f"memory.{name}").read_text() for name in ("max", "current"))
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


def give_back() -> None:
    """Give memory that is not used any more back to the system, where the C library can."""
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
