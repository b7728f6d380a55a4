"""Methods against each other over the benchmarks where all of them were measured."""

from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from experiments.cells import HONEST, LEARNERS, METRICS, SEVEN, WSC, Results
from wscpml.evaluation import statistics

THE_PAPERS, ALL = "the paper's seven", "all but Oracle"  # which is no rival but the ceiling
GROUPS = {THE_PAPERS: SEVEN, ALL: LEARNERS}
PROTOCOLS = {"paper": WSC, "honest": HONEST}  # whose figures WSC-PML stands with


@dataclass(frozen=True)
class Comparison:
    """Of some methods by one metric; WSC-PML is its column by the protocol."""

    group: str
    protocol: str
    metric: str
    scores: pd.DataFrame  # a row per benchmark that all methods have
    left_out: list[str]  # methods with figures on less than half of the benchmarks

    @property
    def testable(self) -> bool:
        """Whether there is enough for rank tests, and WSC-PML among it."""
        return WSC in self.scores and self.scores.shape[1] >= 3 and len(self.scores) >= 2

    @property
    def methods(self) -> list[str]:
        """Those compared."""
        return [str(name) for name in self.scores]

    @property
    def rivals(self) -> list[str]:
        """The other methods."""
        return [name for name in self.methods if name != WSC]

    @cached_property
    def ranks(self) -> pd.Series:
        """Mean rank of each method."""
        return statistics.ranks(self.scores, METRICS[self.metric].higher_is_better).mean()

    @cached_property
    def friedman(self) -> statistics.Friedman:
        """Whether any differ."""
        return statistics.friedman(self.scores)

    @cached_property
    def critical_difference(self) -> float:
        """Of mean ranks."""
        return statistics.critical_difference(self.scores.shape[1], len(self.scores))

    @cached_property
    def nemenyi(self) -> pd.DataFrame:
        """p-values of all pairs."""
        return statistics.nemenyi(self.scores)

    @cached_property
    def wilcoxon(self) -> pd.DataFrame:
        """p-values of all pairs, with Holm's correction."""
        return statistics.wilcoxon_holm(self.scores)

    @property
    def beaten(self) -> list[str]:
        """Rivals whose mean rank is significantly worse than WSC-PML's, by Nemenyi's test."""
        reach = self.ranks[WSC] + self.critical_difference
        return [name for name in self.rivals if self.ranks[name] > reach]

    @property
    def best(self) -> pd.Series:
        """In how many benchmarks each method has the best figure, alone or with others."""
        higher = METRICS[self.metric].higher_is_better
        top = self.scores.max(axis=1) if higher else self.scores.min(axis=1)
        return self.scores.eq(top, axis=0).sum()


def compare(study: Results, group: str, protocol: str, metric: str) -> Comparison:
    """The methods of a group that have figures on half of the benchmarks measured, or more."""
    means = study.means(metric)
    names = {PROTOCOLS[protocol] if name == WSC else name: name for name in GROUPS[group]}
    table = means.loc[study.measured, list(names)].rename(columns=names)
    enough = 2 * table.notna().sum() >= max(len(table), 1)
    return Comparison(
        group,
        protocol,
        metric,
        scores=table.loc[:, enough].dropna(),
        left_out=[name for name in names.values() if not enough[name]],
    )


def compare_all(study: Results) -> list[Comparison]:
    """Both groups under both protocols, by all metrics."""
    return [
        compare(study, group, protocol, metric)
        for group in GROUPS
        for protocol in PROTOCOLS
        for metric in METRICS
    ]
