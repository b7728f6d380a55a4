"""What the votes of several taggers say of a candidate, beside the features.

A label confidence c that was found without votes is the chance that a candidate is true. With g1
and g0 the shares of true and of false candidates that have just its votes, its odds with them are

    c g1 / ((1 - c) g0).

Both shares are found without the truth, by expectation and maximisation at the chances c: those of
all labels, and by them each label's own. What they add to the likelihood of the votes has to be
more than chance would (`beyond_chance`), so that votes which have nothing to do with what the
features say change nothing. More votes never speak against a candidate.
"""

from typing import Any

import numpy as np
from scipy import sparse

from wscpml.arrays import Array, Matrix
from wscpml.parameters import ParameterError

CLASSES, FEWEST = 8, 20  # of votes, at most; candidates that a class has at least
BINS = 50  # of confidence
ROUNDS = 100
PRIOR = 20.0  # candidates that the shares which others are shrunk to count for
SURE = 1e-3  # confidences are at least so far from 0 and 1


def with_votes(confidence: Array, votes: Array, label: Array) -> Array:
    """Label confidences ``(m,)`` of candidates in the light of their votes ``(m,)``.

    Only the order of votes counts. Takes the number of each one's label, too.
    """
    kind = classes(votes)
    if not kind.any():
        return confidence
    c = np.clip(confidence, SURE, 1 - SURE)
    every = np.bincount(kind) / len(kind)
    q, degrees = int(label.max()) + 1, len(every) - 1
    counts = counted(c, kind, label, (q, len(every)))
    common, gain = shares(counts.sum(axis=0, keepdims=True), np.array([[every], [every]]))
    own, more = shares(counts, np.repeat(common, q, axis=1))
    of_all, of_each = log_ratios(common), log_ratios(own)
    ratios = beyond_chance(gain, degrees) * of_all
    ratios = ratios + beyond_chance(more, degrees * q) * (of_each - ratios)
    odds = c / (1 - c) * np.exp(ratios[label, kind])
    return odds / (1 + odds)


def classes(votes: Array) -> Array:
    """Which class of votes each candidate is in, ``(m,)``, from 0 on, in their order.

    Equal votes are in one class, and no class has few candidates.
    """
    values, place, counts = np.unique(votes, return_inverse=True, return_counts=True)
    least = max(FEWEST, len(votes) / (2 * CLASSES))
    kind, filled, left = np.zeros(len(values), int), 0, len(votes)
    for i, here in enumerate(counts):
        if filled >= least and left >= least:
            kind[i:] += 1
            filled = 0
        filled, left = filled + here, left - here
    return kind[place]


def counted(c: Array, kind: Array, label: Array, shape: tuple[int, int]) -> Array:
    """How many of each label's candidates have votes of a class and a confidence, ``(q, K, B)``."""
    q, count = shape
    bins = np.minimum((c * BINS).astype(int), BINS - 1)
    place = (label * count + kind) * BINS + bins
    return np.bincount(place, minlength=q * count * BINS).reshape(q, count, BINS)


def shares(counts: Array, prior: Array) -> tuple[Array, float]:
    """Shares of each label's true and false candidates in each class of votes, ``(2, q, K)``.

    The counts are those of `counted`. The shares that are expected before, the prior, are of the
    same shape, and where it begins. Also gives what is added to the log likelihood of the votes.
    """
    c = (np.arange(BINS) + 0.5) / BINS

    def likelihoods(shares: Array) -> Array:
        return np.stack([c, 1 - c])[:, None, None] * shares[..., None]  # (2, q, K, B)

    found = prior
    for _ in range(ROUNDS):
        each = likelihoods(found)
        found = (counts * each / each.sum(axis=0)).sum(axis=-1) + PRIOR * prior
        found /= found.sum(axis=-1, keepdims=True)
    after, before = ((counts * np.log(likelihoods(of).sum(axis=0))).sum() for of in (found, prior))
    return found, float(after - before)


def beyond_chance(gain: float, degrees: int) -> float:
    """The part of an effect that is left when chance is taken off (James and Stein), 0 ... 1.

    By chance the log likelihood rises by half of the degrees of freedom.
    """
    return max(0.0, 1 - degrees / (2 * gain)) if gain > 0 else 0.0


def log_ratios(shares: Array) -> Array:
    """How much likelier votes are of true than of false candidates, ``(q, K)``, never falling."""
    from sklearn.isotonic import isotonic_regression

    ratios = np.log(shares[0] / shares[1])
    return np.array(
        [
            isotonic_regression(each, sample_weight=weight)
            for each, weight in zip(ratios, shares.sum(axis=0), strict=True)
        ]
    )


def checked(votes: Matrix, candidates: Matrix, rows: Any, columns: Any) -> sparse.csr_array:
    """Votes ``(n, q)``, dense or sparse: above 0 for candidates, and nothing for other labels.

    Rows and columns have names for messages, or None.
    """
    if votes.shape != candidates.shape:
        given, wanted = (" x ".join(map(str, each.shape)) for each in (votes, candidates))
        raise ParameterError(f"votes: is {given}, and must be {wanted}, as the candidates are")
    if votes.dtype.kind not in "fiub":
        raise ParameterError(f"votes: must hold numbers alone, got {votes.dtype}")
    found = sparse.csr_array(votes, dtype=np.float64, copy=True)
    found.data[np.isnan(found.data)] = 0
    found.eliminate_zeros()
    wrong = (found != 0) != (sparse.csr_array(candidates) != 0)
    odd = found.copy()
    odd.data = ~(np.isfinite(odd.data) & (odd.data > 0))
    pairs = np.transpose((wrong + odd).nonzero())
    if len(pairs):
        i, j = pairs[np.lexsort(pairs.T[::-1])[0]]
        row, column = i if rows is None else rows[i], j if columns is None else columns[j]
        must = "above 0, for it is a candidate" if candidates[i, j] else "0, for it is no candidate"
        raise ParameterError(
            f"votes: row {row!r}, column {column!r}: must be {must}, got "
            f"{sparse.csr_array(votes)[i, j]:g}"
        )
    return found
