"""Noise that differs from row to row, as where some people who tag are careless.

A row that has more of the other labels than its features foretell was probably tagged by somebody
who gives more, and then a false label, too, is given to it with a higher chance. With predictions P
that have not seen the row, and R = Y - P,

    P(Y_ij = 1) = P_ij + slope (1 - P_ij) sum_{k != j} R_ik

with one slope, by least squares. True labels that go together tell of each other as well, but each
of some and against others: rates are taken to differ from row to row as far as the sum of all
others alone tells what the other labels tell one by one (`noise_model.Others`). And some rows truly
have more labels than their features tell: these they have of labels that are likely, as
P_ij (1 - P_ij), and not of all labels that are false. Beside that the slope must be more than by
chance.
"""

from dataclasses import dataclass

import numpy as np

from wscpml.arrays import Array, pair_blocks

CHANCE = 10.0  # chi-square of a slope that may be by chance
SOME, MOST = 0.1, 0.3  # share of what others tell from which, and up to which, rows count
LEAST = 0.1  # of the mean rate that a row's is at least
HIGHEST = 0.95  # rate of a row
TINY = 1e-12


@dataclass(frozen=True)
class Taggers:
    """What the number of a row's other labels tells of its noise."""

    slope: float
    weight: float  # how far rates differ from row to row, 0 ... 1
    ones: Array  # (k,), the labels that testify
    back: Array  # (q,), which of these each label is
    heard: Array  # (k,), how far it testifies, and is told of

    def added(self, P: Array, Y: Array) -> Array:
        """The chance that is added to false labels of some rows, by predictions P of Y ``(b, q)``.

        Each label's is by the other labels alone.
        """
        beyond = _of_others((Y - P)[:, self.ones] * self.heard)
        return (self.weight * self.slope * self.heard * beyond)[:, self.back]

    def taken_from(self, scores: Array, P: Array, Y: Array, told: Array) -> Array:
        """Scores ``(b, q)`` by features and other labels, without what these tell of taggers.

        Each label has been told so far by the others, ``(q,)``.
        """
        found = np.empty(scores.shape)
        for rows in pair_blocks(*P.shape):
            p = P[rows]
            found[rows] = scores[rows] - told * (1 - p) * self.added(p, Y[rows])
        return found


def believed(confidence: Array, added: Array, rate: float, seen: float) -> Array:
    """Label confidences in the light of the row's own rate, where noise is `seen`, 0 ... 1.

    Takes what is `added`, for each confidence, to the mean `rate` of all labels: as many times as
    the row's rate is that one, the odds against each of its candidates are.
    """
    times = np.clip(1 + added / rate, LEAST, max(HIGHEST / rate, 1)) ** seen
    return confidence / (confidence + (1 - confidence) * times)


def learn(P: Array, Y: Array, scores: Array, first: Array, heard: Array) -> Taggers | None:
    """Whether rates differ from row to row, and how; None if they do not.

    Takes predictions P of Y, by features alone, and scores by other labels too, all ``(n, q)``. Of
    labels that are given to the same rows only the ``first (q,)`` testifies, and each as far as it
    is `heard` ``(q,)``.
    """
    ones, back = np.unique(first, return_inverse=True)
    heard, along, square, before, after = heard[ones], np.zeros(2), TINY * np.eye(2), 0.0, 0.0
    for rows in pair_blocks(*P.shape):
        p, y = P[rows][:, ones], Y[rows][:, ones]
        R, left = y - p, y - scores[rows][:, ones]
        x = (1 - p) * _of_others(R * heard) * heard
        both = x, p * x
        along += [(each * R * heard).sum() for each in both]
        square += [[(one * other * heard).sum() for other in both] for one in both]
        before, after = before + (R**2 * heard).sum(), after + (left**2 * heard).sum()
    slope = along[0] / square[0, 0]
    told = slope * along[0] / max(before - after, TINY)
    weight = float(np.clip((told - SOME) / (MOST - SOME), 0, 1))
    inverse, error = np.linalg.inv(square), before / (len(P) * max(heard.sum(), TINY))
    of_noise = (inverse @ along)[0]
    if not weight or of_noise < np.sqrt(CHANCE * error * inverse[0, 0]):
        return None
    return Taggers(float(slope), weight, ones, back, heard)


def _of_others(R: Array) -> Array:
    """The sum of each row without the label itself, ``(n, k)``."""
    return np.asarray(R.sum(axis=1, keepdims=True) - R)
