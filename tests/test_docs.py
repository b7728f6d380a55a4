"""The documentation builds, needs no network, and says what is so."""

import html
import importlib.util
import json
import os
import pydoc
import re
import shlex
import subprocess
import sys
from html.parser import HTMLParser

import matplotlib.image
import numpy as np
import pandas as pd
import pytest
import yaml

from docs import figures, picture, run
from experiments import cells, tables
from tests.conftest import ROOT, STAGES
from tests.datasets.test_registry import loaded
from wscpml import cli
from wscpml.methods import METHODS, method
from wscpml.quality import judging

LOADED = {  # what a browser fetches by itself, and the attributes that say from where
    "audio": ["src"],
    "embed": ["src"],
    "iframe": ["src"],
    "img": ["src", "srcset"],
    "link": ["href"],
    "object": ["data"],
    "script": ["src"],
    "source": ["src", "srcset"],
    "video": ["src", "poster"],
}
ELSEWHERE = re.compile(r"(https?:)?//", re.IGNORECASE)
NUMBER = re.compile(r"\d+(?:\.\d+)?")
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "data/own/README.md",
    ROOT / "data/decisions/README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
COMMANDS = [  # (page, words), of all that is shown to be typed into a shell
    (page.relative_to(ROOT).as_posix(), words)
    for page in PAGES
    for block in re.findall(r"^```(?:sh|console)\n(.*?)^```$", page.read_text(), re.DOTALL | re.M)
    for line in block.replace("\\\n", " ").splitlines()
    for part in re.split(r" && ", line.removeprefix("$ "))
    if (words := shlex.split(part, comments=True))
]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


class Addresses(HTMLParser):
    """What a page makes a browser fetch."""

    def __init__(self, page):
        super().__init__()
        self.found = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.found += [value for name, value in attrs if name in LOADED.get(tag, []) and value]
        self.found += _in_style(" ".join(value or "" for name, value in attrs if name == "style"))


def _in_style(style):
    return re.findall(r"(?:url\(|@import)\s*['\"]?([^'\")\s]+)", style)


def test_no_page_loads_anything_from_the_network(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 20
    for page in pages:
        text = page.read_text()
        addresses = Addresses(text).found
        assert any(address.endswith(".css") for address in addresses)
        styles = "".join(re.findall(r"<style>(.*?)</style>", text, re.DOTALL))
        for address in addresses + _in_style(styles):
            assert not ELSEWHERE.match(address), f"{page.name}: {address}"
    for style in site.rglob("*.css"):
        assert not [each for each in _in_style(style.read_text()) if ELSEWHERE.match(each)]


def test_equations_are_drawn_without_a_script(site):
    page = (site / "method.html").read_text()
    equations = re.findall(r"^```math$", (ROOT / "docs/method.md").read_text(), re.MULTILINE)
    assert page.count("<math ") == len(equations) > 5
    assert "\\frac" not in page


@pytest.mark.parametrize(
    ("page", "name"),
    [
        ("wscpml", "wscpml.WSCPML.find_label_issues"),
        ("label-quality", "wscpml.quality.judging.judge"),
        ("methods", "wscpml.methods.base.Method.fit"),
        ("metrics", "wscpml.evaluation.statistics.friedman"),
        ("data", "wscpml.datasets.noise.pad_candidates"),
    ],
)
def test_the_reference_has_what_people_call_and_says_what_it_does(site, page, name):
    text = (site / "reference" / f"{page}.html").read_text()
    assert f'id="{name}"' in text
    words = html.unescape(re.sub(r"<[^>]+>", "", text))
    assert pydoc.locate(name).__doc__.splitlines()[0].replace("``", "") in words


def commands(*start):
    found = [words for _, words in COMMANDS if tuple(words[: len(start)]) == start]
    assert found
    return [words[len(start) :] for words in found]


def test_every_wscpml_command_of_every_page_is_one():
    found = commands("wscpml")
    assert {words[0] for words in found} == {
        "audit", "clean", "datasets", "describe", "diff", "fetch", "import-decisions", "init",
        "methods", "predict", "queue", "restore", "review", "sample",
    }  # fmt: skip
    for words in found:
        cli._parser().parse_args(words)


def test_every_target_of_make_is_one():
    targets = re.findall(r"^([\w./-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    named = {word for words in commands("make") for word in words if "=" not in word}
    assert named <= set(targets)
    assert {"run", "test", "test-quick", "ui", "lint", "study", "track"} <= named
    told = re.search(r"^Makefile +(.+)$", page("architecture.md"), re.MULTILINE).group(1)
    assert set(told.split(", ")) == {name for name in targets if not name.startswith(".")}


def test_every_module_that_pages_say_to_run_is_one():
    texts = "".join(each.read_text() for each in PAGES)
    for name in set(re.findall(r"python\s+-m\s+((?:benchmarks|docs|experiments)[\w.]*)", texts)):
        assert importlib.util.find_spec(name.rstrip(".")), name


def test_every_setting_that_commands_change_is_one():
    changes = [
        word.partition("=")
        for start in (("dvc", "exp", "run"), ("wscpml",))
        for words in commands(*start)
        for flag, word in zip(words, words[1:], strict=False)
        if flag in ("-S", "--set")
    ]
    assert len(changes) > 8
    for path, _, _ in changes:
        file, _, key = path.rpartition(":")
        there = yaml.safe_load((ROOT / (file or "params.yaml")).read_text())
        for part in key.split("."):
            assert part in there, path
            there = there[part]


def page(name):
    return (ROOT / "docs" / name).read_text()


def test_how_to_read_the_result_has_the_committed_figures():
    evaluation = json.loads((ROOT / "metrics/evaluation.json").read_text())
    for name in ("F", "label_confidence"):
        told = f"`noise_auc.{name}` {evaluation['noise_auc'][name]:.3f}"
        assert told in " ".join(page("results.md").split())


def test_the_study_s_figures_are_those_of_the_committed_cells():
    assert tables.summary(cells.load(ROOT / "experiments/results")) in page("study.md")


def test_the_map_of_the_house_is_complete():
    tree = re.search(r"## The map\n\n```\n(.*?)```", page("architecture.md"), re.DOTALL).group(1)
    shown, folders = [], []
    for line in tree.splitlines():
        indent, names = re.match(r"( *)([\w./ -]+?)(?:  |$)", line).groups()
        if len(indent) > 4:  # goes on with what the line above says
            continue
        del folders[len(indent) // 2 :]
        shown += ["".join(folders) + name for name in names.split()]
        folders.append(names)
    assert len(shown) == len(set(shown))
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    files = [name for name in listed.stdout.split() if (ROOT / name).exists()]
    top = {name.split("/")[0] for name in files if not name.startswith(".")}
    assert {name.rstrip("/") for name in shown if "/" not in name.rstrip("/")} == top
    core = {name for name in files if name.startswith("wscpml/")}
    folders = {f"{name.rpartition('/')[0]}/" for name in core} - {"wscpml/"}
    modules = {name for name in core if not name.endswith("/__init__.py")}
    assert {name for name in shown if name.startswith("wscpml/")} - {"wscpml/"} == modules | folders


def test_the_stages_are_told_with_their_settings():
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \|", page("architecture.md"), re.MULTILINE)
    assert [name for name, _ in rows] == STAGES
    told = {key for _, keys in rows for key in re.findall(r"`(\w+)`", keys)}
    params = yaml.safe_load((ROOT / "params.yaml").read_text())
    of_all = {"seed", "device", "memory", "scheduler", "checkpoint", "tracking"}
    assert told == params.keys() - of_all


def test_the_methods_are_those_there_are_under_the_titles_they_have():
    rows = re.findall(r"^\| `([\w-]+)` \| ([\w-]+).*\| (.+) \|$", page("methods.md"), re.MULTILINE)
    assert {name: title for name, title, _ in rows} == {n: method(n).TITLE for n in METHODS}
    for name, _, source in rows:
        assert ("a reconstruction" in source) == ("a reconstruction" in method(name).SOURCE)


def test_the_example_of_the_methods_runs():
    names = {}
    for code, *_ in run.PYTHON.findall(page("methods.md")):
        exec(code, names)
    shape = names["candidates"].shape
    assert names["pseudo_labels"].shape == names["probabilities"].shape == shape
    assert not names["pseudo_labels"][names["candidates"] == 0].any()


def test_the_readme_s_picture_is_the_one_that_the_code_draws(tmp_path):
    loaded("emotions")
    picture.main(tmp_path / picture.FILE.name)
    before, now = (matplotlib.image.imread(f) for f in (picture.FILE, tmp_path / picture.FILE.name))
    assert before.shape == now.shape
    # Another processor may round differently, and change a digit.
    assert np.abs(before - now).mean() < 0.002, "run python -m docs.picture"


def test_the_pictures_are_those_that_the_code_draws(tmp_path):
    figures.main(tmp_path)
    page = (ROOT / "docs/method.md").read_text()
    committed = sorted(figures.FOLDER.iterdir())
    assert [path.name for path in committed] == sorted(path.name for path in tmp_path.iterdir())
    for path in committed:
        assert f"(images/method/{path.name})" in page
        before, now = (matplotlib.image.imread(each) for each in (path, tmp_path / path.name))
        assert before.shape == now.shape
        # Another processor may round differently, and move a point by a pixel.
        assert np.abs(before - now).mean() < 0.002, f"{path.name}: run python -m docs.figures"


@pytest.mark.parametrize(
    "names", [["index.md"], ["how-to/clean.md", "how-to/review.md"], ["how-to/embeddings.md"]]
)
def test_short_examples_run_on_a_table_of_songs(names, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(judging, "TREES", 20)
    cli.main(["sample", "songs.csv"])
    tags = pd.read_csv("songs.csv", index_col="song").tags.str.get_dummies(", ")
    unsure = np.random.default_rng(0).normal(0, 0.2, tags.shape)
    (0.2 + 0.6 * tags + unsure).clip(0, 1).reset_index().to_parquet("oof.parquet")
    known = {}
    for name in names:
        for code, *_ in run.PYTHON.findall((ROOT / "docs" / name).read_text()):
            exec(code, known)
    labels = set(known["model"].label_names_)
    assert {"Folk", "R&B"} <= labels
    if "how-to/review.md" in names:
        review = pd.read_csv("review.csv")
        assert set(review.label) <= labels
        assert 0 < len(review) <= 100
        confidence = pd.read_csv("label_confidence.csv", index_col="song")
        assert len(confidence) == 300
        assert 0 < known["cleaned"].to_numpy().sum() < (confidence > 0).to_numpy().sum()
        assert known["confidence"].gt(0).equals(tags == 1)
        assert known["again"].equals(known["model"].predict(known["songs"]))
        assert known["reviewed"].decided_.true.sum() == 1


@pytest.mark.parametrize("name", run.PAGES)
def test_examples_print_what_the_page_says(name, clone):
    loaded("emotions")
    page = (ROOT / "docs" / name).read_text()
    now = run.refreshed(page, clone.path, clone.env)
    assert NUMBER.sub("#", now) == NUMBER.sub("#", page), "run python -m docs.run"
    # Another processor, or number of threads, may round differently and flip a few tags.
    told, found = (np.array(NUMBER.findall(each), float) for each in (page, now))
    np.testing.assert_allclose(found, told, rtol=0.01, atol=0.02, err_msg="run python -m docs.run")
