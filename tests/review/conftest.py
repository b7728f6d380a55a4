import numpy as np
import pytest

from wscpml.quality import queue


@pytest.fixture(autouse=True)
def _most_suspicious_first(monkeypatch):
    """These tests are about what is done with the queue, not about its order."""

    def choose(label_confidence, candidates, decided, k, rng):
        row, label = np.nonzero((candidates == 1) & ~decided.among(candidates.shape))
        first = np.argsort(label_confidence[row, label], kind="stable")[:k]
        return row[first], label[first]

    monkeypatch.setattr(queue, "choose", choose)
