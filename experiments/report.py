"""The study as one page that needs nothing else: no network, no script, no other file."""

from pathlib import Path

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from experiments import figures, tables
from experiments.cells import (
    BENCHMARKS,
    DATASETS,
    GROUP_FEATURES,
    HONEST,
    METRICS,
    PRINTED_METRICS,
    WSC,
    Results,
    title,
)
from experiments.claims import FAILS, HOLDS, UNTESTED, Claim
from experiments.comparisons import GROUPS, PROTOCOLS, Comparison
from wscpml.datasets.registry import REGISTRY
from wscpml.methods.wsc_pml import AsPrinted

NO_FIGURES = {"n/a": "quiet", "missing": "quiet", "failed": "failed"}  # how each looks
VERDICTS = {HOLDS: "hold", FAILS: "do not hold", UNTESTED: "could not be tested"}


def page(
    study: Results,
    comparisons: list[Comparison],
    claims: list[Claim],
    all_tables: list[tables.Table],
    tried: dict[str, str],
) -> str:
    """The whole page; `tried` says what was tried where we are far from the paper."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["table"] = table
    apart = pd.DataFrame(
        {name: study.difference("average_precision", name) for name in (WSC, GROUP_FEATURES)}
    )
    outside = apart[(apart.abs() > 1).any(axis=1)]
    available = [name for name in BENCHMARKS if name not in study.absent]
    return environment.get_template("report.html.j2").render(
        study=study,
        tables={each.name: each for each in all_tables},
        claims=claims,
        counts={
            told: sum(claim.verdict == verdict for claim in claims)
            for verdict, told in VERDICTS.items()
        },
        folds=_counted(study, "folds"),
        seeds=_counted(study, "seed"),
        notes={
            name: REGISTRY[DATASETS[name]].note
            for name in BENCHMARKS
            if "a subset" in REGISTRY[DATASETS[name]].note and name in study.measured
        },
        missing={
            title(name): ", ".join(gaps) if len(gaps) < len(available) else "all benchmarks"
            for name, gaps in study.missing.items()
        },
        far={
            name: ([tables.signed(value) or "missing" for value in row], tried.get(name))
            for name, row in zip(outside.index, outside.to_numpy(), strict=True)
        },
        beyond=beyond(study),
        diagrams=[
            (group, protocol, _diagrams(comparisons, group, protocol))
            for group, protocol in zip(GROUPS, PROTOCOLS, strict=True)
        ],
        heat_maps={
            name: figures.svg(figures.heat_map(study, name))
            for name in BENCHMARKS
            if name in set(study.grid.benchmark)
        },
        courses=_courses(study),
        costs={axis: figures.svg(figures.cost(axis, sizes)) for axis, sizes in study.cost.items()},
        metrics=METRICS,
        printed_metrics=PRINTED_METRICS,
    )


def table(each: tables.Table) -> Markup:
    """A table as HTML; what is in brackets goes below, in small print."""
    bold = each.bold if each.bold is not None else each.shown.map(lambda _: False)
    head = Markup("").join(Markup("<th>{}</th>").format(name) for name in each.shown)
    rows = []
    for texts, marks in zip(each.shown.to_numpy(), bold.to_numpy(), strict=True):
        cells = [Markup("<th>{}</th>").format(texts[0])]
        for text, mark in zip(texts[1:], marks[1:], strict=True):
            ours, bracket, rest = text.partition(" [")
            inside = Markup("<b>{}</b>").format(ours) if mark else escape(ours)
            if ours in NO_FIGURES:
                inside = Markup('<span class="{}">{}</span>').format(NO_FIGURES[ours], ours)
            if bracket:
                inside += Markup(" <small>[{}</small>").format(rest)
            cells.append(Markup("<td>{}</td>").format(inside))
        rows.append(Markup("").join(cells))
    lines = Markup("\n").join(Markup("<tr>{}</tr>").format(row) for row in rows)
    return Markup(
        '<div class="wide"><table>\n<thead><tr>{}</tr></thead>\n<tbody>\n{}\n</tbody></table></div>'
    ).format(head, lines)


def _counted(study: Results, column: str) -> str:
    counts = study.cells[column].value_counts().sort_index()
    if len(counts) == 1:
        return str(counts.index[0])
    return ", ".join(f"{value} in {count} cells" for value, count in counts.items())


def _diagrams(comparisons: list[Comparison], group: str, protocol: str) -> list[dict[str, object]]:
    return [
        {
            "metric": METRICS[c.metric].title,
            "benchmarks": len(c.scores),
            "methods": c.scores.shape[1],
            "left_out": [title(name) for name in c.left_out],
            "image": figures.svg(figures.critical_differences(c)) if c.testable else None,
        }
        for c in comparisons
        if (c.group, c.protocol) == (group, protocol)
    ]


def _courses(study: Results) -> dict[str, str]:
    """A picture per data set."""
    by_dataset: dict[str, dict[str, pd.DataFrame]] = {}
    for benchmark in BENCHMARKS:
        if benchmark in study.convergence:
            by_dataset.setdefault(DATASETS[benchmark], {})[benchmark] = study.convergence[benchmark]
    tolerance = AsPrinted().tolerance
    return {
        dataset: figures.svg(figures.convergence(courses, dataset, tolerance))
        for dataset, courses in by_dataset.items()
    }


def beyond(study: Results) -> list[str]:
    """What the paper does not ask: plain methods, choosing without the truth, the ceiling."""
    means = study.means("average_precision")
    lines = []
    for entry, protocol in ((WSC, "paper"), (HONEST, "honest")):
        for rival in ("br", "krr-c", "rf-c"):
            both = means[[entry, rival]].dropna()
            if len(both):
                ahead = int((both[entry] > both[rival]).sum())
                lines.append(
                    f"By the {protocol} protocol WSC-PML has a higher average precision than "
                    f"{title(rival)} on {ahead} of {len(both)} benchmarks; "
                    f"mean difference {(both[entry] - both[rival]).mean():+.3f}."
                )
    both = means[[WSC, HONEST]].dropna()
    if len(both):
        cost = (both[WSC] - both[HONEST]).mean()
        lines.append(
            f"Choosing alpha and beta on the test folds, as the paper's protocol does, is worth "
            f"{cost:+.3f} of average precision, the mean over {len(both)} benchmarks."
        )
    ceiling = means[[WSC, "oracle"]].dropna()
    if len(ceiling):
        gap = (ceiling["oracle"] - ceiling[WSC]).mean()
        lines.append(
            f"Trained on the true labels, the same networks (Oracle) are {gap:+.3f} ahead, the "
            f"mean over {len(ceiling)} benchmarks."
        )
    return lines
