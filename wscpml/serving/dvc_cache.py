"""Files by DVC's hashes: from its cache, or else from its remote."""

import json
import shutil
from collections.abc import Iterable
from hashlib import md5
from pathlib import Path

from wscpml.errors import UserError

DIRECTORY = ".dir"  # how the hash of a directory ends


class Cache:
    """The cache of a DVC project."""

    def __init__(self, project: Path = Path()) -> None:
        try:
            from dvc.exceptions import NotDvcRepoError
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

    def fetch(self, hashes: Iterable[str]) -> None:
        """Get what is not there from the remote, as far as there is one and it has that."""
        from dvc.config import NoRemoteError
        from dvc.exceptions import DvcException
        from dvc_data.hashfile.hash_info import HashInfo

        wanted = [HashInfo("md5", each) for each in hashes if not self.has(each)]
        if not wanted:
            return
        try:
            self._repo.cloud.pull(wanted)
        except NoRemoteError:
            return
        except (DvcException, OSError) as error:
            reason = str(error).partition("\n")[0]
            raise UserError(
                f"DVC's remote cannot be read ({reason}); see `dvc remote list`"
            ) from None

    def has(self, known: str) -> bool:
        """Whether a file, or a directory with all of its files, is in the cache."""
        if not self._place(known).is_file():
            return False
        if not known.endswith(DIRECTORY):
            return True
        return all(self._place(each).is_file() for each in self._members(known).values())

    def path(self, known: str) -> Path | None:
        """Where the cache has a file, or None."""
        return self._place(known) if self.has(known) else None

    def copy(self, known: str, target: Path) -> None:
        """Put a file or a directory that the cache has at its place, checked."""
        if known.endswith(DIRECTORY):
            target.mkdir(parents=True, exist_ok=True)
            for name, each in self._members(known).items():
                self.copy(each, target / name)
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(self._place(known), target)
        if digest(target) != known:
            raise UserError(
                f"{self._place(known)}: is damaged: its content is not what its name says; remove "
                "it, and `dvc pull` gets it anew"
            )

    def _members(self, directory: str) -> dict[str, str]:
        """Hash of each file of a directory, by its path in it; none may be outside of it."""
        listed = json.loads(self._place(directory).read_text(encoding="utf-8"))
        found = {each["relpath"]: each["md5"] for each in listed}
        for name in found:
            if Path(name).is_absolute() or ".." in Path(name).parts:
                raise UserError(f"{self._place(directory)}: names a file outside of it: {name}")
        return found

    def _place(self, known: str) -> Path:
        return Path(self._repo.cache.local.oid_to_path(known))


def digest(path: Path) -> str:
    """A file's hash, as DVC has it."""
    found = md5(usedforsecurity=False)
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            found.update(block)
    return found.hexdigest()
