"""What `pip install wscpml` gives: the wheel in an empty environment, away from the project."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from benchmarks import copy_project
from tests.conftest import ROOT
from tests.contract import small

MOST_PACKAGES = 25  # beside torch and what torch itself asks for
EXTRAS = ["dask", "distributed", "dvc", "matplotlib", "mlflow", "pooch", "requests", "river"]
UNREACHABLE = re.compile(r"NewConnectionError|NameResolutionError|ConnectTimeout|ProxyError")
LABELS = np.array(["rock", "jazz", "pop", "folk"])


@dataclass
class Environment:
    """An installed wheel, and a directory with a table of songs."""

    binaries: Path
    path: Path

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        env = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTHON", "WSCPML_", "VIRTUAL_ENV"))
        }
        return subprocess.run(
            [self.binaries / command[0], *command[1:]],
            cwd=self.path,
            env=env,
            capture_output=True,
            text=True,
        )

    def output(self, *command: str) -> str:
        done = self.run(*command)
        assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
        return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Iterator[Environment]:
    """The core alone, in the versions that are tested."""
    source, venv, path = (tmp_path_factory.mktemp(name) for name in ("source", "venv", "songs"))
    copy_project(source)  # a build leaves files behind, and takes in those of an earlier one
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    build = [*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", path, source]
    subprocess.run(build, check=True)
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    environment = Environment(venv / "bin", path)
    (wheel,) = path.glob("*.whl")
    constraints = str(ROOT / "constraints.txt")
    install = ("pip", "install", "--quiet", "--no-compile", "--constraint", constraints)
    done = environment.run(*install, str(wheel))
    if done.returncode and UNREACHABLE.search(done.stderr):
        pytest.skip("there is no network to install from")
    assert done.returncode == 0, done.stderr

    X, _, candidates = small(n=160)
    table = pd.DataFrame(X, columns=[f"feature{j}" for j in range(X.shape[1])])
    table = table.set_axis([f"song {i}" for i in range(160)]).rename_axis("song")
    table.to_csv(path / "new.csv")
    table["tags"] = [";".join(LABELS[row == 1]) for row in candidates]
    table.to_csv(path / "songs.csv")
    yield environment
    shutil.rmtree(venv)  # a gigabyte


def requirements(environment: Environment) -> dict[str, list[str]]:
    """The installed packages by name, each with what it asks for there."""
    code = (
        "import json, importlib.metadata as m;"
        "print(json.dumps({d.name: d.requires or [] for d in m.distributions()}))"
    )
    found = json.loads(environment.output("python", "-c", code))
    return {
        canonicalize_name(name): [
            canonicalize_name(each.name)
            for each in map(Requirement, lines)
            if each.marker is None or each.marker.evaluate({"extra": ""})
        ]
        for name, lines in found.items()
    }


def test_the_core_is_small_and_has_neither_pipeline_nor_tracking(installed):
    asked = requirements(installed)
    assert "wscpml" in asked
    assert [name for name in EXTRAS if name in asked] == []
    torch_s_own, new = set(), {"torch"}
    while new:
        torch_s_own |= new
        new = {each for name in new for each in asked[name]} - torch_s_own
    others = set(asked) - torch_s_own - {"wscpml", "pip", "setuptools"}
    assert len(others) <= MOST_PACKAGES, sorted(others)


def test_the_package_is_the_wheel_s_and_is_typed(installed):
    code = "import wscpml, pathlib; print(pathlib.Path(wscpml.__file__).parent)"
    package = Path(installed.output("python", "-c", code).strip())
    assert package.is_relative_to(installed.binaries.parent)
    there = {f.relative_to(package) for f in package.rglob("*") if f.suffix not in ("", ".pyc")}
    names = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "wscpml"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    files = [Path(name) for name in names if (ROOT / name).exists()]
    assert there == {file.relative_to("wscpml") for file in files}
    assert Path("py.typed") in there


def test_the_readme_s_five_lines_find_wrong_tags(installed):
    readme = (ROOT / "README.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    header, *issues = installed.output("python", "-c", code).splitlines()
    assert "label_confidence" in header
    tags = pd.read_csv(installed.path / "songs.csv").tags.str.get_dummies(";")
    assert 0 < len(issues) < tags.to_numpy().sum()


def test_clean_audit_and_predict_work(installed):
    installed.output("wscpml", "sample", "sample.csv")
    described = installed.output("wscpml", "describe", "sample.csv", "--tags", "tags")
    assert "text: TF-IDF" in described
    data = ("songs.csv", "--tags", "tags", "--id", "song")
    installed.output("wscpml", "describe", *data)
    installed.output("wscpml", "clean", *data, "-o", "clean.csv", "--model", "songs-model")
    decided = pd.read_csv(installed.path / "clean.csv")[["instance", "label"]].head(1)
    decided.assign(decision="true").to_csv(installed.path / "decisions.csv", index=False)
    given = ("--decisions", "decisions.csv", "--html", "report.html")
    assert "1 are decided" in installed.output("wscpml", "audit", *data, *given)
    installed.output("wscpml", "predict", "songs-model", "new.csv", "--id", "song", "-o", "out.csv")
    cleaned = pd.read_csv(installed.path / "clean.csv")
    assert list(cleaned) == ["instance", "label", "label_confidence", "keep", "decided"]
    assert set(cleaned.label) == set(LABELS)
    assert set(cleaned.keep) == {0, 1}
    assert "song 0" in (installed.path / "report.html").read_text()
    predicted = pd.read_csv(installed.path / "out.csv")
    assert sorted(predicted) == sorted(["song", *LABELS, "labels"])
    assert len(predicted) == 160


@pytest.mark.parametrize("command", ["describe emotions", "describe yeast", "fetch emotions"])
def test_what_needs_the_pipeline_s_extra_says_so_in_one_line(installed, command):
    done = installed.run("wscpml", *command.split())
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "pip install 'wscpml[pipeline]'" in done.stderr


def test_the_lists_need_no_extra(installed):
    assert "emotions" in installed.output("wscpml", "datasets")
    assert "pml-ni" in installed.output("wscpml", "methods")
