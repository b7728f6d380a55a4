import numpy as np
import pytest

from wscpml.quality import queue


@pytest.fixture(autouse=True)
def _most_suspicious_first(monkeypatch):
    """These tests are about what is done with the queue, not about its order."""

    def choose(label_confidence, candidates, decided, size, lottery):
        row, label = np.nonzero(decided.undecided(candidates))
        first = np.argsort(label_confidence[row, label], kind="stable")[:size]
        return queue.Queue(row[first], label[first], np.zeros(len(first), bool))

    monkeypatch.setattr(queue, "choose", choose)
