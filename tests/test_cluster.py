"""The method on a Dask cluster: what this machine alone gives, whoever dies on the way."""

import os
import signal
from pathlib import Path

import numpy as np
import pytest

from wscpml import WSCPML
from wscpml.algorithm import network
from wscpml.errors import UserError
from wscpml.quality import judging

distributed = pytest.importorskip("distributed")

MARK = Path("killed")


@pytest.fixture
def problem(monkeypatch, tmp_path):
    """So few rows are learned from that the others are judged block by block."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(network, "START_ROWS", 200)
    monkeypatch.setattr(judging, "TREES", 20)
    monkeypatch.setattr(judging, "ROWS_AT_ONCE", 50)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 5))
    truth = X @ rng.normal(size=(5, 4)) > 0.3
    return X, (truth | (rng.random(truth.shape) < 0.3)).astype(np.uint8)


def judged(problem, **given):
    method = WSCPML(kind="kernel_ridge", random_state=0, **given)
    found = method.fit(*problem).judged_
    return found.label_confidence if found.missing is None else found.missing


class Deadly(distributed.Client):
    """A client one of whose blocks kills the first worker that takes it."""

    deadly = 150

    def submit(self, work, sent, block, **options):
        mark = MARK.absolute()

        def deadly(sent, block, at=self.deadly):
            if block.start == at and not mark.exists():
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return work(sent, block)

        return super().submit(deadly, sent, block, **options)


def test_a_fit_on_a_cluster_is_that_of_this_machine_also_when_a_worker_dies(problem):
    here, missing = judged(problem), judged(problem, complete=False)
    with (
        distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Deadly(cluster),
    ):
        for worker in cluster.workers.values():
            worker.auto_restart = False  # the other one does its blocks
        there, missing_there = judged(problem), judged(problem, complete=False)
    assert MARK.exists()
    np.testing.assert_allclose(there, here, atol=1e-6)
    np.testing.assert_allclose(missing_there, missing, atol=1e-6)


class Left(distributed.Client):
    """A client whose scheduler goes away once it has got some blocks."""

    blocks = 0

    def submit(self, *args, **options):
        self.blocks += 1
        if self.blocks == 4:
            self.cluster.close()
        return super().submit(*args, **options)


def test_a_scheduler_that_goes_away_is_a_line(problem):
    one = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        distributed.LocalCluster(processes=False, **one) as cluster,
        Left(cluster) as client,
        pytest.raises(UserError, match="does not answer any more; start it anew"),
    ):
        judged(problem)
    assert client.blocks >= 4
