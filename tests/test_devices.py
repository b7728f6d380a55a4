import os

import pytest

from wscpml import devices


@pytest.mark.parametrize(("said", "cores"), [("1", 1), ("2", 2), ("9", 4), ("", 4), ("0", 4)])
def test_a_process_takes_no_more_cores_than_it_is_allowed(monkeypatch, said, cores):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(4)), raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", said)
    assert devices.cores() == cores
