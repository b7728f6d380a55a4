"""What code is behind each stage: a change there, and only there, changes its digest."""

import re
import shutil

import pytest

from stages import identify
from tests.conftest import ROOT
from wscpml import artifacts

FITTED = {"judge_labels", "train_classifier"}


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A copy of the code, and what is identified of it."""
    for folder in ("stages", "wscpml"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=ignored)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(identify, "ROOT", tmp_path)
    return tmp_path


def identified():
    identify.identify(None)
    return artifacts.read("metrics/code.json")


@pytest.mark.parametrize(
    ("file", "old", "new", "expected"),
    [
        ("algorithm/ridge.py", "AS_GOOD = 0.003", "AS_GOOD = 0.004", FITTED),
        ("algorithm/clustering.py", "STRIPS = 16", "STRIPS = 8", {"cluster"}),
        ("quality/judging.py", "LEAF = 400, 3", "LEAF = 400, 4", {"judge_labels"}),
        ("algorithm/ridge.py", "AS_GOOD = 0.003", "AS_GOOD = 0.003  # a comment", set()),
        ("quality/audit.css", "body", "body ", {"evaluate", "track"}),
        ("quality/diff.html.j2", "<h2", "<h3", {"track"}),
        ("datasets/registry.yaml", "emotions", "emotion", {"fetch", "prepare"}),
        ("cli/commands.py", "def predict", "def predict_", set()),
        ("settings.py", 'update={"kind": "pad"', 'update={"kind": "uniform"',
         {"fetch", "prepare", "inject_noise", "track"}),
    ],
)  # fmt: skip
def test_a_change_is_seen_by_the_stages_that_use_it(tree, file, old, new, expected):
    before = identified()["stages"]
    path = tree / "wscpml" / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    after = identified()["stages"]
    changed = {stage for stage in before if before[stage] != after[stage]}
    assert changed == expected


def test_a_renamed_module_changes_nothing(tree):
    before = identified()
    for old, new in (("evidence", "reasons"), ("neighbours", "vicinity")):
        (path,) = tree.glob(f"wscpml/*/{old}.py")
        path.rename(path.with_stem(new))
        for file in tree.rglob("*.py"):
            text = re.sub(
                rf"(from wscpml[.\w]*)\b{old}\b( import)", rf"\1{new}\2", file.read_text()
            )
            text = re.sub(rf"(from wscpml.\w+ import .*)\b{old}\b", rf"\1{new} as {old}", text)
            file.write_text(text)
    assert identified() == before


def test_a_method_is_identified_by_its_own_code(tree):
    before = identified()["methods"]
    path = tree / "wscpml/methods/ml_knn.py"
    path.write_text(path.read_text().replace("class MLkNN", "OTHER = 1\n\n\nclass MLkNN"))
    assert identified()["methods"] == before
    path = tree / "wscpml/methods/linear.py"
    path.write_text(path.read_text().replace("WEAKEST = 1e-12", "WEAKEST = 1e-11"))
    after = identified()["methods"]
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"pml-ni", "nlr", "pml-lenfn", "fbd"}
