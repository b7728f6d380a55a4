"""What code is behind each stage: a change there, and only there, changes its digest."""

import re
import shutil

import pytest

from stages import identify
from tests.conftest import ROOT, STAGES
from wscpml import artifacts, settings

FITTED = {"judge_labels", "train_classifier"}
ALL = {*STAGES} - {"identify"}


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A copy of the code."""
    for folder in ("stages", "wscpml"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=ignored)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(identify, "ROOT", tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def before(tmp_path_factory):
    """What is identified of the code as it is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("before"))
        return identified()


def identified():
    identify.identify(settings.load(ROOT / "params.yaml"))
    return artifacts.read("metrics/code.json")


@pytest.mark.parametrize(
    ("file", "old", "new", "expected"),
    [
        ("wscpml/algorithm/ridge.py", "AS_GOOD = 0.003", "AS_GOOD = 0.004", FITTED),
        ("wscpml/algorithm/clustering.py", "STRIPS = 16", "STRIPS = 8", {"cluster"}),
        ("wscpml/quality/judging.py", "LEAF = 400, 3", "LEAF = 400, 4", {"judge_labels"}),
        ("wscpml/quality/audit.css", "body", "body ", {"evaluate", "track"}),
        ("wscpml/quality/diff.html.j2", "<h2", "<h3", {"track"}),
        ("wscpml/datasets/registry.yaml", "emotions", "emotion", {"fetch", "prepare"}),
        ("wscpml/cli/commands.py", "def predict", "def predict_", set()),
        # What is loaded of params.yaml is compared itself, so the code that loads it is not ...
        ("wscpml/settings.py", 'update={"kind": "pad"', 'update={"kind": "uniform"', set()),
        # ... but what stages ask the settings for is.
        ("wscpml/settings.py", 'return method == "wsc-pml"', "return True", ALL),
        ("wscpml/devices.py", "threadpool_limits(1,", "threadpool_limits(2,", ALL),
        ("stages/__init__.py", "stage(chosen)", "stage(chosen), 1", ALL),
    ],
)
def test_a_change_is_seen_by_the_stages_that_use_it(tree, before, file, old, new, expected):
    before = before["stages"]
    path = tree / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    after = identified()["stages"]
    changed = {stage for stage in before if before[stage] != after[stage]}
    assert changed == expected


def test_comments_and_docstrings_in_every_module_change_nothing(tree, before):
    for path in tree.rglob("*.py"):
        text = re.sub(r'^( *)"""(?=\w)', r'\1"""Indeed: ', path.read_text(), flags=re.M)
        path.write_text(f"# A comment.\n{text}\n# Another.\n")
    assert identified() == before


def test_a_renamed_module_changes_nothing(tree, before):
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


def test_a_method_is_identified_by_its_own_code(tree, before):
    before = before["methods"]
    path = tree / "wscpml/methods/ml_knn.py"
    path.write_text(path.read_text().replace("class MLkNN", "OTHER = 1\n\n\nclass MLkNN"))
    assert identified()["methods"] == before
    path = tree / "wscpml/methods/linear.py"
    path.write_text(path.read_text().replace("WEAKEST = 1e-12", "WEAKEST = 1e-11"))
    after = identified()["methods"]
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"pml-ni", "nlr", "pml-lenfn", "fbd"}
