"""Rank tests over many data sets (Demšar, JMLR 7, 2006), by SciPy and scikit-posthocs.

`scores` is a table with a row per benchmark and a column per method, without gaps.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

LEVEL = 0.05


@dataclass(frozen=True)
class Friedman:
    """Whether any of the methods differ."""

    benchmarks: int
    methods: int
    chi_square: float  # corrected for ties
    p: float  # of that
    f_f: float  # Iman and Davenport's F_F; as is the custom, without the correction
    critical_f: float


def ranks(scores: pd.DataFrame, higher_is_better: bool) -> pd.DataFrame:
    """Rank of each method in each benchmark: 1 is the best, equal ones share their mean rank."""
    return scores.rank(axis=1, ascending=not higher_is_better)


def friedman(scores: pd.DataFrame) -> Friedman:
    """Friedman's test and F_F of three methods or more; which direction is better is no matter."""
    from scipy import stats

    n, k = scores.shape
    with np.errstate(invalid="ignore"):  # all scores equal: 0 / 0
        chi_square, p = stats.friedmanchisquare(*scores.to_numpy().T)
    mean_ranks = ranks(scores, True).mean()
    plain = 12 * n / (k * (k + 1)) * float((mean_ranks**2).sum() - k * (k + 1) ** 2 / 4)
    rest = n * (k - 1) - plain
    f_f = (n - 1) * plain / rest if rest > 1e-9 else np.inf
    critical = float(stats.f.isf(LEVEL, k - 1, (k - 1) * (n - 1)))
    return Friedman(n, k, float(chi_square), float(p), f_f, critical)


def critical_difference(methods: int, benchmarks: int) -> float:
    """Nemenyi's: mean ranks that differ by more are significantly different."""
    from scipy import stats

    q = stats.studentized_range.isf(LEVEL, methods, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(methods * (methods + 1) / (6 * benchmarks)))


def nemenyi(scores: pd.DataFrame) -> pd.DataFrame:
    """p-value of every pair by Nemenyi's test."""
    import scikit_posthocs

    return scikit_posthocs.posthoc_nemenyi_friedman(scores)


def wilcoxon_holm(scores: pd.DataFrame) -> pd.DataFrame:
    """p-value of every pair by Wilcoxon's signed-rank test, with Holm's correction for all pairs.

    Ranks of benchmarks where two methods are equal are split between them.
    """
    import scikit_posthocs

    return scikit_posthocs.posthoc_wilcoxon(
        scores.melt(var_name="method", value_name="score"),
        val_col="score",
        group_col="method",
        zero_method="zsplit",
        p_adjust="holm",
    )
