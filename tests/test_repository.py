"""The project's own promises: what depends on what, and who may import whom."""

import ast
import re
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from benchmarks import dvc_stages
from tests.conftest import ROOT, STAGES
from wscpml import settings
from wscpml.methods import METHODS, method

CHANGELOG = (ROOT / "CHANGELOG.md").read_text()
DVC_STAGES = dvc_stages()
COMPARED = [name for name in METHODS if name != "wsc-pml"]


@pytest.mark.parametrize("stage", [stage for stage in DVC_STAGES if stage != "identify"])
def test_a_stage_depends_on_the_digest_of_its_code_and_on_settings_that_count(stage):
    code, settings = DVC_STAGES[stage]["params"]
    more = ["methods.${method}"] if stage == "apply_method" else []
    assert code == {"metrics/code.json": [f"stages.{stage}", *more]}
    assert list(settings) == ["metrics/settings.json"]
    assert not [dep for dep in DVC_STAGES[stage]["deps"] if dep.startswith(("wscpml", "stages"))]


@pytest.mark.parametrize("stage", DVC_STAGES)
def test_a_stage_is_named_like_its_script_and_says_what_it_does(stage):
    assert DVC_STAGES[stage]["cmd"] == f"python -m stages.{stage}"
    assert DVC_STAGES[stage]["desc"]


def test_the_stages_are_those_of_the_method_in_order():
    assert list(DVC_STAGES) == STAGES


def test_the_stages_of_wsc_pml_are_in_a_file_of_their_own_and_seen_to_for_every_method():
    shared = yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"]
    assert [s for s in STAGES if s not in shared] == STAGES[5:10]
    for stage in shared:
        templated = [dep for dep in shared[stage]["deps"] if "${" in dep]
        assert templated == ["models/${method}"] * (stage in ("apply_method", "evaluate", "track"))
    assert "models/wsc-pml/classifier" in shared["apply_method"]["deps"]
    assert "models/wsc-pml/classifier" in DVC_STAGES["train_classifier"]["outs"]


@pytest.mark.parametrize("name", COMPARED)
def test_the_parameters_of_the_other_methods_are_the_recommended_ones(name, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert settings.parameters(name) | {"random_state": None} == method(name)().get_params()
    text = Path(f"models/{name}/params.yaml").read_text()
    module = f"wscpml/methods/{METHODS[name].partition(':')[0]}.py"
    assert text.startswith(f"# Parameters of {method(name).TITLE}, as recommended; {module} ")


def importers(package: str) -> set[str]:
    files = [
        f for folder in ("wscpml", "stages", "experiments") for f in (ROOT / folder).rglob("*.py")
    ]
    found = set()
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if any(name.partition(".")[0] == package for name in names):
                found.add(file.relative_to(ROOT).as_posix())
    return found


def test_only_tracking_talks_to_mlflow():
    assert importers("mlflow") == {"wscpml/serving/tracking.py"}


def test_only_clustering_and_classifier_import_torch():
    assert importers("torch") == {
        "wscpml/algorithm/network.py",
        "wscpml/algorithm/clustering.py",
        "wscpml/devices.py",
        "experiments/folds.py",
    }


def test_the_package_has_its_files_that_are_no_code():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    found = {
        (".".join(file.relative_to(ROOT).parent.parts), file.name)
        for file in (ROOT / "wscpml").rglob("*.*")
        if file.suffix not in (".py", ".pyc")
    }
    data = declared["package-data"]
    assert found == {(package, name) for package in data for name in data[package]}


def test_every_direct_dependency_is_pinned_to_the_version_that_is_tested():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = {canonicalize_name(r.name): r for r in map(Requirement, lines)}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    assert list(extras) == ["pipeline", "servers", "excel", "review", "study", "dev", "docs"]
    direct = [
        Requirement(line) for group in (project["dependencies"], *extras.values()) for line in group
    ]
    for requirement in direct:
        (pin,) = pins[canonicalize_name(requirement.name)].specifier
        assert pin.operator == "==", requirement.name
        assert requirement.specifier.contains(pin.version), requirement.name
        assert version(requirement.name).partition("+")[0] == pin.version, requirement.name


def test_the_core_asks_for_ranges_and_not_for_versions():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for requirement in map(Requirement, project["dependencies"]):
        operators = {each.operator for each in requirement.specifier}
        assert operators == {"=="} if requirement.name == "torch" else ">=" in operators


def test_the_version_is_told_once_over():
    told = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == told
    sections = re.findall(r"^## \[(.+?)\](?: - (\d{4}-\d\d-\d\d))?$", CHANGELOG, re.MULTILINE)
    dated = [(name, date) for name, date in sections if name != "Unreleased"]
    assert dated[0][0] == told
    assert all(date for _, date in dated)
    assert dated == sorted(dated, key=lambda section: section[1], reverse=True)
