"""Runs the examples of the documentation: `python -m docs.run` puts what they print into the pages.

Run are blocks of `python`, whose output is in a block of `text` below if they print something, and
blocks of `console`, where a line that begins with `$ ` is a command and the lines below are its
output. Blocks of other languages are only shown. Commands run in a copy of the project.
"""

import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks import ROOT, copy_project

PAGES = ("tutorial.md", "how-to/scikit-learn.md")
PYTHON = re.compile(r"```python\n(.*?)```\n(\n```text\n.*?```\n)?", re.DOTALL)
CONSOLE = re.compile(r"```console\n(.*?)```\n", re.DOTALL)
EXAMPLE = re.compile(f"{PYTHON.pattern}|{CONSOLE.pattern}", re.DOTALL)


def refreshed(page: str, project: Path, env: Mapping[str, str]) -> str:
    """The text of a page with what its examples print now, run in order from top to bottom."""
    names: dict[str, Any] = {}

    def run(found: re.Match[str]) -> str:
        code, _, console = found.groups()
        if console is not None:
            commands = re.findall(r"^\$ (.+)$", console, re.MULTILINE)
            told = "".join(f"$ {each}\n{_command(each, project, env)}" for each in commands)
            return f"```console\n{told}```\n"
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, names)
        shown = f"\n```text\n{_tidy(printed.getvalue())}```\n" if printed.getvalue() else ""
        return f"```python\n{code}```\n{shown}"

    return EXAMPLE.sub(run, page)


def _command(command: str, project: Path, env: Mapping[str, str]) -> str:
    done = subprocess.run(
        ["sh", "-c", command], cwd=project, env=env, stdout=subprocess.PIPE, text=True, check=True
    )
    return _tidy(done.stdout)


def _tidy(printed: str) -> str:
    """Without spaces at the ends of lines."""
    return "".join(f"{line.rstrip()}\n" for line in printed.splitlines())


def copied(project: Path) -> dict[str, str]:
    """Copy this project into a git repository of its own; returns what commands there need."""
    copy_project(project)
    env = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        **{f"GIT_{who}_NAME": "Docs" for who in ("AUTHOR", "COMMITTER")},
        **{f"GIT_{who}_EMAIL": "docs@example.com" for who in ("AUTHOR", "COMMITTER")},
    }
    for command in ("init --quiet", "add --all", "commit --quiet --message start"):
        subprocess.run(["git", *command.split()], cwd=project, env=env, check=True)
    return env


def main() -> None:
    """Bring all pages up to date."""
    with tempfile.TemporaryDirectory() as directory:
        project = Path(directory)
        env = copied(project)
        for name in PAGES:
            page = ROOT / "docs" / name
            page.write_text(refreshed(page.read_text(), project, env))


if __name__ == "__main__":
    main()
