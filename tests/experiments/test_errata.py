import re

import pytest

from experiments import errata
from experiments.paper import printed
from tests.conftest import ROOT

PAGE = (ROOT / "docs/errata.md").read_text()


@pytest.mark.parametrize("number", range(1, len(errata.ERRATA) + 1))
def test_the_page_quotes_what_the_command_prints(number, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["errata", str(number)])
    errata.main()
    quoted = f"```\n$ python -m experiments.errata {number}\n{capsys.readouterr().out}```\n"
    assert quoted in PAGE


def test_the_page_has_every_erratum_and_no_other():
    headings = re.findall(r"^## (\d+)\. (.*)$", PAGE, re.MULTILINE)
    assert headings == [(str(i), title) for i, title in enumerate(errata.ERRATA, 1)]


def test_the_exact_memberships_cost_least_of_those_that_obey_the_constraint():
    exact, as_printed, constrained = errata.membership_step()[1:4]
    assert "sum pi f = 1.000" in exact
    assert "sum pi f = 1.000" in constrained
    assert "sum pi f = 1.000" not in as_printed
    cost = [float(line.rpartition(" ")[2]) for line in (exact, constrained)]
    assert cost[0] < cost[1]


def test_a_better_match_gets_a_lower_pseudo_label():
    f = [float(line.rpartition(" ")[2]) for line in errata.pseudo_label_step()[1:]]
    assert f == sorted(f, reverse=True)
    assert f[0] > 2 * f[-1]


def test_the_ablations_birds_row_is_that_of_another_setting():
    full, main = printed("ablation"), printed("average_precision")
    same = full["Full mean"] == main["WSC-PML mean"].reindex(full.index)
    assert same[~same].index.tolist() == ["birds-5"]
    assert full.loc["birds-5", "Full mean"] == main.loc["birds-4", "WSC-PML mean"]
