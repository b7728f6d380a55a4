"""An audit of made-up tags, some of which would do harm if they were not shown as text."""

import numpy as np
import pandas as pd

from wscpml.quality import evidence, issues
from wscpml.quality.audit import Audit

HOSTILE = [
    "<img src=x onerror=\"document.title='owned'\">",
    "</script><script>document.title='owned'</script>",
    "=HYPERLINK(\"//example.invalid\",'x')",
    "rock, \"hard\" & 'soft'",
    "jazz\u2028\u2029\u202e",
]


def an_audit(n=70, label_names=(*HOSTILE, "never used"), with_truth=True, likely=None) -> Audit:
    """The confidence of every tag is as `likely` says, or near the truth."""
    rng = np.random.default_rng(0)
    q = len(label_names)
    X = rng.normal(size=(n, 7))
    truth = (X @ rng.normal(size=(7, q)) > 0.4).astype(np.uint8)
    candidates = np.maximum(truth, rng.random((n, q)) < 0.4).astype(np.uint8)
    truth[:, -1] = candidates[:, -1] = 0
    near = np.clip(0.2 + 0.6 * truth + rng.normal(scale=0.15, size=(n, q)), 0.002, 0.998)
    confidence = candidates * (near if likely is None else likely)
    with np.errstate(invalid="ignore"):
        prototypes = (confidence.T @ X) / confidence.sum(axis=0)[:, None]
    ids = pd.Index([HOSTILE[i] if i < len(HOSTILE) else f"song {i}" for i in range(n)])
    names, seen = list(label_names), evidence.gather(X, prototypes, np.ones((n, q)))
    return Audit(
        "A <b>title</b>",
        ids,
        names,
        candidates,
        confidence,
        issues.find(confidence, candidates, seen, names, ids),
        seen,
        truth=truth if with_truth else None,
    )
