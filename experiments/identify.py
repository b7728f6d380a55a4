"""Tell what each cell depends on, so that it runs again when that changed and only then."""

import hashlib
from importlib.metadata import version
from pathlib import Path

from experiments import ROOT
from experiments.settings import KNOWN
from wscpml import artifacts
from wscpml.code_digest import CodeDigest
from wscpml.datasets.files import OWN, File, digest
from wscpml.datasets.registry import BENCHMARKS, REGISTRY
from wscpml.methods import PLACES

PACKAGES = ("experiments", "wscpml")
NEVER_CHANGE_RESULTS = frozenset(
    {
        "wscpml.errors",
        "wscpml.evaluation.memory",
        "wscpml.methods:method",  # finds a method by name; its class is an entry of its own
    }
)
TASKS = {
    "convergence": ["experiments.convergence:course"],
    "cost": ["experiments.cost:measure", "experiments.cost:BASE"],
}
WRITING = "experiments.tidy:tidy"


def identities(root: Path = ROOT) -> dict[str, dict[str, str]]:
    """A digest of the code behind each method and task, and of the data of each benchmark."""
    code = CodeDigest(root, PACKAGES, NEVER_CHANGE_RESULTS)
    entries = {
        name: ["experiments.folds:run", f"wscpml.methods.{place}"] for name, place in PLACES.items()
    } | TASKS
    digests = {
        name: _short("".join(code.of(*entry.split(":")) for entry in [*found, WRITING]))
        for name, found in entries.items()
    }
    return {"code": digests, "data": {name: _data(name) for name in KNOWN}}


def _data(benchmark: str) -> str:
    dataset, r = BENCHMARKS.get(benchmark, (benchmark, 0))
    entry = REGISTRY[dataset]
    contents = [_content(file) for file in entry.files] or [f"river {version('river')}"]
    return _short(repr([r, entry.label_count, entry.average_candidates, *contents]))


def _content(file: File) -> str | None:
    """The sha256 of a file, if it is known: one that a person supplies may not be there."""
    if file.sha256 is None and (OWN / file.name).is_file():
        return digest(OWN / file.name)
    return file.sha256


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


if __name__ == "__main__":
    artifacts.write("experiments/identity.json", identities())
