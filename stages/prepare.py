"""Read and check the data set, and hold one fold of its rows out for the test."""

import sys
from pathlib import Path

import numpy as np

from wscpml import artifacts
from wscpml.arrays import Array
from wscpml.datasets import files, own, splits
from wscpml.datasets.dataset import check, lean
from wscpml.datasets.registry import REGISTRY
from wscpml.errors import UserError, readable
from wscpml.randomness import stream
from wscpml.settings import Settings

from . import run

EXAMPLES = 2  # rows as they were, which the tracked model shows


def prepare(settings: Settings) -> None:
    """Write data/prepared/ and data/split.npy (True for a test row)."""
    chosen, fetched = settings.dataset, artifacts.read("data/raw/files.json")
    if chosen.name:
        data = REGISTRY[chosen.name].load(lambda file: raw(file.name, fetched))
    else:
        sources = own.Sources(
            **chosen.model_dump(exclude={"name", "complete"}), named=own.in_params
        )
        data = own.load(sources, lambda n: test_rows(settings, n))
    for warning in check(data, chosen.title):
        print(readable(warning), file=sys.stderr)
    given = {"truth": data.truth, "candidates": data.candidates, "votes": data.votes}
    given = {name: labels for name, labels in given.items() if labels is not None}
    names = {
        "given": list(given),
        "features": data.feature_names,
        "labels": data.label_names,
        "instances": data.instance_ids,
    }
    shown = {} if data.shown is None else {"shown.parquet": data.shown}
    names |= {"shown": list(data.shown)} if data.shown is not None else {}
    contents = {
        "names.json": names,
        **shown,
        **artifacts.matrix_file("features", data.compact_features),
    }
    for name, labels in given.items():
        contents |= artifacts.matrix_file(name, lean(labels))
    if data.encoding and data.raw is not None:
        contents |= data.encoding.to_files() | {"raw.parquet": data.raw[:EXAMPLES]}
    n = len(data.instance_ids)
    test = test_rows(settings, n) if data.truth is not None else np.zeros(n, bool)
    artifacts.write_directory("data/prepared", contents)
    artifacts.write("data/split.npy", test)


def test_rows(settings: Settings, n: int) -> Array:
    """Which of so many rows are held out, a boolean ``(n,)``."""
    split = settings.split
    if split.folds is None:
        return np.zeros(n, bool)
    return splits.held_out(n, split.folds, split.fold, stream(settings.seed, "split"))


def raw(name: str, fetched: dict[str, str]) -> Path:
    """A file of the named data set, as it was fetched."""
    path = Path("data/raw") / name
    if not path.is_file() or files.digest(path) != fetched.get(name):
        raise UserError(
            f"{path}: is missing or not the file that was fetched; `dvc checkout` gets it back, "
            "`dvc repro` fetches it anew"
        )
    return path


if __name__ == "__main__":
    run(prepare)
