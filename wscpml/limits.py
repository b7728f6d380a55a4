"""What reading may take: memory is asked for before it is used, and a parser's end is told.

The budget is half of the memory that is free, or what WSCPML_MAX_MEMORY says, such as `2 GB`.
"""

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from wscpml.errors import UserError, reason
from wscpml.memory import free, parsed, told

SHARE = 0.5  # of the free memory
NAME = 256  # bytes that a column takes by its name alone
TABLE_COLUMN = 10_000  # bytes that a column of a table takes by being there
COLUMNS_A_BYTE = 64  # columns of a sparse matrix that a byte of its file may stand for
ESCAPED_HALF = re.compile(r"\\u[dD][89a-fA-F]")  # of a character, or of two that are a pair
FEW_COLUMNS = 1 << 20  # that are always allowed


def budget() -> int:
    """Bytes that reading one file may take."""
    given = os.environ.get("WSCPML_MAX_MEMORY", "").strip()
    if not given:
        return int(SHARE * free())
    try:
        return parsed(given)
    except ValueError as error:
        raise UserError(f"WSCPML_MAX_MEMORY: {error}, got {given!r}") from None


def ask(size: int, source: object, what: str) -> None:
    """Refuse what takes more bytes than the budget has; `source` and `what` are for the message."""
    most = budget()
    if size > most:
        raise UserError(
            f"{source}: {what}, which takes {told(size)} of memory, and {told(most)} may be "
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


def parsed_json(text: str) -> Any:
    """What JSON says; a ValueError also where it names half of a character."""
    found = json.loads(text)
    if ESCAPED_HALF.search(text):
        json.dumps(found, ensure_ascii=False).encode()
    return found


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
