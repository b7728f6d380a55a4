"""What a cell that is shown to a person holds: a picture, a sound, an address, or just text."""

from pathlib import PurePosixPath
from typing import Literal
from urllib.parse import urlsplit

Medium = Literal["image", "audio"]

PICTURES = {
    ".avif": "image/avif",
    ".bmp": "image/bmp",
    ".gif": "image/gif",
    ".jpeg": "image/jpeg",
    ".jpg": "image/jpeg",
    ".png": "image/png",
    ".webp": "image/webp",
}
SOUNDS = {
    ".aac": "audio/aac",
    ".flac": "audio/flac",
    ".m4a": "audio/mp4",
    ".mp3": "audio/mpeg",
    ".oga": "audio/ogg",
    ".ogg": "audio/ogg",
    ".opus": "audio/ogg",
    ".wav": "audio/wav",
}


def medium(text: str) -> Medium | None:
    """What a file name or the address of a file ends like."""
    found = ending(text)
    return "image" if found in PICTURES else "audio" if found in SOUNDS else None


def is_address(text: str) -> bool:
    """Whether it is the address of something on the web, and nothing else."""
    return text.lower().startswith(("http://", "https://")) and not any(map(str.isspace, text))


def ending(text: str) -> str:
    """The ending of the file that a text names, in small letters; nothing if it names none."""
    try:
        path = urlsplit(text).path if is_address(text) else text
    except ValueError:
        return ""
    return "" if "\n" in path else PurePosixPath(path).suffix.lower()
