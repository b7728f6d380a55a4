"""Random small problems for the property tests."""

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from wscpml.algorithm import prototypes, weak_supervision
from wscpml.arrays import Array


@dataclass
class Problem:
    X: Array
    candidates: Array
    weak_supervision: Array
    rng: np.random.Generator


@st.composite
def label_matrices(draw: st.DrawFn, max_rows: int = 12, max_labels: int = 6) -> Array:
    """0/1 matrices, with the corners drawn often: empty and full rows, empty and full columns."""
    n, q = draw(st.integers(2, max_rows)), draw(st.integers(1, max_labels))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    labels = (rng.random((n, q)) < draw(st.sampled_from([0.1, 0.5, 0.9]))).astype(np.uint8)
    if draw(st.booleans()):
        labels[draw(st.integers(0, n - 1))] = draw(st.integers(0, 1))
    if draw(st.booleans()):
        labels[:, draw(st.integers(0, q - 1))] = draw(st.integers(0, 1))
    return labels


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Features, some of them equal rows, with candidates and the paper's weak supervision."""
    candidates = draw(label_matrices())
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.normal(size=(len(candidates), draw(st.integers(1, 4)))) * draw(
        st.sampled_from([1e-3, 1.0, 30.0])
    )
    if draw(st.booleans()):
        X[:2] = X[-1]
    positive, negative = prototypes.learn(X, candidates)
    B = weak_supervision.build(X, candidates, positive, negative, "adaptive")
    return Problem(X, candidates, B, rng)
