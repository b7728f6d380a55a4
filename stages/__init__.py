"""The shell around wscpml: each script is one DVC stage that reads, calls the core, and writes."""

import codecs
import errno
import os
import re
import shutil
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from wscpml import stopping

if stopping.is_program(__name__):  # all that is imported takes seconds
    stopping.install()
    if "DVC_STAGE" in os.environ:  # which DVC sets, and which may be killed alone
        stopping.end_with_parent()

from wscpml import artifacts, settings  # noqa: E402
from wscpml.devices import one_blas_thread  # noqa: E402
from wscpml.errors import UserError  # noqa: E402
from wscpml.serving import locks  # noqa: E402

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
PINNED = Path("requirements-wscpml.txt")  # where `wscpml init` has laid the pipeline


def run(
    stage: Callable[[settings.Settings], None],
    load: Callable[[], settings.Settings] = settings.loaded,
) -> None:
    """Run a stage with checked settings and inputs; a user's mistake is told, exit 1.

    Where the method is another, a stage of WSC-PML's own leaves its outputs empty.
    """
    try:
        refuse_other_version()
        chosen = load()
        pipeline, entry = locks.described(stage.__name__)
        if pipeline == locks.OWN_PIPELINE and not chosen.has_stages:
            print(f"not needed: the method is {chosen.method}")
            leave_empty(entry["outs"])
        else:
            locks.refuse_changed(entry, chosen.method)
            with one_blas_thread():
                stage(chosen)
    except UserError as mistake:
        sys.exit(str(mistake))
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        sys.exit(f"{error.filename or stage.__name__}: cannot be written ({error.strerror})")


def leave_empty(outs: list[str]) -> None:
    """Write empty files: `dvc pull` and `dvc checkout` fail if any output was never written."""
    for out in outs:
        if Path(out).is_dir():
            shutil.rmtree(out)
        artifacts.write(out, Path(os.devnull))


def refuse_other_version() -> None:
    """Results are of the version that is pinned: DVC runs stages again when that changes."""
    if not PINNED.exists():
        return
    from packaging.markers import UndefinedEnvironmentName
    from packaging.requirements import InvalidRequirement, Requirement

    installed = version("wscpml")
    for line in _text(PINNED).replace("\\\n", " ").splitlines():
        named, *_ = re.split(r"(?:^|\s)(?:#|--)", line)  # without comments and pip's options
        try:
            asked = Requirement(named)
            counts = asked.name.lower() == "wscpml" and (
                not asked.marker or asked.marker.evaluate()
            )
        except (InvalidRequirement, UndefinedEnvironmentName):  # pip tells what is wrong with it
            continue
        if counts and not asked.specifier.contains(installed, prereleases=True):
            pinned = str(asked.specifier).removeprefix("==")
            raise UserError(
                f"{PINNED}: names wscpml {pinned}, and {installed} is installed; "
                f"pip install -r {PINNED}, or name the installed one there"
            )


def _text(path: Path) -> str:
    """A file of text, as pip reads it: PowerShell writes UTF-16."""
    content = path.read_bytes()
    is_wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        return content.decode("utf-16" if is_wide else "utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise UserError(f"{path}: is no text in UTF-8 or UTF-16; save it as UTF-8") from None
