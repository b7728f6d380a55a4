"""Files by DVC's hashes: from its cache, or else from its remote."""

import logging
import shutil
import sqlite3
from collections.abc import Iterable
from hashlib import md5
from pathlib import Path, PurePosixPath
from typing import Annotated

from pydantic import AfterValidator, BaseModel, Field, TypeAdapter, ValidationError

from wscpml.errors import UserError, reason

DIRECTORY = ".dir"  # how the hash of a directory ends
LONGEST_NAME = 255  # bytes that file systems allow


def _inside(path: str) -> str:
    """A path below the one that it is told for: what is there may be removed or written.

    So it is none of git's and DVC's own, either, in no writing that a file system takes for theirs.
    """
    parts = PurePosixPath(path).parts
    outside = ".." in parts or PurePosixPath(path).is_absolute()
    others = {".git", ".dvc"} & {part.casefold().rstrip(" .") for part in parts}
    if not parts or outside or others or "\0" in path or "\\" in path or Path(path).drive:
        raise ValueError(f"{path!r} is no path in it")
    if max(len(part.encode()) for part in parts) > LONGEST_NAME:
        raise ValueError(f"{path!r} is too long a name")
    return path


Inside = Annotated[str, Field(max_length=1000), AfterValidator(_inside)]
Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{32}(\.dir)?$")]


class _Member(BaseModel):
    relpath: Inside
    md5: Hash


MEMBERS = TypeAdapter(list[_Member])


class Cache:
    """The cache of a DVC project."""

    def __init__(self, project: Path = Path()) -> None:
        try:
            from dvc.exceptions import DvcException, NotDvcRepoError
            from dvc.repo import Repo
        except ModuleNotFoundError as missing:
            told = f"DVC: needs {missing.name}; pip install 'wscpml[pipeline]'"
            raise UserError(told) from None
        try:
            self._repo = Repo(str(project))
        except NotDvcRepoError:
            raise UserError(
                f"{project.resolve()}: is no DVC project; run from the project's root"
            ) from None
        except (DvcException, OSError, sqlite3.Error) as error:  # SQLite has DVC's notes
            raise UserError(f"{project.resolve()}: DVC cannot be used ({reason(error)})") from None

    def fetch(self, hashes: Iterable[str]) -> None:
        """Get what is not there from the remote, as far as there is one and it has that."""
        from dvc.config import NoRemoteError
        from dvc.exceptions import DvcException
        from dvc_data.hashfile.hash_info import HashInfo

        wanted = [HashInfo("md5", each) for each in hashes if not self.has(each)]
        if not wanted:
            return
        logging.getLogger("dvc.data_cloud").setLevel(logging.ERROR)  # we tell what is missing
        try:
            self._repo.cloud.pull(wanted)
        except NoRemoteError:
            return
        except (DvcException, OSError) as error:
            raise UserError(
                f"DVC's remote cannot be read ({reason(error)}); see `dvc remote list`"
            ) from None

    def has(self, known: str) -> bool:
        """Whether a file, or a directory with all of its files, is in the cache."""
        if not self.place(known).is_file():
            return False
        if not known.endswith(DIRECTORY):
            return True
        return all(self.place(each).is_file() for each in self.members(known).values())

    def path(self, known: str) -> Path | None:
        """Where the cache has a file, checked, or None."""
        if not self.has(known):
            return None
        self._check(known)
        return self.place(known)

    def copy(self, known: str, target: Path) -> None:
        """Put a file or a directory that the cache has at its place, checked."""
        if known.endswith(DIRECTORY):
            target.mkdir(parents=True, exist_ok=True)
            for name, each in self.members(known).items():
                self.copy(each, target / name)
            return
        self._check(known)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(self.place(known), target)

    def members(self, directory: str) -> dict[str, str]:
        """Hash of each file of a directory, by its path in it; none may be outside of it."""
        self._check(directory)
        place = self.place(directory)
        try:
            listed = MEMBERS.validate_json(place.read_bytes())
        except ValidationError as error:
            raise UserError(f"{place}: is no list of files ({first_of(error)})") from None
        return {each.relpath: each.md5 for each in listed}

    def place(self, known: str) -> Path:
        """Where the cache has a file, or would have it."""
        return Path(self._repo.cache.local.oid_to_path(known))

    def is_whole(self, known: str) -> bool:
        """Whether a file in the cache, or the list of a directory's files, is what it is called."""
        return digest(self.place(known)) == known.removesuffix(DIRECTORY)

    def _check(self, known: str) -> None:
        if not self.is_whole(known):
            raise UserError(
                f"{self.place(known)}: is damaged: its content is not what its name says; "
                "`wscpml verify --discard` removes it, then `dvc pull` or `dvc repro` brings it"
            )


def first_of(error: ValidationError) -> str:
    """The first of what is wrong, and where."""
    first = error.errors(include_url=False)[0]
    where = ".".join(map(str, first["loc"])) or "its content"
    return f"{where}: {first['msg'].removeprefix('Value error, ')}"


def digest(path: Path) -> str:
    """A file's hash, as DVC has it."""
    found = md5(usedforsecurity=False)
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            found.update(block)
    return found.hexdigest()
