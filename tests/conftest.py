import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import hypothesis
import numpy as np
import pytest
import yaml

from benchmarks import ROOT, copy_project
from wscpml.datasets.dataset import Dataset
from wscpml.datasets.registry import REGISTRY, Named
from wscpml.quality import judging

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # as shells start what is in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)  # programs that tests start heed it
if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:  # as nohup starts programs
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

STAGES = [
    "identify",
    "fetch",
    "prepare",
    "inject_noise",
    "collect_decisions",
    "learn_prototypes",
    "build_confidence",
    "cluster",
    "judge_labels",
    "train_classifier",
    "apply_method",
    "evaluate",
    "track",
]

SLOW = [  # the longest first
    "test_pipeline",
    "test_own_pipeline",
    "test_wheel",
    "test_servers",
    "test_benchmarks",
    "test_study",
    "test_docs",
    "test_analyse",
    "test_tracking",
    "test_estimator",
    "test_serving",
    "test_review_page",
    "test_audit_page",
]

if "CI" not in os.environ:  # hypothesis has a profile of its own for CI
    hypothesis.settings.register_profile("local", deadline=None)
    hypothesis.settings.load_profile("local")


def pytest_collection_modifyitems(items):
    """Files that take long come first, so that no process is left with one at the end."""
    items.sort(key=lambda item: SLOW.index(item.path.stem) if item.path.stem in SLOW else len(SLOW))
    for item in items:
        if item.path.stem in SLOW:
            item.add_marker("slow")


@pytest.fixture
def params():
    """The committed settings, as plain data to change."""
    return yaml.safe_load((ROOT / "params.yaml").read_text())


class Tiny(Named):
    """A data set of 60 rows, 5 features and 4 labels that follow the features."""

    def __init__(self, **changes):
        super().__init__(60, 5, 4, 1.2, citation="", note="")
        rng = np.random.default_rng(0)
        X = rng.normal(size=(60, 5))
        data = Dataset(
            features=X,
            truth=(X[:, :4] > 0.5).astype(np.uint8),
            candidates=None,
            feature_names=list("abcde"),
            label_names=["rock", "R&B (80s)", "NA", "01"],
            instance_ids=[f"song {i}" for i in range(60)],
        )
        object.__setattr__(self, "data", replace(data, **changes))

    def load(self, get=None):  # noqa: ARG002
        return self.data


@pytest.fixture
def tiny_project(tmp_path, monkeypatch, params):
    """An empty directory whose settings name the tiny data set."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(judging, "TREES", 50)
    monkeypatch.setitem(REGISTRY, "tiny", Tiny())
    params["dataset"]["name"] = "tiny"
    params["noise"]["candidates"] = 2
    params["classifier"]["max_epochs"] = 5
    Path("params.yaml").write_text(yaml.safe_dump(params))
    for file in (ROOT / "models").glob("*/params.yaml"):
        if file.parent.name != "wsc-pml":
            shutil.copytree(file.parent, Path("models") / file.parent.name)
    return tmp_path


@dataclass
class Project:
    """A copy of this project, in a Git repository of its own."""

    path: Path
    env: dict[str, str]

    def run(
        self, *command: str, check: bool = True, **env: str
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            command, cwd=self.path, env=self.env | env, capture_output=True, text=True
        )
        if check and done.returncode:
            pytest.fail(f"{' '.join(command)}\n{done.stdout}\n{done.stderr}")
        return done

    def repro(self, *options: str, **env: str) -> list[str]:
        """Run `dvc repro`; returns the stages that were executed, in the order of the method.

        (DVC itself is free to choose between stages that do not depend on each other.) `identify`
        is left out: it runs where code has changed since the lock was committed.
        """
        lines = self.run("dvc", "repro", *options, **env).stdout.splitlines()
        stages = [line.split("'")[1] for line in lines if line.startswith("Running stage")]
        names = [stage.removeprefix("models/dvc.yaml:") for stage in stages]
        found = [name for name in names if name != "identify"]
        return sorted(found, key=lambda name: STAGES.index(name) if name in STAGES else -1)

    def set(self, section: str | None, key: str, value: object) -> None:
        path = self.path / "params.yaml"
        params = yaml.safe_load(path.read_text())
        (params[section] if section else params)[key] = value
        path.write_text(yaml.safe_dump(params))


@pytest.fixture(scope="module")
def clone(tmp_path_factory) -> Project:
    """What a newcomer has after `git clone`."""
    path = tmp_path_factory.mktemp("project")
    env = {
        k: v
        for k, v in os.environ.items()
        if not k.startswith(("DVC_", "MLFLOW_", "GIT_")) and not k.endswith("_NUM_THREADS")
    }
    env |= {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "DVC_SITE_CACHE_DIR": str(tmp_path_factory.mktemp("site_cache")),
        **{f"GIT_{who}_NAME": "Test" for who in ("AUTHOR", "COMMITTER")},
        **{f"GIT_{who}_EMAIL": "test@example.com" for who in ("AUTHOR", "COMMITTER")},
    }
    project = Project(path, env)
    copy_project(path)
    project.run("git", "init", "--quiet")
    project.run("git", "add", "--all")
    project.run("git", "commit", "--quiet", "--message", "start")
    return project
