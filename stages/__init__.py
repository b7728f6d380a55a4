"""The shell around wscpml: each script is one DVC stage that reads, calls the core, and writes."""

import os
import shutil
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import yaml

from wscpml import stopping

if stopping.is_program(__name__):  # all that is imported takes seconds
    stopping.install()
    if "DVC_STAGE" in os.environ:  # which DVC sets, and which may be killed alone
        stopping.end_with_parent()

from wscpml import settings  # noqa: E402
from wscpml.devices import one_blas_thread  # noqa: E402
from wscpml.errors import UserError  # noqa: E402
from wscpml.serving import locks  # noqa: E402

OF_WSC_PML = Path("models/dvc.yaml")  # its own stages
PINNED = Path("requirements-wscpml.txt")  # where `wscpml init` has laid the pipeline


def run(
    stage: Callable[[settings.Settings], None],
    load: Callable[[], settings.Settings] = settings.loaded,
) -> None:
    """Run a stage with checked settings; a user's mistake is told in plain lines, exit 1.

    Where the method is another, a stage of WSC-PML's own leaves its outputs empty.
    """
    try:
        refuse_other_version()
        chosen = load()
        if chosen.has_stages or not (outs := outputs_for_wsc_pml(stage.__name__)):
            locks.refuse_changed(stage.__name__, chosen.method)
            with one_blas_thread():
                stage(chosen)
        else:
            print(f"not needed: the method is {chosen.method}")
            leave_empty(outs)
    except UserError as mistake:
        sys.exit(str(mistake))


def outputs_for_wsc_pml(stage: str) -> list[Path]:
    """What a stage of WSC-PML's own writes; of any other stage, nothing."""
    stages = yaml.safe_load(OF_WSC_PML.read_text(encoding="utf-8"))["stages"]
    return [Path(out) for out in stages[stage]["outs"]] if stage in stages else []


def leave_empty(outs: list[Path]) -> None:
    """Write empty files: `dvc pull` and `dvc checkout` fail if any output was never written."""
    for out in outs:
        if out.is_dir():
            shutil.rmtree(out)
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_bytes(b"")


def refuse_other_version() -> None:
    """Results are of the version that is pinned: DVC runs stages again when that changes."""
    lines = PINNED.read_text("utf-8").splitlines() if PINNED.exists() else []
    for line in lines:
        name, _, pinned = line.partition("==")
        if name.startswith("wscpml") and pinned.strip() not in ("", version("wscpml")):
            raise UserError(
                f"{PINNED}: names wscpml {pinned.strip()}, and {version('wscpml')} is installed; "
                f"pip install -r {PINNED}, or name the installed one there"
            )
