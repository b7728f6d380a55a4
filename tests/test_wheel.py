"""What `pip install wscpml` gives: the wheel in an empty environment, away from the project.

And in a team's own git repository, with the versions of DVC and MLflow that are installed here.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from benchmarks import copy_project
from tests.conftest import ROOT, STAGES
from tests.contract import small
from wscpml.pipeline_files import FILES, IN_WHEEL

MOST_PACKAGES = 25  # beside torch and what torch itself asks for
EXTRAS = ["dask", "distributed", "dvc", "matplotlib", "mlflow", "pooch", "requests", "river"]
UNREACHABLE = re.compile(r"NewConnectionError|NameResolutionError|ConnectTimeout|ProxyError")
LABELS = np.array(["rock", "jazz", "pop", "folk"])


BINARIES = Path(sys.executable).parent
PIP = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]


@dataclass
class Environment:
    """An installed wheel, and a directory with a table of songs."""

    binaries: Path
    path: Path
    more: dict[str, str] = field(default_factory=dict)  # of the environment's variables

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        env = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTHON", "WSCPML_", "VIRTUAL_ENV"))
        }
        own = self.binaries / command[0]
        return subprocess.run(
            [own if own.exists() else command[0], *command[1:]],
            cwd=self.path,
            env=env | self.more,
            capture_output=True,
            text=True,
        )

    def output(self, *command: str) -> str:
        done = self.run(*command)
        assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
        return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    source, path = (tmp_path_factory.mktemp(name) for name in ("source", "wheel"))
    copy_project(source)  # a build leaves files behind, and takes in those of an earlier one
    build = ["wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", path, source]
    subprocess.run([*PIP, *build], check=True)
    (built,) = path.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(tmp_path_factory, wheel) -> Iterator[Environment]:
    """The core alone, in the versions that are tested."""
    venv, path = (tmp_path_factory.mktemp(name) for name in ("venv", "songs"))
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    environment = Environment(venv / "bin", path)
    constraints = str(ROOT / "constraints.txt")
    install = ("pip", "install", "--quiet", "--no-compile", "--constraint", constraints)
    done = environment.run(*install, str(wheel))
    if done.returncode and UNREACHABLE.search(done.stderr):
        pytest.skip("there is no network to install from")
    assert done.returncode == 0, done.stderr

    write_songs(path, 160)
    yield environment
    shutil.rmtree(venv)  # a gigabyte


def write_songs(path: Path, n: int) -> None:
    """A table of songs with tags, and the same without."""
    X, _, candidates = small(n=n)
    table = pd.DataFrame(X, columns=[f"feature{j}" for j in range(X.shape[1])])
    table = table.set_axis([f"song {i}" for i in range(n)]).rename_axis("song")
    table.to_csv(path / "new.csv")
    table["tags"] = [";".join(LABELS[row == 1]) for row in candidates]
    table.to_csv(path / "songs.csv")


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
    laid = [path.relative_to(ROOT) for pattern in FILES for path in ROOT.glob(pattern)]
    package_s, stages = versioned("wscpml"), versioned("stages")
    expected = {file.relative_to("wscpml") for file in package_s}
    assert there == expected | set(stages) | {Path(IN_WHEEL, file) for file in laid}
    assert Path("py.typed") in there


def versioned(directory: str) -> list[Path]:
    """The files that are in git, or will be."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", directory]
    done = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True)
    return [Path(name) for name in done.stdout.split() if (ROOT / name).exists()]


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


@pytest.fixture(scope="module")
def team(tmp_path_factory, wheel) -> Environment:
    """The wheel before what is installed here, and an empty git repository of a team's own."""
    venv, path, site = (tmp_path_factory.mktemp(name) for name in ("team", "repository", "site"))
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    packages = next(venv.glob("lib/python*/site-packages"))
    subprocess.run(
        [*PIP, "--python", venv / "bin/python", "install", "--no-deps", "--no-compile", wheel],
        check=True,
    )
    (packages / "here.pth").write_text(sysconfig.get_path("purelib"))
    env = {
        "PATH": os.pathsep.join([str(venv / "bin"), str(BINARIES), os.environ["PATH"]]),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "DVC_SITE_CACHE_DIR": str(site),
        **{f"GIT_{who}_NAME": "Test" for who in ("AUTHOR", "COMMITTER")},
        **{f"GIT_{who}_EMAIL": "test@example.com" for who in ("AUTHOR", "COMMITTER")},
    }
    return Environment(venv / "bin", path, env)


def test_a_team_s_own_repository_runs_the_pipeline_and_hands_its_results_on(team, tmp_path):
    team.output("git", "init", "--quiet", "--initial-branch", "main")
    assert "dvc repro" in team.output("wscpml", "init")
    assert "nothing is overwritten" in team.run("wscpml", "init").stderr
    write_songs(team.path / "data/own", 60)
    (team.path / "data/own/new.csv").unlink()
    settings = yaml.safe_load((team.path / "params.yaml").read_text())
    settings["dataset"] |= {"features": "data/own/songs.csv", "id": "song", "tags": "tags"}
    settings["dataset"]["name"] = None
    settings["classifier"]["kind"] = "kernel_ridge"
    (team.path / "params.yaml").write_text(yaml.safe_dump(settings))
    team.output("dvc", "add", "--quiet", "data/own/songs.csv")
    team.output("dvc", "remote", "add", "--default", "storage", str(tmp_path / "storage"))
    commit(team, "the pipeline, before any result")

    told = team.output("dvc", "repro")
    assert told.count("Running stage") == len(STAGES)
    assert "> python -m wscpml.stages.track" in told
    commit(team, "songs")
    team.output("git", "tag", "--annotate", "--message", "first", "pseudo-labels@v1.0.0")
    assert team.output("dvc", "status") == "Data and pipelines are up to date.\n"
    team.output("dvc", "push", "--quiet")

    origin = team.path
    other = Environment(team.binaries, tmp_path / "clone", team.more)
    team.output("git", "clone", "--quiet", str(origin), str(other.path))
    other.output("dvc", "pull", "--quiet")
    for name in ("data/pseudo_labels.parquet", "models/wsc-pml/classifier/weights.safetensors"):
        assert (other.path / name).read_bytes() == (origin / name).read_bytes()
    other.output("dvc", "artifacts", "get", str(origin), "pseudo-labels", "--out", "got.parquet")
    assert (other.path / "got.parquet").read_bytes() == (
        origin / "data/pseudo_labels.parquet"
    ).read_bytes()

    settings["method"] = "br"
    (other.path / "params.yaml").write_text(yaml.safe_dump(settings))
    workflow = yaml.safe_load((other.path / ".github/workflows/wscpml.yml").read_text())
    steps = {
        step["name"]: step["run"] for step in workflow["jobs"]["labels"]["steps"] if "name" in step
    }
    summary = tmp_path / "summary.md"
    other.more = other.more | {"BASE": "origin/main", "GITHUB_STEP_SUMMARY": str(summary)}
    for name in ("Run what changed", "Tell which labels changed"):
        other.output("bash", "-e", "-o", "pipefail", "-c", steps[name])
    assert "decisions flipped" in summary.read_text()
    assert "method" in summary.read_text()

    pinned = other.path / "requirements-wscpml.txt"
    pinned.write_text("wscpml[pipeline]==0.0.1\n")
    done = other.run("dvc", "repro")
    assert done.returncode
    assert "requirements-wscpml.txt: names wscpml 0.0.1, and" in done.stdout + done.stderr


def commit(environment: Environment, message: str) -> None:
    environment.output("git", "add", "--all")
    environment.output("git", "commit", "--quiet", "--message", message)
