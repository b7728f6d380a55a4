"""Speed and memory: `python -m benchmarks.NAME [--quick] [--json FILE]`."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]


def dvc_stages() -> dict[str, dict[str, Any]]:
    """The stages of WSC-PML's run by name, in order, as DVC has them."""
    shared, own = (
        yaml.safe_load((ROOT / name / "dvc.yaml").read_text())["stages"] for name in (".", "models")
    )
    first = ("identify", "fetch", "prepare", "inject_noise", "collect_decisions")
    before = {name: shared.pop(name) for name in first}
    return before | own | shared


def copy_project(target: Path) -> None:
    """Copy the project's own files, committed or not, without results and environments."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).exists():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target / name)
