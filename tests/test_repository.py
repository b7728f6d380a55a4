"""The project's own promises: what depends on what, and who may import whom."""

import ast
import tomllib
from pathlib import Path

import pytest
import yaml

from benchmarks import dvc_stages
from experiments.identify import NEVER_CHANGE_RESULTS
from tests.conftest import ROOT, STAGES
from wscpml import settings
from wscpml.code_digest import CodeDigest
from wscpml.methods import METHODS, method

DVC_STAGES = dvc_stages()
COMPARED = [name for name in METHODS if name != "wsc-pml"]


@pytest.mark.parametrize("stage", DVC_STAGES)
def test_a_stage_depends_on_the_code_behind_it(stage):
    declared = [Path(dep) for dep in DVC_STAGES[stage]["deps"]]
    excluded = NEVER_CHANGE_RESULTS | {"wscpml.settings"}  # whose values are params of the stage
    code = CodeDigest(ROOT, ("stages", "wscpml"), excluded)
    code.of(f"stages.{stage}", stage)
    if stage == "apply_method":
        for name in COMPARED:  # which it imports by name
            code.of(*f"wscpml.methods.{METHODS[name]}".split(":"))
    behind = [file.relative_to(ROOT) for file in code.files]
    missing = [f for f in behind if not {f, *f.parents} & {*declared}]
    assert missing == []


@pytest.mark.parametrize("stage", DVC_STAGES)
def test_a_stage_is_named_like_its_script_and_says_what_it_does(stage):
    assert DVC_STAGES[stage]["cmd"] == f"python -m stages.{stage}"
    assert DVC_STAGES[stage]["desc"]


def test_the_stages_are_those_of_the_method_in_order():
    assert list(DVC_STAGES) == STAGES


def test_only_the_stages_that_all_methods_share_are_in_the_file_that_dvc_runs_as_a_whole():
    shared = yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"]
    assert [s for s in STAGES if s not in shared] == STAGES[3:8]
    for stage in shared:
        templated = [dep for dep in shared[stage]["deps"] if "wsc-pml" in dep or "${" in dep]
        assert templated == ["models/${method}"] * (stage in ("apply_method", "track"))


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
    from importlib.metadata import requires, version

    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = {canonicalize_name(r.name): r for r in map(Requirement, lines)}
    direct = [Requirement(line) for line in requires("wscpml") or []]
    assert len(direct) > 15
    for requirement in direct:
        pin = pins[canonicalize_name(requirement.name)]
        assert pin.specifier.contains(version(requirement.name)), requirement.name
