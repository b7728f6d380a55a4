"""The README says what is so."""

import json
import re
import shlex
import subprocess

import numpy as np
import pandas as pd

from experiments import cells, tables
from tests.conftest import ROOT
from tests.contract import small
from wscpml import cli
from wscpml.methods import METHODS, method
from wscpml.quality import judging

README = (ROOT / "README.md").read_text()


def test_the_figures_are_those_of_the_committed_result():
    evaluation = json.loads((ROOT / "metrics/evaluation.json").read_text())
    names = ("average_precision", "ranking_loss", "one_error", "coverage", "hamming_loss")
    assert f"| {' | '.join(f'{evaluation[name]:.3f}' for name in names)} |" in README
    for name in ("F", "confidence"):
        assert f"`noise_auc.{name}` {evaluation['noise_auc'][name]:.3f}" in README


def test_the_study_s_figures_are_those_of_the_committed_cells():
    assert tables.summary(cells.load(ROOT / "experiments/results")) in README


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


def test_the_methods_are_those_there_are_under_the_titles_they_have():
    section = re.search(r"## Other methods\n(.*?)\n## ", README, re.DOTALL).group(1)
    rows = re.findall(r"^\| `([\w-]+)` \| ([\w-]+).*\| (.+) \|$", section, re.MULTILINE)
    assert {name: title for name, title, _ in rows} == {n: method(n).TITLE for n in METHODS}
    for name, _, source in rows:
        assert ("a reconstruction" in source) == ("a reconstruction" in method(name).SOURCE)


def test_the_example_of_other_methods_runs():
    code = re.search(r"## Other methods\n.*?```python\n(.*?)```", README, re.DOTALL).group(1)
    names = {}
    exec(code, names)
    shape = names["candidates"].shape
    assert names["confidences"].shape == names["probabilities"].shape == shape
    assert not names["confidences"][names["candidates"] == 0].any()


def test_the_five_lines_find_wrong_tags(tmp_path, monkeypatch, capsys):
    code = re.search(r"## Five lines\n.*?```python\n(.*?)```", README, re.DOTALL).group(1)
    assert len(re.findall(r"^(?!import|from|$)", code, re.MULTILINE)) <= 5
    X, _, candidates = small(n=60)
    table = pd.DataFrame(X, columns=[f"x{j}" for j in range(8)])
    table.insert(0, "song", [f"song {i}" for i in range(60)])
    names = np.array(["rock", "R&B", "pop", "folk"])
    table["tags"] = [";".join(names[row == 1]) for row in candidates]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(judging, "TREES", 50)
    table.to_csv("songs.csv", index=False)
    found = {}
    exec(code, found)
    issues = found["fitted"].find_label_issues()
    assert 0 < len(issues) < candidates.sum()
    assert set(issues.label) <= set(names)
    assert issues.instance.str.startswith("song ").all()
    assert "confidence" in capsys.readouterr().out


def test_every_command_of_the_shell_section_is_one():
    section = re.search(r"## The same from the shell\n(.*?)\n## ", README, re.DOTALL).group(1)
    commands = [shlex.split(line) for line in re.findall(r"^wscpml (.*)$", section, re.MULTILINE)]
    assert [command[0] for command in commands] == ["clean", "audit", "predict"]
    for command in commands:
        cli._parser().parse_args(command)


def test_every_picture_and_page_is_there():
    for target in re.findall(r"\]\((?!http|#)([^)]+)\)", README):
        assert (ROOT / target).is_file(), target
