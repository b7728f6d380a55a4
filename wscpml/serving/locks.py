"""What DVC's locks say of files in the workspace and in the cache, and whether it is so.

DVC takes a file for what it was when its time of change is the same, and what is in its cache for
what it is called. Here bytes are read.

DVC writes its lock in place, so that a kill may leave the first part of it, beside which DVC may do
nothing any more. `python -m wscpml.serving.locks` removes such a lock: DVC knows what its stages
have made without it, too, by its cache of runs.
"""

import json
import os
import re
import shutil
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import md5
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError, field_validator

from wscpml import artifacts, yaml_files
from wscpml.errors import UserError, reason
from wscpml.serving.dvc_cache import DIRECTORY, Cache, Hash, Inside, digest, first_of

PIPELINES = ("dvc.yaml", "models/dvc.yaml")
ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
LOCKS = ("dvc.lock", "models/dvc.lock")
OWN_PIPELINE, OWN_LOCK = PIPELINES[1], LOCKS[1]  # of the stages that are WSC-PML's own
FROM_GIT = "`git checkout` gets back that of the last commit, without one `dvc repro` makes it anew"
AGAIN = "`wscpml verify --discard` removes it, and `dvc repro` brings back what was made"
WAY_OUT = "`wscpml verify` tells what is damaged; if it was made by hand, `dvc commit` takes it in"

CONFLICT = "<<<<<<< "  # git's mark
LOOK_AGAIN = 1.0  # seconds after which a lock that DVC is just writing is another one

K = TypeVar("K", bound=BaseModel)


class _Dep(BaseModel):
    path: str
    md5: str = ""


class Out(BaseModel):
    """What DVC knows of a file or a directory that was made or taken in."""

    path: Inside
    md5: Hash


class _Outs(BaseModel):
    """Outputs below the project: others are a person's own, which we neither read nor write."""

    outs: list[Out] = []

    @field_validator("outs", mode="before")
    @classmethod
    def _here(cls, outs: Any) -> Any:
        return [out for out in outs if not _elsewhere(out)] if isinstance(outs, list) else outs


def _elsewhere(out: Any) -> bool:
    """Whether an output is on a server, or at a path that leads out of the project."""
    path = out.get("path") if isinstance(out, dict) else None
    if not isinstance(path, str):
        return False
    there = PurePosixPath(path)
    return bool(ADDRESS.match(path)) or there.is_absolute() or there.parts[:1] == ("..",)


class Stage(_Outs):
    """What a lock tells of a stage that has run."""

    deps: list[_Dep] = []
    params: dict[str, dict[str, Any]] = {}  # by file


class _Lock(BaseModel):
    stages: dict[str, Stage] = {}


def stages_of(content: Any, source: str) -> dict[str, Stage]:
    """The stages of a lock, by what was read from it; a UserError if it is none."""
    return _checked(_Lock, content, source).stages


def outs_of(content: Any, source: str) -> list[Out]:
    """What a `.dvc` file stands for, by what was read from it; a UserError if it is none."""
    return _checked(_Outs, content, source).outs


def _checked(kind: type[K], content: Any, source: str) -> K:
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        raise UserError(
            f"{source}: is not as DVC writes it ({first_of(error)}); take the one of an earlier "
            "commit"
        ) from None


@dataclass(frozen=True)
class Damaged:
    """A file that is not what it was."""

    name: str  # the output, or the file of one
    path: Path
    in_cache: bool

    def __str__(self) -> str:
        where = f" ({self.name}, in DVC's cache)" if self.in_cache else ""
        if not self.path.exists():
            return f"{self.path}{where}: is missing, and {LOCKS[0]} says that it was made"
        return f"{self.path}{where}: is not what {LOCKS[0]} says was made"


def cut_off() -> list[Path]:
    """The locks that DVC was killed in writing: they end within a line that is lost, or a stage."""
    return [path for path in map(Path, LOCKS) if path.exists() and _is_cut_off(path)]


def _is_cut_off(path: Path) -> bool:
    text = path.read_text(encoding="utf-8", errors="replace")
    if CONFLICT in text:
        return False
    try:
        content = yaml_files.parsed(text)
    except (yaml.YAMLError, ValueError):
        return not text.endswith("\n")
    if not isinstance(content, dict):
        return not text.endswith("\n") or content is None
    if "schema" not in content:  # which DVC writes first
        return False
    last: Any = content
    while isinstance(last, dict | list) and last:
        last = last[list(last)[-1]] if isinstance(last, dict) else last[-1]
    if last is None or "stages" not in content:
        return True
    entries = content["stages"]
    if not isinstance(entries, dict) or not entries:
        return entries != {}
    *whole, cut = entries.values()
    return all(map(_is_stage, whole)) and not _is_stage(cut)


def _is_stage(entry: Any) -> bool:
    try:
        Stage.model_validate(entry)
    except ValidationError:
        return False
    return "cmd" in entry


def discard_cut_off() -> list[Path]:
    """Remove the locks that are cut off, and are so still after a moment; these."""
    found = {path: path.stat() for path in cut_off()}
    if found:
        time.sleep(LOOK_AGAIN)
    gone = [path for path in cut_off() if path in found and _same(path.stat(), found[path])]
    for path in gone:
        path.unlink()
    return gone


def _same(one: os.stat_result, other: os.stat_result) -> bool:
    return (one.st_mtime_ns, one.st_size) == (other.st_mtime_ns, other.st_size)


def outputs() -> dict[str, str]:
    """The hash of each output of the stages, by its path; of a lock that is cut off, of none."""
    found, lost = dict[str, str](), cut_off()
    for lock in LOCKS:
        if Path(lock).exists() and Path(lock) not in lost:
            stages = stages_of(_content(lock) or {}, lock)
            found |= {out.path: out.md5 for stage in stages.values() for out in stage.outs}
    return found


def _content(lock: str) -> Any:
    """What a lock has, also without an end of line at its end, as DVC takes it, too."""
    try:
        return yaml_files.parsed(Path(lock).read_text(encoding="utf-8"))
    except (yaml.YAMLError, ValueError, OSError) as error:
        raise UserError(f"{lock}: is damaged ({reason(error)}); {FROM_GIT}") from None


def described(stage: str) -> tuple[str, dict[str, Any]]:
    """The pipeline that has a stage, and its entry there; of what is no stage, nothing."""
    for pipeline in PIPELINES:
        stages = artifacts.read(pipeline)["stages"] if Path(pipeline).exists() else {}
        if stage in stages:
            return pipeline, stages[stage]
    return "", {}


def inputs(entry: Mapping[str, Any], method: str) -> dict[str, str]:
    """The hash of each output of other stages that a stage reads, by its path."""
    deps = [each.replace("${method}", method) for each in entry.get("deps", [])]
    return {
        out: known
        for out, known in outputs().items()
        if any(f"{out}/".startswith(f"{each}/") for each in deps)
    }


def refuse_changed(entry: Mapping[str, Any], method: str) -> None:
    """Stop a stage whose inputs are not what the stages before have made, to the byte.

    DVC enters what a stage has made into its lock before the next one begins.
    """
    for path, known in inputs(entry, method).items():
        if hash_of(Path(path)) not in (known, None):
            raise UserError(f"{path}: is not what {LOCKS[0]} says was made; {WAY_OUT}")


def hash_of(path: Path) -> str | None:
    """What DVC calls a file or a directory of just these bytes; None if it is missing."""
    if path.is_dir():
        listed = [{"md5": digest(file), "relpath": name} for name, file in _below(path).items()]
        told = json.dumps(listed, sort_keys=True).encode()
        return md5(told, usedforsecurity=False).hexdigest() + DIRECTORY
    return digest(path) if path.is_file() else None


def _below(directory: Path) -> dict[str, Path]:
    """The files of a directory that count, by their paths in it, in DVC's order."""
    files = sorted(directory.rglob("*"), key=lambda file: file.relative_to(directory).parts)
    return {
        file.relative_to(directory).as_posix(): file
        for file in files
        if file.is_file() and file.suffix != ".tmp"  # see .dvcignore
    }


def damaged() -> list[Damaged]:
    """All files of the present result that are not what was made, in the workspace or the cache.

    So is a file that a directory lacks, or has though nothing has made it.
    """
    cache = Cache()
    found = []
    for out, known in outputs().items():
        place, path = cache.place(known), Path(out)
        if place.is_file() and not cache.is_whole(known):
            found.append(Damaged(out, place, in_cache=True))
        elif known.endswith(DIRECTORY) and place.is_file():
            made = cache.members(known)
            for name, each in made.items():
                kept = cache.place(each)
                if kept.is_file() and not cache.is_whole(each):
                    found.append(Damaged(f"{out}/{name}", kept, in_cache=True))
            if path.is_dir():
                here = {name: digest(file) for name, file in _below(path).items()}
                found += [
                    Damaged(f"{out}/{name}", path / name, in_cache=False)
                    for name in sorted(made.keys() | here)
                    if made.get(name) != here.get(name)
                ]
                continue
        if hash_of(path) not in (known, None):
            found.append(Damaged(out, path, in_cache=False))
    return found


def discard(files: list[Damaged]) -> list[Path]:
    """Remove damaged files, so that DVC gets or makes them anew; those that were there."""
    there = list(dict.fromkeys(each.path for each in files if each.path.exists()))
    for path in there:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    return there


if __name__ == "__main__":
    try:
        for path in discard_cut_off():
            print(f"{path}: DVC was killed while it wrote it; removed, `dvc repro` makes it anew")
    except UserError as mistake:
        sys.exit(str(mistake))
