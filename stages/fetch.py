"""Put the raw files of a named data set where DVC keeps their versions."""

from pathlib import Path

from wscpml import artifacts
from wscpml.datasets import files
from wscpml.datasets.registry import REGISTRY
from wscpml.settings import Settings

from . import run

RAW = Path("data/raw")


def fetch(settings: Settings) -> None:
    """Write data/raw/: the files, checked, and files.json, the sha256 of each."""
    name = settings.dataset.name
    paths = [kept(file) or files.get(file) for file in REGISTRY[name].files] if name else []
    listed = {path.name: files.digest(path) for path in paths}
    artifacts.write_directory(RAW, {path.name: path for path in paths} | {"files.json": listed})


def kept(file: files.File) -> Path | None:
    """A file that is in place already and right: it is not fetched again."""
    path = RAW / file.name
    return path if path.is_file() and files.digest(path) == file.sha256 else None


if __name__ == "__main__":
    run(fetch)
