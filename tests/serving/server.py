"""A small model in MLflow, and a server of it on loopback."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import mlflow
import numpy as np
import pytest
import requests

from tests.contract import small
from wscpml import WSCPML
from wscpml.quality import judging
from wscpml.serving import tracking
from wscpml.serving.model import Model, save

LABELS = ["rock", "<b>R&B</b>", "NA", "labels"]
FEATURES = [f"feature {j}" for j in range(8)]
SECONDS_TO_START = 120


def make(directory: Path) -> WSCPML:
    """An estimator; its model is in `model` of the directory."""
    X, _, candidates = small(n=60)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judging, "TREES", 50)
        fitted = WSCPML(kind="kernel_ridge", random_state=0).fit(X, candidates)
    save(directory / "model", Model(fitted.map_, fitted.head_, FEATURES, LABELS))
    return fitted


def log(directory: Path) -> tuple[str, str]:
    """The store, and the address of that model in it, as the pipeline logs it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        patch.setenv("DVC_ROOT", str(directory))
        result = tracking.Result(
            name="served",
            params={},
            metrics={},
            tags={},
            courses={},
            files=[],
            tables={},
            texts={},
            model=directory / "model",
            example=np.zeros((2, 8)),
            dataset="none",
            digest="0",
            identity="0",
            source="songs.csv",
            sizes={},
        )
        run_id = tracking.log_run(result, "served")
        (output,) = mlflow.get_run(run_id).outputs.model_outputs
        return tracking.store_uri(), f"models:/{output.model_id}"


@contextmanager
def serving(directory: Path, store: str, model: str) -> Iterator[tuple[str, int]]:
    """The documented command: the address that it answers at, and its process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with (directory / "server.log").open("w") as told:
        server = subprocess.Popen(
            [sys.executable, "-m", "wscpml.serving.scoring", model, "--port", str(port)],
            cwd=directory,
            env=os.environ | {"MLFLOW_TRACKING_URI": store},
            stdout=told,
            stderr=subprocess.STDOUT,
        )
        address = f"http://127.0.0.1:{port}"
        try:
            for _ in range(SECONDS_TO_START):
                try:
                    requests.get(f"{address}/ping", timeout=5)
                    break
                except requests.ConnectionError:
                    assert server.poll() is None, (directory / "server.log").read_text()
                    time.sleep(1)
            yield address, server.pid
        finally:
            server.terminate()
            server.wait(30)
