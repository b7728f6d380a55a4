"""The one exception that is the user's to mend, and text from elsewhere as it may be shown."""

import re

MOST_LINES, MOST_CHARACTERS, END = 100, 600, 200  # of a line too long, so much of the end is kept
UNPRINTABLE = re.compile(  # control, bidirectional and invisible characters, halves of pairs
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


HALF = re.compile("[\ud800-\udfff]")  # of a character: no file can hold it


class UserError(Exception):
    """A mistake in settings, data or surroundings: says what is wrong, where, and the way out.

    Each of its lines is one line, as `readable` has it.
    """

    def __init__(self, *lines: str) -> None:
        more = [f"... and {len(lines) - MOST_LINES} more"] if len(lines) > MOST_LINES else []
        super().__init__(*map(readable, lines[:MOST_LINES]), *more)

    def __str__(self) -> str:
        return "\n".join(self.args)


def readable(text: str) -> str:
    """Text as one line for a terminal: what cannot be seen as its code, the middle left out."""
    if len(text) > MOST_CHARACTERS:
        text = f"{text[: MOST_CHARACTERS - END - 5]} ... {text[-END:]}"
    found = UNPRINTABLE.sub(_code, text)
    return found if len(found) <= MOST_CHARACTERS else readable(found)


def visible(text: str) -> str:
    """Text of several lines for a terminal: what cannot be seen as its code."""
    return "\n".join(UNPRINTABLE.sub(_code, line) for line in text.split("\n"))


def _code(character: re.Match[str]) -> str:
    return ascii(character.group())[1:-1]


def reason(error: BaseException) -> str:
    """What another's exception says, in one line; its name where it says little."""
    line = str(error).strip().partition("\n")[0].strip()
    return line if " " in line else f"{type(error).__name__} {line}".strip()
