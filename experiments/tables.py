"""The study's tables: for programs as CSV, for people as Markdown, LaTeX and HTML."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from experiments.cells import (
    BENCHMARKS,
    GROUP_FEATURES,
    HONEST,
    LEARNERS,
    METRICS,
    PAIR,
    PRINTED_METRICS,
    SEVEN,
    VARIANTS,
    WSC,
    Results,
    title,
)
from experiments.comparisons import ALL, PROTOCOLS, THE_PAPERS, Comparison
from experiments.paper import PRINTED_AS, in_print, printed
from wscpml.methods import METHODS

ENTRIES = [WSC, HONEST, *(name for name in METHODS if name != WSC)]
MODERATE = (0.1, 1.0, 10.0)  # alpha and beta, where the paper says that the best is


@dataclass(frozen=True)
class Table:
    """One table, twice."""

    name: str
    title: str
    note: str
    data: pd.DataFrame  # figures
    shown: pd.DataFrame  # text
    bold: pd.DataFrame | None = None  # which text is the best, in the form of `shown`

    def marked(self, before: str, after: str) -> pd.DataFrame:
        """The text with the best between two marks."""
        if self.bold is None:
            return self.shown
        return self.shown.where(~self.bold, before + self.shown + after)

    def csv(self) -> pd.DataFrame:
        """Figures to six digits, without the noise of the last bits."""
        return self.data.map(lambda value: round(value, 6) if isinstance(value, float) else value)

    def markdown(self) -> str:
        """A heading, the table and its note."""
        return f"# {self.title}\n\n{markdown(self.marked('**', '**'))}\n\n{self.note}\n"

    def latex(self) -> str:
        """A `tabular` for the package booktabs, with the note as a comment."""
        text = self.shown.map(_latex)
        if self.bold is not None:
            text = text.where(~self.bold, r"\textbf{" + text + "}")
        rows = [" & ".join(row) + r" \\" for row in text.itertuples(index=False)]
        return "\n".join(
            [
                f"% {self.title}",
                *(f"% {line}" for line in self.note.splitlines()),
                rf"\begin{{tabular}}{{l{'c' * (text.shape[1] - 1)}}}",
                r"\toprule",
                " & ".join(_latex(str(name)) for name in text) + r" \\",
                r"\midrule",
                *rows,
                r"\bottomrule",
                r"\end{tabular}",
                "",
            ]
        )


def markdown(text: pd.DataFrame) -> str:
    """A table of text as Markdown."""
    rows: list[list[str]] = [
        list(map(str, text)),
        ["---"] * text.shape[1],
        *text.to_numpy().tolist(),
    ]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _latex(text: str) -> str:
    for sign in "&%$#_{}":
        text = text.replace(sign, "\\" + sign)
    for sign, code in (("±", r"$\pm$"), ("χ²", r"$\chi^2$"), ("<", "$<$")):
        text = text.replace(sign, code)
    return text


def _frame(rows: Iterable[Mapping[str, object]]) -> pd.DataFrame:
    return pd.DataFrame(list(rows))


def metric_table(study: Results, metric: str) -> Table:
    """Every method on every benchmark, beside the paper's figures where it prints them."""
    means, deviations = study.means(metric), study.deviations(metric)
    data = pd.DataFrame({"benchmark": BENCHMARKS}, index=BENCHMARKS)
    shown = data.copy()
    for entry in ENTRIES:
        name = title(entry)
        data[f"{name} mean"], data[f"{name} std"] = means[entry], deviations[entry]
        text = [
            study.state(benchmark, entry)
            if np.isnan(means.loc[benchmark, entry])
            else _plus_minus(means.loc[benchmark, entry], deviations.loc[benchmark, entry])
            for benchmark in BENCHMARKS
        ]
        if metric in PRINTED_METRICS and entry in [*SEVEN, HONEST]:
            paper = printed(metric)[f"{PRINTED_AS.get(entry, title(WSC))} mean"]
            apart = study.difference(metric, entry)
            data[f"{name} printed mean"] = paper
            data[f"{name} difference"] = apart
            text = [
                f"{ours} [{paper[benchmark]:.3f}{signed(apart[benchmark], ', ')}]"
                for benchmark, ours in zip(BENCHMARKS, text, strict=True)
            ]
        shown[name] = text
    compared = [WSC, HONEST, *(name for name in LEARNERS if name != WSC)]
    rivals = means[compared]
    higher = METRICS[metric].higher_is_better
    top = rivals.max(axis=1) if higher else rivals.min(axis=1)
    bold = pd.DataFrame(False, shown.index, shown.columns)
    for entry in compared:
        bold[title(entry)] = rivals[entry] == top
    brackets = (
        " In brackets: the paper's mean, and ours less that in the paper's standard deviations."
        if metric in PRINTED_METRICS
        else ""
    )
    note = (
        f"Mean ± standard deviation over the folds; {'more' if higher else 'less'} is better. The "
        f"best that learns from candidates is bold.{brackets} n/a: the files are not public."
    )
    return Table(metric, METRICS[metric].title, note, data, shown, bold)


def _plus_minus(mean: float, deviation: float) -> str:
    return f"{mean:.3f} ± {deviation:.3f}"


def signed(value: float, before: str = "", digits: int = 1) -> str:
    """With its sign, and never as -0.0; nothing for what is not known."""
    return "" if np.isnan(value) else f"{before}{round(value, digits) + 0.0:+.{digits}f}"


def agreement(study: Results) -> Table:
    """How often each method is within one printed standard deviation of the printed mean."""
    rows, text = [], []
    for entry in [WSC, GROUP_FEATURES, HONEST, *PRINTED_AS]:
        row: dict[str, object] = {"method": title(entry)}
        line = {"method": title(entry)}
        for metric in PRINTED_METRICS:
            within, benchmarks = study.within_one(metric, entry)
            middle = study.difference(metric, entry).median()
            row |= {
                f"{metric} within one": within,
                f"{metric} benchmarks": benchmarks,
                f"{metric} median difference": middle,
            }
            name = METRICS[metric].title.lower()
            line[f"{name} within one"] = f"{within} of {benchmarks}"
            line[f"{name}, median difference"] = signed(middle) or "none"
        rows.append(row)
        text.append(line)
    note = (
        "Benchmarks whose mean is within one printed standard deviation of the printed mean, and "
        "the median difference in such deviations. PAMB-style, PML-fp-style and FBD-style are "
        "reconstructions, beside the figures that the paper prints for PAMB, PML-fp and FBD-PML."
    )
    return Table(
        "agreement", "Agreement with the printed figures", note, _frame(rows), _frame(text)
    )


def features(study: Results) -> Table:
    """WSC-PML on our features and on those of the paper's group, beside the printed figures."""
    paper, means = printed("average_precision"), study.means("average_precision")
    benchmarks = [name for name in BENCHMARKS if name not in study.absent]
    data = pd.DataFrame({"benchmark": benchmarks}, index=benchmarks)
    shown = data.copy()
    data["printed mean"] = paper["WSC-PML mean"]
    data["printed std"] = paper["WSC-PML std"]
    printed_figures = data[["printed mean", "printed std"]].to_numpy()
    shown["printed"] = [_plus_minus(mean, std) for mean, std in printed_figures]
    for entry, name in ((WSC, "ours"), (GROUP_FEATURES, "the group's")):
        apart = study.difference("average_precision", entry)
        data[f"{name} mean"], data[f"{name} difference"] = means[entry], apart
        shown[name] = [
            study.state(benchmark, entry)
            if np.isnan(apart[benchmark])
            else f"{means.loc[benchmark, entry]:.3f} ({signed(apart[benchmark])})"
            for benchmark in benchmarks
        ]
    note = (
        "Average precision of WSC-PML by the paper's protocol, and how far from the printed mean "
        "in printed standard deviations. The paper does not say what features it takes. Ours are "
        "quantiles and a Laplace kernel. The group's published code for sibling papers has min-max "
        "scaling and a Gaussian kernel. Sparse features (medical, corel5k, YeastBP, YeastCC, "
        "YeastMF) have min-max scaling in both; anchors, principal axes and the clustering of "
        "scaled features are ours in both."
    )
    return Table(
        "features", "WSC-PML with the scaling and kernel of its authors' group", note, data, shown
    )


def protocols(study: Results) -> Table:
    """WSC-PML by both protocols."""
    rows, text = [], []
    both = {metric: study.means(metric)[[WSC, HONEST]].dropna() for metric in METRICS}
    for benchmark in study.measured:
        row: dict[str, object] = {"benchmark": benchmark}
        line = {"benchmark": benchmark}
        for entry, name in ((WSC, "paper"), (HONEST, "honest")):
            line[f"{name}: alpha, beta"] = _picked(study.picks, benchmark, entry)
        for metric, means in both.items():
            if benchmark in means.index:
                ours, honest = means.loc[[benchmark]].to_numpy()[0]
                row |= {f"{metric} paper": ours, f"{metric} honest": honest}
                row[f"{metric} difference"] = honest - ours
                change = signed(honest - ours, digits=3)
                line[METRICS[metric].title] = f"{ours:.3f} / {honest:.3f} ({change})"
            else:
                line[METRICS[metric].title] = study.state(benchmark, WSC)
        rows.append(row)
        text.append(line)
    line = {"benchmark": "mean", "paper: alpha, beta": "", "honest: alpha, beta": ""}
    for metric, means in both.items():
        ahead = (means[HONEST] - means[WSC]).mean()
        line[METRICS[metric].title] = signed(ahead, digits=3) or "none"
    note = (
        "Paper / honest (honest less paper). Paper: the pair of alpha and beta with the best mean "
        "average precision on the test folds, which have the truth. Honest: in each fold the pair "
        "that does best on the training rows by their candidates alone; shown is the one picked "
        "most often. The last row is the mean difference."
    )
    return Table(
        "protocols", "WSC-PML by both protocols", note, _frame(rows), _frame([*text, line])
    )


def _picked(picks: pd.DataFrame, benchmark: str, entry: str) -> str:
    """The pair that a protocol took most often, and how often if not always."""
    rows = picks[(picks.benchmark == benchmark) & (picks.entry == entry)]
    if rows.empty:
        return "none"
    counts = rows.groupby(PAIR).size()
    alpha, beta = counts.index[int(counts.argmax())]
    often = "" if len(counts) == 1 else f" in {counts.max()} of {len(rows)}"
    return f"{alpha:g}, {beta:g}{often}"


def ranks(comparisons: list[Comparison]) -> Table:
    """Mean rank of each method in each comparison."""
    tested = [c for c in comparisons if c.testable]
    rows, text = [], []
    for c in tested:
        about = _about(c)
        rows.append(about | {title(name): c.ranks.get(name, np.nan) for name in LEARNERS})
        text.append(
            {key: str(value) for key, value in about.items()}
            | {title(n): f"{c.ranks[n]:.2f}" if n in c.ranks else "" for n in LEARNERS}
        )
    shown = _frame(text)
    bold = pd.DataFrame(False, shown.index, shown.columns)
    for place, c in enumerate(tested):
        for name in c.ranks.index[c.ranks == c.ranks.min()]:
            bold.loc[place, title(name)] = True
    note = (
        "1 is the best; equal figures share their ranks. Only benchmarks where every compared "
        "method was measured take part; their number is in the column of that name."
    )
    return Table("ranks", "Mean ranks", note, _frame(rows), shown, bold)


def _about(c: Comparison) -> dict[str, object]:
    return {
        "compared": c.group,
        "protocol": c.protocol,
        "metric": METRICS[c.metric].title,
        "benchmarks": len(c.scores),
    }


def tests(comparisons: list[Comparison]) -> Table:
    """Friedman's test and the critical difference of each comparison."""
    rows, text = [], []
    for c in comparisons:
        if not c.testable:
            continue
        f = c.friedman
        of_paper = (c.group, c.protocol) == (THE_PAPERS, "paper")
        in_paper = in_print(f"F_F {c.metric}") if of_paper else np.nan
        figures = {
            "methods": f.methods,
            "chi square": f.chi_square,
            "p": f.p,
            "F_F": f.f_f,
            "critical F_F": f.critical_f,
            "printed F_F": in_paper,
            "critical difference": c.critical_difference,
        }
        rows.append(_about(c) | figures)
        text.append(
            {key: str(value) for key, value in _about(c).items()}
            | {
                "methods": str(f.methods),
                "χ²": f"{f.chi_square:.2f}",
                "p": _p(f.p),
                "F_F": f"{f.f_f:.2f}",
                "critical F_F": f"{f.critical_f:.4f}",
                "printed F_F": "" if np.isnan(in_paper) else f"{in_paper:.4f}",
                "critical difference": f"{c.critical_difference:.4f}",
            }
        )
    note = (
        "Friedman's χ² with its p-value is corrected for ties, F_F is not, as is the custom; "
        "critical values and Nemenyi's critical difference are for the level 0.05."
    )
    return Table("tests", "Rank tests", note, _frame(rows), _frame(text))


def _p(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def wins(study: Results, comparisons: list[Comparison]) -> Table:
    """Benchmarks where WSC-PML is better, equal and worse than each other method."""
    p_values = {
        (c.protocol, c.metric): c.wilcoxon[WSC]
        for c in comparisons
        if c.group == ALL and c.testable
    }
    rows, text = [], []
    for protocol, entry in PROTOCOLS.items():
        for rival in LEARNERS:
            if rival == WSC:
                continue
            about = {"protocol": protocol, "against": title(rival)}
            row: dict[str, object] = dict(about)
            line = dict(about)
            for metric, (name, higher) in METRICS.items():
                both = study.means(metric)[[entry, rival]].dropna()
                ahead = (both[entry] - both[rival]) * (1 if higher else -1)
                counts = [int((sign * ahead > 0).sum()) for sign in (1, -1)]
                equal = len(both) - sum(counts)
                p = p_values.get((protocol, metric), pd.Series(dtype=float)).get(rival, np.nan)
                row |= {
                    f"{metric} wins": counts[0],
                    f"{metric} equal": equal,
                    f"{metric} losses": counts[1],
                    f"{metric} p": p,
                }
                told = "" if np.isnan(p) else f" ({_p(p)})"
                line[name] = f"{counts[0]}-{equal}-{counts[1]}{told}" if len(both) else "missing"
            rows.append(row)
            text.append(line)
    note = (
        "Benchmarks where WSC-PML is better - equal - worse, of all that have both; in brackets "
        "the p-value of Wilcoxon's signed-rank test over the benchmarks where every method was "
        "measured, with Holm's correction for all pairs. wilcoxon.csv has all pairs."
    )
    return Table("wins", "Wins and losses of WSC-PML", note, _frame(rows), _frame(text))


def wilcoxon(comparisons: list[Comparison]) -> Table:
    """Every pair of methods in every comparison."""
    rows = [
        _about(c) | {"one": title(one), "other": title(other), "p": float(c.wilcoxon[other][one])}
        for c in comparisons
        if c.testable
        for place, one in enumerate(c.methods)
        for other in c.methods[place + 1 :]
    ]
    data = _frame(rows)
    shown = data.assign(p=data.p.map(_p)).astype(str) if rows else data
    note = "p-values with Holm's correction for all pairs of a comparison."
    return Table("wilcoxon", "Wilcoxon's signed-rank test, pair by pair", note, data, shown)


def ablation(study: Results) -> Table:
    """WSC-PML without each of its parts, beside the paper's figures."""
    paper = printed("ablation")
    means, deviations = study.means("average_precision"), study.deviations("average_precision")
    measured = means[[*VARIANTS]].drop(columns=WSC).notna().any(axis=1)
    benchmarks = [name for name in BENCHMARKS if measured[name] or name in paper.index]
    data = pd.DataFrame({"benchmark": benchmarks}, index=benchmarks)
    shown = data.copy()
    for entry, name in VARIANTS.items():
        data[f"{name} mean"] = means.loc[benchmarks, entry]
        data[f"{name} std"] = deviations.loc[benchmarks, entry]
        data[f"{name} printed mean"] = paper[f"{name} mean"].reindex(benchmarks)
        text = []
        for benchmark in benchmarks:
            mean, deviation = means.loc[benchmark, entry], deviations.loc[benchmark, entry]
            ours = study.state(benchmark, entry) if np.isnan(mean) else _plus_minus(mean, deviation)
            told = (
                f" [{paper.loc[benchmark, f'{name} mean']:.3f}]" if benchmark in paper.index else ""
            )
            text.append(ours + told)
        shown[name] = text
    best = means.loc[benchmarks, [*VARIANTS]].rename(columns=VARIANTS)
    bold = pd.DataFrame(False, shown.index, shown.columns)
    bold[best.columns] = best.eq(best.max(axis=1), axis=0)
    note = (
        "Average precision; in brackets the paper's. NC: the classifier on candidates, ND: Eq. 6, "
        "without the decomposition, NWS: without weak supervision, Full: WSC-PML by the paper's "
        "protocol. The paper's birds-5 row has its birds-4 figures (docs/errata.md)."
    )
    return Table("ablation", "WSC-PML without its parts", note, data, shown, bold)


def sensitivity(study: Results) -> Table:
    """How much of the grid of alpha and beta does about as well as its best pair."""
    deviation = printed("average_precision")["WSC-PML std"]
    rows = []
    for benchmark in study.measured:
        grid = study.grid[study.grid.benchmark == benchmark]
        if grid.empty:
            continue
        best = grid.iloc[grid.average_precision.argmax()]
        near = grid.average_precision >= best.average_precision - deviation[benchmark]
        moderate = grid.alpha.isin(MODERATE) & grid.beta.isin(MODERATE)
        rows.append(
            {
                "benchmark": benchmark,
                "alpha": best.alpha,
                "beta": best.beta,
                "best": best.average_precision,
                "worst": grid.average_precision.min(),
                "near": int(near.sum()),
                "pairs": len(grid),
                "best is moderate": bool(
                    grid.average_precision[moderate].max() >= best.average_precision
                ),
                "moderate near": int((near & moderate).sum()),
                "moderate pairs": int(moderate.sum()),
            }
        )
    text = [
        {
            "benchmark": row["benchmark"],
            "best alpha, beta": f"{row['alpha']:g}, {row['beta']:g}",
            "best": f"{row['best']:.3f}",
            "worst": f"{row['worst']:.3f}",
            "near the best": f"{row['near']} of {row['pairs']}",
            "near, of the moderate": f"{row['moderate near']} of {row['moderate pairs']}",
        }
        for row in rows
    ]
    note = (
        "Average precision over the pairs of alpha and beta. Near the best: at most one printed "
        "standard deviation below it. Moderate: alpha and beta from 0.1 to 10."
    )
    return Table("sensitivity", "Sensitivity to alpha and beta", note, _frame(rows), _frame(text))


def convergence(study: Results, tolerance: float) -> Table:
    """How many iterations the clustering takes, and whether its objective only falls."""
    rows = []
    for benchmark in BENCHMARKS:
        if benchmark not in study.convergence:
            continue
        course = study.convergence[benchmark]
        below = course.iteration[course.change < tolerance]
        objective = course.objective.to_numpy()
        rises = np.diff(objective) > 1e-6 * np.abs(objective[:-1])
        rows.append(
            {
                "benchmark": benchmark,
                "iterations": len(course),
                "converged after": int(below.iloc[0]) if len(below) else None,
                "last change": float(course.change.iloc[-1]),
                "rises": int(rises.sum()),
            }
        )
    text = [
        {
            "benchmark": row["benchmark"],
            "converged after": str(row["converged after"] or f"not in {row['iterations']}"),
            "last change of F": f"{row['last change']:.2g}",
            "objective rises": f"{row['rises']} of {row['iterations'] - 1} times",
        }
        for row in rows
    ]
    note = (
        f"Iterations until the relative change of F is below {tolerance:g}, with alpha and beta at "
        "their defaults; rises of less than a millionth are not counted."
    )
    data = _frame(rows).astype({"converged after": "Int64"}) if rows else _frame(rows)
    return Table("convergence", "Convergence of the clustering", note, data, _frame(text))


def exponent(sizes: list[tuple[float, float]]) -> float:
    """Of seconds = c size^exponent, by least squares of the logarithms."""
    size, seconds = np.log(np.transpose(sizes))
    return float(np.polyfit(size, seconds, 1)[0])


def cost(study: Results) -> Table:
    """How the time of an iteration grows with rows, labels and features."""
    names = {"n": "rows n", "q": "labels q", "d": "features d"}
    rows = [
        {
            "dimension": names[axis],
            "from": min(sizes)[0],
            "to": max(sizes)[0],
            "seconds at the least": min(sizes)[1],
            "seconds at the most": max(sizes)[1],
            "exponent": exponent(sizes),
        }
        for axis, sizes in study.cost.items()
    ]
    text = [
        {
            "dimension": row["dimension"],
            "sizes": f"{row['from']:g} to {row['to']:g}",
            "seconds an iteration": (
                f"{row['seconds at the least']:.3g} to {row['seconds at the most']:.3g}"
            ),
            "exponent": f"{row['exponent']:.2f}",
        }
        for row in rows
    ]
    note = "Time of one iteration of the clustering; it grows with the size to the exponent."
    return Table("cost", "Cost of the clustering", note, _frame(rows), _frame(text))


def effort(study: Results) -> Table:
    """Time and memory of every cell."""
    kept = study.cells[study.cells.method.isin(list(METHODS))]
    data = kept.sort_values(
        ["benchmark", "method"], key=lambda names: names.map([*BENCHMARKS, *METHODS].index)
    ).reset_index(drop=True)
    wide = data.set_index(["benchmark", "method"])[["seconds", "peak_memory_mb"]]
    rows = []
    for benchmark in study.measured:
        line = {"benchmark": benchmark}
        for name in METHODS:
            if (benchmark, name) in wide.index:
                seconds, memory = wide.loc[[(benchmark, name)]].to_numpy(float)[0]
                told = "" if np.isnan(memory) else f", {memory:.0f} MB"
                line[title(name)] = f"{seconds:.0f} s{told}"
            else:
                line[title(name)] = study.state(benchmark, name)
        rows.append(line)
    if rows:
        total = data.groupby("method").seconds.sum()
        rows.append({"benchmark": "all"} | {title(n): f"{total.get(n, 0):.0f} s" for n in METHODS})
    note = (
        "Seconds of all folds, for WSC-PML with all pairs of alpha and beta, and the peak of "
        "memory beyond imports and data. Folds run side by side, so that on two cores a column "
        "takes half of its seconds."
    )
    return Table("effort", "Time and memory", note, data, _frame(rows))


def summary(study: Results) -> str:
    """The README's table, as Markdown."""
    means, paper = study.means("average_precision"), printed("average_precision")
    entries = {
        WSC: "WSC-PML, paper",
        GROUP_FEATURES: "the same, group's features",
        HONEST: "WSC-PML, honest",
    }
    rows = []
    for benchmark in BENCHMARKS:
        row = means.loc[benchmark]
        rivals = row[[name for name in LEARNERS if name != WSC]].dropna()
        best = f"{title(rivals.idxmax())} {rivals.max():.3f}" if len(rivals) else ""
        ours = [
            study.state(benchmark, entry) if np.isnan(row[entry]) else f"{row[entry]:.3f}"
            for entry in entries
        ]
        printed_mean, printed_std = paper.loc[benchmark, ["WSC-PML mean", "WSC-PML std"]]
        rows.append([benchmark, *ours, best, _plus_minus(printed_mean, printed_std)])
    near = [study.within_one("average_precision", entry) for entry in entries]
    rows.append(["within one deviation", *(f"{n} of {all_}" for n, all_ in near), "", ""])
    columns = ["benchmark", *entries.values(), "best other", "in the paper"]
    return markdown(pd.DataFrame(rows, columns=columns))
