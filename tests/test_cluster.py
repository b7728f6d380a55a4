"""The method on a Dask cluster: what this machine alone gives, whoever dies on the way."""

import os
import signal
import threading

import numpy as np
import pytest

from wscpml import WSCPML
from wscpml.algorithm import network
from wscpml.errors import UserError
from wscpml.quality import judging

distributed = pytest.importorskip("distributed")


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
    return method.fit(*problem).judged_.label_confidence


class Watched(distributed.Client):
    """A client that does something once so many blocks are done."""

    def once(self, blocks, work):
        self.left, self.work = blocks, work
        return self

    def submit(self, *args, **options):
        future = super().submit(*args, **options)
        future.add_done_callback(self.count)
        return future

    def count(self, _):
        self.left -= 1
        if self.left == 0:
            self.work()


def test_a_fit_on_a_cluster_is_that_of_this_machine_also_when_a_worker_dies(problem):
    here = judged(problem)
    with distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster:
        pid = min(each.pid for each in cluster.workers.values())
        with Watched(cluster).once(3, lambda: os.kill(pid, signal.SIGKILL)) as client:
            there = judged(problem)
            assert client.left < 0
        assert pid not in [each.pid for each in cluster.workers.values()]
        np.testing.assert_allclose(there, here, atol=1e-6)


def test_a_scheduler_that_goes_away_is_a_line(problem):
    one = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(processes=False, **one) as cluster:
        away = threading.Thread(target=cluster.close)
        with (
            Watched(cluster).once(3, away.start),
            pytest.raises(UserError, match="does not answer any more; start it anew"),
        ):
            judged(problem)
        away.join()
