"""Tables, figures and the report from the cells' files: `python -m experiments.analyse`.

Writes everything that can be had, and then fails if any cell did, with a line for each.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

import yaml

from experiments import ROOT, cells, claims, comparisons, report, tables
from wscpml import artifacts
from wscpml.errors import UserError
from wscpml.methods.wsc_pml import AsPrinted

HERE = ROOT / "experiments"


def all_tables(study: cells.Results, compared: list[comparisons.Comparison]) -> list[tables.Table]:
    """All of them, in the order of the page."""
    return [
        tables.agreement(study),
        tables.features(study),
        *(tables.metric_table(study, metric) for metric in cells.METRICS),
        tables.protocols(study),
        tables.ranks(compared),
        tables.tests(compared),
        tables.wins(study, compared),
        tables.wilcoxon(compared),
        tables.ablation(study),
        tables.sensitivity(study),
        tables.convergence(study, AsPrinted().tolerance),
        tables.cost(study),
        tables.effort(study),
    ]


def what_was_tried() -> dict[str, str]:
    """By benchmark, for the report; see tried.yaml."""
    tried = yaml.safe_load((HERE / "tried.yaml").read_text(encoding="utf-8")) or {}
    if unknown := [name for name in tried if name not in cells.BENCHMARKS]:
        raise UserError(f"experiments/tried.yaml: {unknown[0]}: no such benchmark")
    return tried


def analyse(results: Path, out: Path) -> dict[str, str]:
    """Write `tables` and `report.html` into a directory; returns what failed, by file."""
    tried = what_was_tried()
    study = cells.load(results)
    compared = comparisons.compare_all(study)
    every = all_tables(study, compared)
    page = report.page(study, compared, claims.judge(study, compared), every, tried)
    files: dict[str, Any] = {}
    for table in every:
        if len(table.shown):
            files[f"{table.name}.csv"] = table.csv()
            files[f"{table.name}.md"] = table.markdown()
            files[f"{table.name}.tex"] = table.latex()
    artifacts.write_directory(out / "tables", files)
    artifacts.write(out / "report.html", page)
    return study.failures


def main() -> None:
    """Analyse; exit 1 if a cell failed."""
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("--results", type=Path, default=HERE / "results", metavar="DIR")
    parser.add_argument("--out", type=Path, default=HERE, metavar="DIR")
    options = parser.parse_args()
    try:
        failures = analyse(options.results, options.out)
    except UserError as mistake:
        sys.exit(str(mistake))
    if failures:
        sys.exit("\n".join(f"{file}: {reason}" for file, reason in failures.items()))


if __name__ == "__main__":
    main()
