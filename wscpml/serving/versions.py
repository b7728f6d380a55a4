"""Versions of a result: a file, a git revision, an MLflow run, or what is in the workspace.

What a result was made of, and the hash of each of its files, is in DVC's locks. A commit has them,
and a run has them among its artifacts: so both lead to the files, by DVC's cache or its remote.
"""

import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd

from wscpml import artifacts, yaml_files
from wscpml.datasets import table_files
from wscpml.errors import UserError
from wscpml.limits import told_if_unreadable
from wscpml.quality import diff
from wscpml.serving.dvc_cache import Cache, digest
from wscpml.serving.locks import FROM_GIT, LOCKS, OWN_LOCK, outs_of, stages_of

TABLE = "data/pseudo_labels.parquet"
MADE = "models/wsc-pml/"  # which its stages make, empty files for any other method
CODE = "metrics/code.json"
SETTINGS = "metrics/settings.json"  # those that count
WORKSPACE, RUN = "workspace", "run:"
INPUTS = ("data/prepared", "data/candidates.npz", "data/decided.parquet")  # of every method
SOURCES = ("dataset.features", "dataset.candidates", "dataset.truth", "review.decisions")
FOR_MLFLOW = "labels"  # artifacts for MLflow's pages alone
LAST = "track"  # the stage that logs: what a lock has of it is of the run before


@dataclass(frozen=True)
class Locked:
    """What DVC's locks tell of a result."""

    outs: dict[str, str]  # hash of each output, by path
    settings: dict[str, Any]  # by dotted name
    data: dict[str, str]  # hash of what went in, by path
    code: dict[str, str]  # digests, by stage or method


@dataclass(frozen=True)
class Restored:
    """What came back of a run, and where it came from."""

    files: int
    commit: str
    tree: str  # clean, or what was changed in it


def locked(locks: Mapping[str, Any]) -> Locked:
    """What the locks of a result tell, by their paths; those of WSC-PML count for it alone."""
    known = {path: stages_of(content, path) for path, content in locks.items()}
    stages = known.get(LOCKS[0], {})
    stages.pop(LAST, None)
    if any(stage.params.get(SETTINGS, {}).get("method") == "wsc-pml" for stage in stages.values()):
        stages |= known.get(OWN_LOCK, {})
    outs = {out.path: out.md5 for stage in stages.values() for out in stage.outs}
    settings: dict[str, Any] = {}
    code: dict[str, str] = {}
    data: dict[str, str] = {path: outs[path] for path in INPUTS if path in outs}
    for stage in stages.values():
        settings |= flat(stage.params.get(SETTINGS, {}))
        code |= {name: str(each) for name, each in stage.params.get(CODE, {}).items()}
        for dep in stage.deps:
            path = f"{dep.path}/"
            made = path.startswith(MADE) or any(f"{out}/".startswith(path) for out in outs)
            if not made and path.startswith(("data/", "models/")):
                data[dep.path] = dep.md5
    return Locked(outs, settings, data, code)


def flat(nested: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested sections as one level of dotted names."""
    items: dict[str, Any] = {}
    for key, value in nested.items():
        is_section = isinstance(value, dict)
        items |= flat(value, f"{prefix}{key}.") if is_section else {prefix + key: value}
    return items


def version(name: str) -> diff.Version:
    """A result to compare, by a name that people give it.

    That is a file (.csv or .parquet), `workspace`, `run:ID` of MLflow, or else a git revision.
    """
    if name == WORKSPACE:
        if not Path(LOCKS[0]).exists() or not Path(TABLE).exists():
            raise UserError(
                f"{WORKSPACE}: {Path.cwd()} has no result, {TABLE}; run from the project's root, "
                "after `dvc repro`"
            )
        here = [path for path in LOCKS if Path(path).exists()]
        locks = {path: artifacts.read(path, way_out=FROM_GIT) for path in here}
        return _of(name, Path(TABLE), locked(locks))
    if name.startswith(RUN):
        with tempfile.TemporaryDirectory() as directory:
            place = Path(directory)
            _tracking().download(_run_id(name), [TABLE, *LOCKS], place)
            locks = {
                path: artifacts.read(place / path) for path in LOCKS if (place / path).exists()
            }
            found = locked(locks) if locks else None
            if (place / TABLE).exists():
                return _of(name, place / TABLE, found)
            if found is None or TABLE not in found.outs:
                raise UserError(f"{name}: has no {TABLE}: it is no run of the pipeline")
            return _kept(name, found, Cache())
    if Path(name).suffix in (".csv", ".parquet"):
        if not Path(name).is_file():
            raise UserError(f"{name}: no such file")
        return _of(name, Path(name), None)
    return committed(name, Cache())


def committed(revision: str, cache: Cache, remote: bool = True) -> diff.Version:
    """The result of a git revision; the remote is asked for it, too, unless told not to."""
    found = locked_at(revision)
    if found is None or TABLE not in found.outs:
        raise UserError(f"{revision}: has no result: its dvc.lock does not name {TABLE}")
    return _kept(revision, found, cache, remote)


def _kept(name: str, found: Locked, cache: Cache, remote: bool = True) -> diff.Version:
    """The result that locks lead to."""
    known = found.outs[TABLE]
    if remote:
        cache.fetch([known])
    path = cache.path(known)
    if path is None:
        raise UserError(
            f"{name}: {TABLE} (md5 {known}) is not in DVC's cache{' nor its remote' * remote}; "
            "`dvc push` it where it was made, or check the revision out and run `dvc repro`"
        )
    return _of(name, path, found)


def locked_at(revision: str) -> Locked | None:
    """What the locks of a git revision tell, if it has some."""
    if git("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}") is None:
        raise UserError(
            f"{revision}: is no git revision here, no table (.csv or .parquet), no run:ID and not "
            f"{WORKSPACE!r}"
        )
    texts = {path: git("show", f"{revision}:./{path}") for path in LOCKS}
    try:
        locks = {path: yaml_files.parsed(text) for path, text in texts.items() if text}
    except ValueError:
        raise UserError(f"{revision}: its dvc.lock is no YAML; was a conflict committed?") from None
    return locked(locks) if LOCKS[0] in locks else None


def _of(name: str, path: Path, found: Locked | None) -> diff.Version:
    table = diff.candidates(_table(path), name)
    if found is None:
        return diff.Version(name, table)
    return diff.Version(name, table, found.settings, found.data, found.code)


def _table(path: Path) -> pd.DataFrame:
    """A table of candidates; what is in DVC's cache is Parquet, and has no ending."""
    if path.suffix:
        return table_files.read(path, ["instance", "label", "decided"])
    with told_if_unreadable(path, "parquet"):
        return pd.read_parquet(path)


def git(*command: str) -> str | None:
    """What a git command says, or None where it fails; bytes that are no UTF-8 as codes."""
    told: dict[str, Any] = {"encoding": "utf-8", "errors": "backslashreplace"}
    try:
        done = subprocess.run(["git", *command], capture_output=True, **told)
    except FileNotFoundError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def restore(name: str, directory: Path) -> Restored:
    """Bring all files of a run back, byte for byte, into a new directory.

    What is nowhere to be had is told when all else is there.
    """
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise UserError(f"{directory}: is there, and not empty; name a new directory")
    tracking, run_id = _tracking(), _run_id(name)
    tags = tracking.tags(run_id)
    with artifacts.new_directory(directory) as place:
        tracking.download(run_id, None, place)
        shutil.rmtree(place / FOR_MLFLOW, ignore_errors=True)
        if not (place / LOCKS[0]).exists():
            raise UserError(f"{name}: has no {LOCKS[0]}: it is no run of the pipeline")
        found = locked({p: artifacts.read(place / p) for p in LOCKS if (place / p).exists()})
        missing = _bring_back(found, place, Cache())
        files = sum(each.is_file() for each in place.rglob("*"))
    if missing:
        raise UserError(
            f"{name}: in neither DVC's cache nor its remote, nor in the run: {', '.join(missing)}; "
            f"all else is in {directory}"
        )
    return Restored(files, tags.get("git.commit", ""), tags.get("git.tree", ""))


def _bring_back(found: Locked, place: Path, cache: Cache) -> list[str]:
    """Put all outputs, and the files that DVC keeps for a person, below a place.

    Returns the paths of what is nowhere to be had.
    """
    wanted = found.outs | kept_by_dvc(place)
    there = {path for path, known in wanted.items() if _is(place / path, known)}
    cache.fetch([known for path, known in wanted.items() if path not in there])
    missing = []
    for path, known in wanted.items():
        if path in there:
            continue
        if cache.has(known):
            cache.copy(known, place / path)
        else:
            missing.append(path)
    named = [str(found.settings[key]) for key in SOURCES if found.settings.get(key)]
    here = {file.relative_to(place).as_posix() for file in place.rglob("*")}
    return missing + [path for path in named if path not in missing and path not in here]


def kept_by_dvc(place: Path) -> dict[str, str]:
    """Hash of what `dvc add` has taken in, by path, as the .dvc files below a place tell."""
    found = {}
    for file in sorted((place / "data").rglob("*.dvc")):
        for out in outs_of(artifacts.read(file), str(file.relative_to(place))):
            found[(file.parent / out.path).relative_to(place).as_posix()] = out.md5
    return found


def _is(path: Path, known: str) -> bool:
    return path.is_file() and digest(path) == known


def _run_id(name: str) -> str:
    if not name.startswith(RUN) or not name.removeprefix(RUN):
        raise UserError(f"{name}: must be {RUN}ID, with the id of a run in MLflow")
    return name.removeprefix(RUN)


def _tracking() -> ModuleType:
    """The module that talks to MLflow, which takes seconds to import."""
    try:
        from wscpml.serving import tracking
    except ModuleNotFoundError as missing:
        told = f"MLflow: needs {missing.name}; pip install 'wscpml[pipeline]'"
        raise UserError(told) from None
    return tracking
