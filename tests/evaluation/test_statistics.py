from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from tests.conftest import ROOT
from wscpml.evaluation import statistics


def printed(metric: str) -> pd.DataFrame:
    """The seven methods' printed means of a metric."""
    table = pd.read_csv(ROOT / f"docs/paper/{metric}.csv")
    return table.filter(like=" mean").rename(columns=lambda name: name.removesuffix(" mean"))


@pytest.mark.parametrize(("metric", "f_f"), [("average_precision", 26.05), ("ranking_loss", 21.08)])
def test_F_of_the_papers_own_tables(metric, f_f):
    found = statistics.friedman(printed(metric))
    assert (found.benchmarks, found.methods) == (24, 7)
    assert found.f_f == pytest.approx(f_f, abs=0.005)
    assert found.critical_f == pytest.approx(2.1649, abs=5e-5)
    assert found.p < 1e-9


def test_the_critical_difference_of_seven_methods_on_24_benchmarks():
    assert statistics.critical_difference(7, 24) == pytest.approx(1.8386, abs=5e-5)


def test_one_is_the_best_rank_and_equal_scores_share_theirs():
    scores = pd.DataFrame({"a": [0.9, 0.5], "b": [0.8, 0.5], "c": [0.7, 0.1]})
    assert statistics.ranks(scores, True).to_numpy().tolist() == [[1, 2, 3], [1.5, 1.5, 3]]
    assert statistics.ranks(scores, False).to_numpy().tolist() == [[3, 2, 1], [2.5, 2.5, 1]]


def test_wsc_pml_has_the_best_mean_rank_of_the_papers_own_tables():
    for metric, higher in (("average_precision", True), ("ranking_loss", False)):
        mean_ranks = statistics.ranks(printed(metric), higher).mean()
        assert mean_ranks.idxmin() == "WSC-PML"
        assert mean_ranks.sum() == pytest.approx(28)


def test_nemenyi_agrees_with_the_critical_difference():
    scores = printed("average_precision")
    p = statistics.nemenyi(scores)
    mean_ranks = statistics.ranks(scores, True).mean()
    apart = np.abs(np.subtract.outer(mean_ranks.to_numpy(), mean_ranks.to_numpy()))
    assert ((p.to_numpy() < 0.05) == (apart > statistics.critical_difference(7, 24))).all()
    assert p.loc["WSC-PML", "PML-fp"] < 0.05 < p.loc["NLR", "PML-NI"]


def test_holm_multiplies_the_smallest_p_by_the_number_of_pairs():
    scores = printed("average_precision")
    p = statistics.wilcoxon_holm(scores)
    pairs = combinations(scores, 2)
    alone = [stats.wilcoxon(scores[a], scores[b], zero_method="zsplit").pvalue for a, b in pairs]
    assert p.min(axis=None) == pytest.approx(21 * min(alone))
    assert p.equals(p.T)


def test_methods_that_are_equal_everywhere_do_not_differ():
    column = np.linspace(0.5, 0.8, 12)
    scores = pd.DataFrame({"a": column, "b": column, "c": column})
    assert (statistics.wilcoxon_holm(scores) == 1).all(axis=None)
    assert (statistics.nemenyi(scores) > 0.99).all(axis=None)
    assert statistics.friedman(scores).f_f == 0


def test_methods_in_the_same_order_everywhere_have_an_infinite_F():
    scores = pd.DataFrame({"a": [0.9, 0.8], "b": [0.8, 0.7], "c": [0.7, 0.6]})
    assert statistics.friedman(scores).f_f == np.inf
