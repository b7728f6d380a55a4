"""The documentation builds, needs no network, and says what is so."""

import html
import os
import pydoc
import re
import subprocess
import sys
from html.parser import HTMLParser

import matplotlib.image
import numpy as np
import pandas as pd
import pytest

from docs import figures, run
from tests.conftest import ROOT
from tests.contract import small
from tests.datasets.test_registry import loaded
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
        ("label-quality", "wscpml.quality.judging.assess"),
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


@pytest.mark.parametrize("names", [["index.md"], ["how-to/clean.md", "how-to/review.md"]])
def test_short_examples_run_on_a_table_of_songs(names, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(judging, "TREES", 20)
    X, _, candidates = small(n=100)
    songs = pd.DataFrame(X, columns=[f"feature{j}" for j in range(X.shape[1])])
    labels = np.array(["rock", "jazz", "pop", "folk"])
    songs["tags"] = [";".join(labels[row == 1]) for row in candidates]
    songs.rename_axis("song").to_csv("songs.csv")
    known = {}
    for name in names:
        for code, *_ in run.PYTHON.findall((ROOT / "docs" / name).read_text()):
            exec(code, known)
    assert sorted(known["tags"]) == sorted(labels)
    if "how-to/review.md" in names:
        review = pd.read_csv("review.csv")
        assert set(review.label) <= set(labels)
        assert 0 < len(review) <= 100
        assert pd.read_csv("confidence.csv", index_col="song").shape == candidates.shape
        assert known["cleaned"].to_numpy().sum() < candidates.sum()


@pytest.mark.parametrize("name", run.PAGES)
def test_examples_print_what_the_page_says(name, clone):
    loaded("emotions")
    page = (ROOT / "docs" / name).read_text()
    now = run.refreshed(page, clone.path, clone.env)
    assert NUMBER.sub("#", now) == NUMBER.sub("#", page), "run python -m docs.run"
    # Another processor, or number of threads, may round differently and flip a few tags.
    told, found = (np.array(NUMBER.findall(each), float) for each in (page, now))
    np.testing.assert_allclose(found, told, rtol=0.01, atol=0.02, err_msg="run python -m docs.run")
