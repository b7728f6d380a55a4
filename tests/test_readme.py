"""The README says what is so."""

import json
import re
import subprocess

from tests.conftest import ROOT

README = (ROOT / "README.md").read_text()


def test_the_figures_are_those_of_the_committed_result():
    evaluation = json.loads((ROOT / "metrics/evaluation.json").read_text())
    names = ("average_precision", "ranking_loss", "one_error", "coverage", "hamming_loss")
    assert f"| {' | '.join(f'{evaluation[name]:.3f}' for name in names)} |" in README
    assert f"`noise_auc.F` {evaluation['noise_auc']['F']:.3f}" in README


def test_the_map_of_the_house_is_complete():
    tree = re.search(r"## The house\n\n```\n(.*?)```", README, re.DOTALL).group(1)
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    files = [name for name in listed.stdout.split() if not name.startswith(".")]
    top = {name.split("/")[0] for name in files} - {"README.md"}
    core = {name.split("/")[1] for name in files if name.startswith("wscpml/")} - {"__init__.py"}
    shown = re.findall(r"^( *)([\w./ ]+?)(?:  |$)", tree, re.MULTILINE)
    outer = {name.rstrip("/") for indent, names in shown if not indent for name in names.split()}
    inner = {name.rstrip("/") for indent, names in shown if indent for name in names.split()}
    assert outer == top
    assert inner == core


def test_every_picture_and_page_is_there():
    for target in re.findall(r"\]\((?!http)([^)]+)\)", README):
        assert (ROOT / target).is_file(), target
