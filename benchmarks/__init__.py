"""Speed and memory: `python -m benchmarks.NAME [--quick] [--json FILE]`."""

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]


def copy_project(target: Path) -> None:
    """Copy the project's own files, committed or not, without results and environments."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).exists():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target / name)
