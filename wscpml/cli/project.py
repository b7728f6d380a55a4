"""Lay the pipeline into a git repository of the user's own."""

import re
import subprocess
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import yaml

from wscpml.errors import UserError
from wscpml.pipeline_files import FILES, IN_WHEEL
from wscpml.serving.locks import PIPELINES

PACKAGE = Path(__file__).parents[1]
PINNED = "requirements-wscpml.txt"
WORKFLOWS = ".github/workflows"  # below the top of the git repository
HERE = "DIRECTORY"  # stands in the workflow for where the pipeline is
PLOTS = ".dvc/plots.html"
CONFIG = (  # sends nothing, and draws plots without the web
    "[core]\n    analytics = false\n    check_update = false\n"
    "[plots]\n    html_template = plots.html\n"
)
NOT_IN_GIT = (
    ".venv/",
    "__pycache__/",
    "dvc_plots/",
    "mlflow.db*",
    "mlruns/",
    "*.tmp",
    "/changes.*",
)
NOT_IN_DVC = (".venv", "__pycache__", "mlruns", "*.tmp", "data/own/README.md", ".gitignore")


def lay(directory: Path) -> list[Path]:
    """Lay the pipeline into a directory of a git repository, as a DVC project.

    What is there stays as it is, and is refused, but .gitignore and .dvcignore get lines more.
    Returns the paths of the new files.
    """
    top = _top_of_repository(directory)
    below = directory.resolve().relative_to(top)
    texts = _texts()
    if (directory / ".dvc").is_dir():
        del texts[PLOTS]  # a project that is there has a configuration of its own
    workflow = top / WORKFLOWS / f"{'-'.join(['wscpml', *below.parts])}.yml"
    files = {directory / name: text for name, text in texts.items()}
    files[workflow] = (PACKAGE / "cli/github.yml").read_text("utf-8").replace(HERE, str(below))
    taken = [path for path in files if path.exists()]
    taken += [directory / name for name in _outputs(texts) if (directory / name).exists()]
    if taken:
        more = f" and {len(taken) - 3} more" if len(taken) > 3 else ""
        raise UserError(
            f"{', '.join(map(str, taken[:3]))}{more}: there already, and nothing is overwritten; "
            "lay the pipeline into a new directory, such as `wscpml init labels`"
        )
    try:
        _make_dvc_project(directory, subdirectory=bool(below.parts))
        for path, text in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        _add_lines(directory / ".gitignore", NOT_IN_GIT)
        _add_lines(directory / ".dvcignore", NOT_IN_DVC)
    except OSError as error:
        raise UserError(f"{error.filename}: cannot be written ({error.strerror})") from None
    return list(files)


def _top_of_repository(directory: Path) -> Path:
    there = next(each for each in (directory, *directory.absolute().parents) if each.exists())
    if not there.is_dir():
        raise UserError(f"{there}: is no directory")
    command = ["git", "-C", str(there), "rev-parse", "--show-toplevel"]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        raise UserError("git: is not installed; the pipeline keeps its versions with it") from None
    if done.returncode:
        raise UserError(f"{directory}: is in no git repository; `git init` makes one")
    return Path(done.stdout.strip()).resolve()


def _texts() -> dict[str, str]:
    """The text of each file by its path; stages are run from the installed package."""
    packed = PACKAGE / IN_WHEEL
    source = packed if packed.is_dir() else PACKAGE.parent
    paths = [path for pattern in FILES for path in sorted(source.glob(pattern))]
    files = {path.relative_to(source).as_posix(): path.read_text("utf-8") for path in paths}
    for name in PIPELINES:
        files[name] = files[name].replace("python -m stages.", "python -m wscpml.stages.")
    files["dvc.yaml"], found = re.subn(
        r"(\n  identify:\n(?:    .*\n)*?    deps:\n)(?:      - .*\n)+",
        rf"\1      - {PINNED} # the version of the code\n",
        files["dvc.yaml"],
    )
    assert found == 1
    return files | {PINNED: f"wscpml[pipeline]=={version('wscpml')}\n"}


def _outputs(files: dict[str, str]) -> list[str]:
    stages = [
        stage for name in PIPELINES for stage in yaml.safe_load(files[name])["stages"].values()
    ]
    kinds = [stage.get(kind, []) for stage in stages for kind in ("outs", "metrics", "plots")]
    return [each if isinstance(each, str) else next(iter(each)) for kind in kinds for each in kind]


def _make_dvc_project(directory: Path, subdirectory: bool) -> None:
    if (directory / ".dvc").is_dir():
        return
    if find_spec("dvc") is None:
        raise UserError("DVC: is not installed; pip install 'wscpml[pipeline]'")
    directory.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "dvc", "init", "--quiet", *["--subdir"] * subdirectory]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True)
    if done.returncode:
        raise UserError(f"{directory}: `dvc init` failed there ({done.stderr.strip()})")
    (directory / ".dvc/config").write_text(CONFIG, encoding="utf-8")


def _add_lines(path: Path, lines: tuple[str, ...]) -> None:
    """Add those lines to a file that it lacks."""
    text = path.read_text("utf-8") if path.exists() else ""
    end = "" if not text or text.endswith("\n") else "\n"
    lacking = [line for line in lines if line not in text.splitlines()]
    with path.open("a", encoding="utf-8") as file:
        file.write(end + "".join(f"{line}\n" for line in lacking))
