"""Learning from decisions: what the answers of a person say of all other candidates.

A label confidence c that was estimated without answers is set right by a logistic regression on the
decided candidates,

    logit P(true) = w . (1, logit c, logit of the chance of being a candidate,
                         frequency and mean confidence of the label) + u_j,   u_j ~ N(0, tau^2),

in which w = (0, 1, 0, 0, 0) leaves everything as it was. The offset u_j of a label is shrunk to
what labels of like frequency and confidence show, and to all labels, as far as the answers say: tau
is averaged over by its evidence. Where no noise was seen the confidence is a guess, and w may be
farther from that. Probabilities are averaged over what is not known of w and u.
"""

import numpy as np
from scipy.special import expit, logit

from wscpml.arrays import Array, Matrix
from wscpml.quality.decisions import Decided

SURE = 1e-3  # confidences are at least so far from 0 and 1 before their logit is taken
TAUS = np.array([0.05, 0.15, 0.3, 0.6, 1.0, 1.6, 2.5])  # deviation of labels' offsets
RARER = -np.log(TAUS)  # log prior: the larger, the rarer, for a few answers are soon misread
USUAL = np.array([0.0, 1.0, 0.0, 0.0, 0.0])  # w that changes nothing
SPREAD = np.array([0.7, 0.2, 0.1, 0.1, 0.1])  # deviation of w from it, where noise was seen
GUESSED = np.array([0.7, 0.5, 0.3, 0.1, 0.1])  # and where none was
OF_LABEL = [0, 1, 3, 4]  # of what is known, all but the chance of being a candidate
STEPS, LONGEST, STILL = 30, 3.0, 1e-8  # of Newton's method; its longest step, and its end


def set_right(
    confidence: Array, chance: Array, candidates: Matrix, decided: Decided, seen: float
) -> tuple[Array, float]:
    """Label confidences in the light of what is decided, and how far labels' offsets are apart.

    Takes the confidence without answers and the chance of being a candidate of each of m
    candidates, row by row, candidates ``(n, q)``, and how far noise was `seen`, 0 ... 1. What is
    decided of other pairs than candidates says nothing here.
    """
    row, label = candidates.nonzero()
    answered, about = _places(row, label, decided, candidates.shape[1])
    if not about.any():
        return confidence, 0.0
    F = _known(confidence, chance, label)
    true = decided.true[about].astype(float)
    spread = seen * SPREAD + (1 - seen) * GUESSED
    about_labels = F[answered], label[answered], true, candidates.shape[1]
    fits = [_Fit(*about_labels, tau, spread) for tau in TAUS]
    evidence = np.array([fit.evidence for fit in fits]) + RARER
    weights = np.exp(evidence - evidence.max())
    weights /= weights.sum()
    right = sum(weight * fit.predict(F, label) for weight, fit in zip(weights, fits, strict=True))
    return right, float(weights @ TAUS)


def _places(row: Array, label: Array, decided: Decided, q: int) -> tuple[Array, Array]:
    """Where decided pairs are among candidates, row by row, and which of them are any."""
    every, asked = row.astype(np.int64) * q + label, decided.row.astype(np.int64) * q
    asked += decided.label
    place = np.minimum(np.searchsorted(every, asked), max(len(every) - 1, 0))
    about = every[place] == asked if len(every) else np.zeros(len(asked), bool)
    return place[about], about


def _known(confidence: Array, chance: Array, label: Array) -> Array:
    """What is known of each of m candidates and of its label, ``(m, 5)``."""
    v = _log_odds(chance)
    return np.insert(known_of_label(confidence, label), 2, v - v.mean(), axis=1)


def known_of_label(confidence: Array, label: Array) -> Array:
    """The same without the chance of being a candidate, ``(m, 4)``."""
    z = _log_odds(confidence)
    counts = np.maximum(np.bincount(label), 1)
    of_label = (np.log(counts), np.bincount(label, z) / counts)
    return np.column_stack([np.ones(len(z)), z, *(_standard(each[label]) for each in of_label)])


def _log_odds(probability: Array) -> Array:
    return np.asarray(logit(np.clip(probability, SURE, 1 - SURE)))


def _standard(values: Array) -> Array:
    return (values - values.mean()) / max(values.std(), 1e-9)


class _Fit:
    """The regression at one tau, by Newton's method, and its evidence, by Laplace's.

    The Hessian of w and u is that of w bordered by a diagonal, which is eliminated.
    """

    def __init__(
        self, F: Array, label: Array, true: Array, q: int, tau: float, spread: Array
    ) -> None:
        of_w, of_u = spread**-2, tau**-2
        w, u = USUAL.copy(), np.zeros(q)
        for _ in range(STEPS):
            p = expit(F @ w + u[label])
            curvature = p * (1 - p)
            gw = F.T @ (true - p) - of_w * (w - USUAL)
            gu = np.bincount(label, true - p, q) - of_u * u
            D = np.bincount(label, curvature, q) + of_u
            C = np.stack([np.bincount(label, curvature * f, q) for f in F.T], axis=1)
            A = (F * curvature[:, None]).T @ F + np.diag(of_w) - (C / D[:, None]).T @ C
            dw = np.linalg.solve(A, gw - C.T @ (gu / D))
            du = (gu - C @ dw) / D
            far = max(abs(dw).max(), abs(du).max())
            length = min(1.0, LONGEST / max(far, STILL))
            w, u = w + length * dw, u + length * du
            if far < STILL:
                break
        self.w, self.u, self.D, self.share = w, u, D, C / D[:, None]
        self.covariance = np.linalg.inv(A)
        eta = F @ w + u[label]
        prior = of_w @ (w - USUAL) ** 2 + of_u * (u @ u)
        volume = np.linalg.slogdet(A)[1] + np.log(D / of_u).sum()
        self.evidence = float((true * eta - np.logaddexp(0, eta)).sum() - (prior + volume) / 2)

    def predict(self, F: Array, label: Array) -> Array:
        """Probabilities ``(m,)``, over what is not known of w and u."""
        along = F - self.share[label]
        variance = np.einsum("ij,jk,ik->i", along, self.covariance, along) + 1 / self.D[label]
        eta = F @ self.w + self.u[label]
        return np.asarray(expit(eta / np.sqrt(1 + np.pi / 8 * variance)))
