"""The data sets of the paper's Table 1, as registry.yaml beside this file lists them."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import yaml

from wscpml.datasets.dataset import Dataset
from wscpml.datasets.files import File, find, get


@dataclass(frozen=True)
class Named:
    """A named data set."""

    instances: int
    dimensions: int
    labels: int
    average_true: float
    citation: str
    note: str
    average_candidates: float | None = None  # None: a clean set, noise is injected
    levels: tuple[int, ...] = ()  # the paper's numbers of candidates for a clean set
    files: tuple[File, ...] = ()  # none: it ships inside river
    label_count: int | None = None  # of the last attributes of its ARFF files, which follow in turn

    def load(self, get: Callable[[File], Path] = get) -> Dataset:
        """Read it from the files that `get` gives: those to be had here, fetched if need be."""
        from wscpml.datasets import readers, river

        if not self.files:
            return river.yeast()
        parts = [readers.read(get(file), self.label_count) for file in self.files]
        whole = readers.stacked(parts) if self.label_count else readers.merged(parts)
        n, d = whole.features.shape
        return Dataset(
            features=whole.features,
            truth=whole.labels if whole.truth is None else whole.truth,
            candidates=None if self.average_candidates is None else whole.labels,
            feature_names=whole.feature_names or [f"x{j + 1}" for j in range(d)],
            label_names=whole.label_names or [f"label{j + 1}" for j in range(self.labels)],
            instance_ids=np.arange(n).tolist(),
        )

    def availability(self) -> str:
        """Whether it can be had: built in, here, to fetch, or to supply."""
        if not self.files:
            return "built in"
        if all(find(file) for file in self.files):
            return "here"
        return "to fetch" if all(file.url for file in self.files) else "to supply"


def _file(name: str, sha256: str | None = None, **place: str) -> File:
    if not place:
        return File(name, sha256, None)
    path = quote(f"{place['repository']}/{place['commit']}/{place['path']}")
    return File(name, sha256, f"https://raw.githubusercontent.com/{path}")


def _named(entry: dict[str, Any]) -> Named:
    files = tuple(_file(**file) for file in entry.pop("files", []))
    return Named(**entry, files=files)


REGISTRY: dict[str, Named] = {
    name: _named(entry)
    for name, entry in yaml.safe_load(
        Path(__file__).with_name("registry.yaml").read_text(encoding="utf-8")
    ).items()
}

# The paper's benchmarks with noise: emotions-3 is emotions padded to 3 candidates.
BENCHMARKS: dict[str, tuple[str, int]] = {
    f"{name}-{r}": (name, r) for name, entry in REGISTRY.items() for r in entry.levels
}
