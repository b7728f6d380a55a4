"""What DVC's locks say of files in the workspace and in the cache, and whether it is so.

DVC takes a file for what it was when its time of change is the same, and what is in its cache for
what it is called. Here bytes are read.
"""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import md5
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from wscpml import artifacts
from wscpml.errors import UserError
from wscpml.serving.dvc_cache import DIRECTORY, Cache, Hash, Inside, digest, first_of

PIPELINES = ("dvc.yaml", "models/dvc.yaml")
LOCKS = ("dvc.lock", "models/dvc.lock")
OWN_PIPELINE, OWN_LOCK = PIPELINES[1], LOCKS[1]  # of the stages that are WSC-PML's own
WAY_OUT = "`wscpml verify` tells what is damaged; if it was made by hand, `dvc commit` takes it in"

K = TypeVar("K", bound=BaseModel)


class _Dep(BaseModel):
    path: str
    md5: str = ""


class Out(BaseModel):
    """What DVC knows of a file or a directory that was made or taken in."""

    path: Inside
    md5: Hash


class _Outs(BaseModel):
    outs: list[Out] = []


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
        return f"{self.path}{where}: is not what {LOCKS[0]} says was made"


def outputs() -> dict[str, str]:
    """The hash of each output of the stages, by its path."""
    found: dict[str, str] = {}
    for lock in LOCKS:
        if Path(lock).exists():
            stages = stages_of(artifacts.read(lock) or {}, lock)
            found |= {out.path: out.md5 for stage in stages.values() for out in stage.outs}
    return found


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
        listed = [
            {"md5": digest(file), "relpath": file.relative_to(path).as_posix()}
            for file in sorted(path.rglob("*"), key=lambda file: file.relative_to(path).parts)
            if file.is_file() and file.suffix != ".tmp"  # see .dvcignore
        ]
        told = json.dumps(listed, sort_keys=True).encode()
        return md5(told, usedforsecurity=False).hexdigest() + DIRECTORY
    return digest(path) if path.is_file() else None


def damaged() -> list[Damaged]:
    """All files of the present result that are not what was made, in the workspace or the cache."""
    cache = Cache()
    found = []
    for out, known in outputs().items():
        place = cache.place(known)
        if place.is_file() and not cache.is_whole(known):
            found.append(Damaged(out, place, in_cache=True))
        elif known.endswith(DIRECTORY) and place.is_file():
            for name, each in cache.members(known).items():
                kept = cache.place(each)
                if kept.is_file() and not cache.is_whole(each):
                    found.append(Damaged(f"{out}/{name}", kept, in_cache=True))
                if Path(out, name).is_file() and digest(Path(out, name)) != each:
                    found.append(Damaged(f"{out}/{name}", Path(out, name), in_cache=False))
            continue
        if hash_of(Path(out)) not in (known, None):
            found.append(Damaged(out, Path(out), in_cache=False))
    return found


def discard(files: list[Damaged]) -> None:
    """Remove damaged files, so that DVC gets or makes them anew."""
    for each in files:
        if each.path.is_dir():
            shutil.rmtree(each.path)
        else:
            each.path.unlink(missing_ok=True)
