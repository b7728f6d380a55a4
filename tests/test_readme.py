"""The README is short, and says what is so."""

import json
import re

from tests.conftest import ROOT
from wscpml.cli import main
from wscpml.quality import judging

README = (ROOT / "README.md").read_text()
MOST_BYTES = 8000


def section(title):
    return re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", README, re.DOTALL | re.MULTILINE).group(1)


def test_it_is_short_enough_for_a_newcomer():
    assert len(README.encode()) <= MOST_BYTES


def test_the_figures_are_those_of_the_committed_result():
    evaluation = json.loads((ROOT / "metrics/evaluation.json").read_text())
    names = ("average_precision", "ranking_loss", "one_error", "coverage", "hamming_loss")
    for figures in (evaluation, evaluation["printed"]):
        assert f"| {' | '.join(f'{figures[name]:.3f}' for name in names)} |" in README


def test_the_five_lines_find_wrong_tags(tmp_path, monkeypatch, capsys):
    code = re.search(r"```python\n(.*?)```", section("Five lines of Python"), re.DOTALL).group(1)
    assert len(re.findall(r"^(?!import|from|$)", code, re.MULTILINE)) <= 5
    assert "`wscpml sample songs.csv`" in section("Five lines of Python")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(judging, "TREES", 50)
    main(["sample", "songs.csv"])
    found = {}
    exec(code, found)
    issues = found["fitted"].find_label_issues()
    assert 0 < len(issues) < (found["fitted"].label_confidence_ > 0).to_numpy().sum()
    assert {"Folk", "R&B"} <= set(issues.label)
    assert issues.instance.str.startswith("song ").all()
    assert "label_confidence" in capsys.readouterr().out


def test_the_three_commands_are_those_that_people_need():
    commands = re.findall(r"^wscpml (\w+) ", section("Three commands"), re.MULTILINE)
    assert commands == ["clean", "audit", "predict"]


def test_every_picture_and_page_is_there():
    targets = re.findall(r"\]\((?!http|#)([^)]+)\)", README)
    assert len(targets) > 15
    for target in targets:
        assert (ROOT / target).is_file(), target


def test_the_paper_is_cited_as_in_the_citation_file():
    import yaml

    (paper,) = yaml.safe_load((ROOT / "CITATION.cff").read_text())["references"]
    names = [f"{each['given-names']} {each['family-names']}" for each in paper["authors"]]
    told = " ".join(section("How to cite").split())
    assert f"{', '.join(names[:-1])} and {names[-1]}" in told
    assert f"*{paper['title']}*" in told
