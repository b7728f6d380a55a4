import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.artist import Artist
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from experiments import analyse, cells, claims, comparisons, figures, report, summary, tables
from experiments.cells import GROUP_FEATURES, HONEST, METRICS, WSC
from experiments.paper import PRINTED_AS, printed
from tests.conftest import ROOT
from tests.experiments import study_cells
from wscpml import artifacts
from wscpml.errors import UserError
from wscpml.methods import METHODS, method


@pytest.fixture(scope="module")
def broken(tmp_path_factory) -> Path:
    """A study with failed, damaged, incomparable and missing cells, analysed."""
    path = tmp_path_factory.mktemp("broken")
    study_cells.write_broken(path / "results")
    analyse.analyse(path / "results", path)
    return path


@pytest.fixture
def results(tmp_path) -> Path:
    """An empty directory of results."""
    path = tmp_path / "results"
    path.mkdir()
    return path


def table(path: Path, name: str) -> pd.DataFrame:
    return pd.read_csv(path / f"tables/{name}.csv")


def two_folds(figures: dict[tuple[float, float], list[tuple[float, float]]]) -> dict:
    """A cell of WSC-PML on yeast-9 with the average precision and criterion of each fold."""
    cell = study_cells.cell("yeast-9", WSC, folds=2)
    run = cell["runs"][0]
    cell["runs"] = [
        run
        | {"fold": fold, "settings": {"alpha": alpha, "beta": beta}, "criterion": criterion}
        | {"metrics": run["metrics"] | {"average_precision": precision, "ranking_loss": alpha}}
        for (alpha, beta), folds in figures.items()
        for fold, (precision, criterion) in enumerate(folds)
    ]
    return cell


def test_the_paper_takes_the_best_mean_and_honesty_the_best_criterion_of_each_fold(results):
    figures = {
        (0.1, 1): [(0.70, 5), (0.72, 5)],
        (1, 1): [(0.80, 2), (0.60, 9)],
        (10, 1): [(0.74, 9), (0.72, 1)],
    }
    artifacts.write(results / "yeast-9/wsc-pml.json", two_folds(figures))
    study = cells.load(results)
    means, losses = study.means("average_precision"), study.means("ranking_loss")
    assert means.loc["yeast-9", WSC] == pytest.approx(0.73)
    assert means.loc["yeast-9", HONEST] == pytest.approx((0.74 + 0.60) / 2)
    assert losses.loc["yeast-9", [WSC, HONEST]].tolist() == pytest.approx([10, 5.5])
    text = tables.protocols(study).shown.iloc[0]
    assert text["Average precision"] == "0.730 / 0.670 (-0.060)"
    assert text["paper: alpha, beta"] == "10, 1"
    assert text["honest: alpha, beta"] == "1, 1 in 1 of 2"


def test_without_a_criterion_there_is_no_honest_protocol(results):
    cell = two_folds({(1, 1): [(0.7, None), (0.8, None)]})
    artifacts.write(results / "yeast-9/wsc-pml.json", cell)
    means = cells.load(results).means("average_precision")
    assert means.loc["yeast-9", WSC] == pytest.approx(0.75)
    assert np.isnan(means.loc["yeast-9", HONEST])


def test_figures_stand_beside_the_papers_in_its_standard_deviations(broken):
    study = cells.load(broken / "results")
    row = table(broken, "average_precision").set_index("benchmark").loc["emotions-4"]
    folds = json.loads((broken / "results/emotions-4/pml-ni.json").read_text())["runs"]
    ours = np.mean([run["metrics"]["average_precision"] for run in folds])
    assert row["PML-NI mean"] == pytest.approx(ours, abs=1e-6)
    assert row["PML-NI printed mean"] == 0.749
    assert row["PML-NI difference"] == pytest.approx((ours - 0.749) / 0.034, abs=1e-4)
    shown = tables.metric_table(study, "average_precision").shown.loc["emotions-4", "PML-NI"]
    assert re.fullmatch(rf"{ours:.3f} ± 0\.\d{{3}} \[0\.749, [+-]\d\.\d\]", shown)
    assert not row.filter(like="BR").filter(like="printed").size


def test_a_printed_deviation_of_zero_gives_no_difference(broken):
    row = table(broken, "average_precision").set_index("benchmark").loc["corel5k-11"]
    assert printed("average_precision").loc["corel5k-11", "PML-fp std"] == 0
    assert np.isnan(row["PML-fp-style difference"])
    assert row["PML-fp-style mean"] > 0


def test_every_benchmark_and_method_is_there_by_its_title(broken):
    for metric in METRICS:
        data = table(broken, metric)
        assert data.benchmark.tolist() == cells.BENCHMARKS
        assert {f"{method(name).TITLE} mean" for name in METHODS} < set(data.columns)
    assert "PAMB-style mean" in data
    assert "PAMB mean" not in data


def test_what_has_no_figures_says_why(broken):
    shown = tables.metric_table(cells.load(broken / "results"), "one_error").shown
    assert shown.loc["YeastBP", "PML-LENFN"] == "failed"
    assert shown.loc["YeastMF", "NLR"] == "failed"
    assert shown.loc["image-2", "BR"] == "failed"
    assert shown.loc["corel5k-11", "PAMB-style"] == "missing"
    assert shown.loc["Music_style", "WSC-PML"] == "n/a"


def test_failed_cells_fail_the_command_after_it_wrote_everything_to_the_same_bytes(
    broken, tmp_path
):
    options = ["--results", broken / "results", "--out", tmp_path]
    command = [sys.executable, "-m", "experiments.analyse", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "YeastBP/pml-lenfn.json: MemoryError: needs 12 GB, has 8 <GB>",
        "YeastMF/nlr.json: is damaged or cut off (no end of line at the end); "
        "`dvc checkout` gets it back, `dvc repro` makes it anew",
        "image-2/br.json: has seed 0 and 3 folds, but wsc-pml has seed 0 and 10: "
        "they cannot be compared",
    ]
    files = ["report.html", *(f"tables/{file.name}" for file in (broken / "tables").iterdir())]
    assert len(files) == 1 + len(list((tmp_path / "tables").iterdir())) > 45
    for file in files:  # another process has other hashes
        assert (tmp_path / file).read_bytes() == (broken / file).read_bytes(), file


def test_the_page_tells_what_failed_and_what_is_missing(broken):
    page = (broken / "report.html").read_text()
    for told in (
        "<code>YeastBP/pml-lenfn.json</code>: MemoryError: needs 12 GB, has 8 &lt;GB&gt;",
        "not public: Music_emotion, Music_style",
        "PAMB-style: corel5k-11",
        "Mirflickr is a subset, 5000 of the 10433",
        "Left out, as measured on less than half: ML-kNN",
        "7 methods on the 19 benchmarks that all of them have",
    ):
        assert told in " ".join(page.split()), told


def test_the_page_needs_nothing_else(broken):
    page = (broken / "report.html").read_text()
    assert "<script" not in page
    assert set(re.findall(r'(?:src|href)="(data:image/svg\+xml;base64,|#|.*?")', page)) == {
        "data:image/svg+xml;base64,",
        "#",
    }
    assert "url(" not in page
    assert page.count("<img") == 2 * len(METRICS) + 22 + 3 + 3  # ranks, grids, courses, cost
    assert len(re.findall(r'<img src="[^"]+" alt="[^"]+">', page)) == page.count("<img")


def test_ranks_are_over_benchmarks_that_all_compared_methods_have(broken):
    tests = table(broken, "tests").set_index(["compared", "protocol", "metric"])
    seven = tests.loc[(comparisons.THE_PAPERS, "paper", "Average precision")]
    every = tests.loc[(comparisons.ALL, "paper", "Average precision")]
    assert (seven.benchmarks, seven.methods) == (22 - 3, 7)  # without YeastBP, YeastMF, corel5k-11
    assert (every.benchmarks, every.methods) == (22 - 4, 10)  # nor image-2; ML-kNN has three
    assert seven["printed F_F"] == 26.7644
    ranks = table(broken, "ranks").iloc[0]
    assert ranks.drop(["compared", "protocol", "metric", "benchmarks"]).sum() == pytest.approx(28)


def test_wins_and_losses_are_counted_where_both_were_measured(broken):
    means = cells.load(broken / "results").means("ranking_loss")[[WSC, "nlr"]].dropna()
    row = table(broken, "wins").set_index(["protocol", "against"]).loc[("paper", "NLR")]
    assert row["ranking_loss wins"] == (means[WSC] < means.nlr).sum() > 15
    counts = row[["ranking_loss wins", "ranking_loss equal", "ranking_loss losses"]]
    assert counts.sum() == len(means) == 21
    assert 0 < row["ranking_loss p"] < 0.05


def test_tables_come_in_three_forms_of_the_same_rows(broken):
    for file in (broken / "tables").glob("*.csv"):
        markdown = file.with_suffix(".md").read_text()
        latex = file.with_suffix(".tex").read_text()
        lines = [line for line in markdown.splitlines() if line.startswith("|")]
        rows = latex.partition("\\midrule\n")[2].partition("\n\\bottomrule")[0].splitlines()
        assert len(rows) == len(lines) - 2 >= 1, file.name
        assert {line.count("|") for line in lines} == {rows[0].count(" & ") + 2}, file.name
        assert "".join(rows).isascii()
        assert not re.search(r"[^$]<", "".join(rows))
    latex = (broken / "tables/average_precision.tex").read_text()
    assert r"Music\_emotion & n/a [0.649]" in latex
    assert r"\textbf{0." in latex
    assert "**0." in (broken / "tables/average_precision.md").read_text()


def test_no_results_still_make_a_page(results, tmp_path):
    assert analyse.analyse(results, tmp_path) == {}
    page = (tmp_path / "report.html").read_text()
    assert page.count("Nothing measured.") > 5
    assert "WSC-PML: all benchmarks" in page
    assert 'class="verdict">holds' not in page
    assert 'class="verdict">does not hold' not in page


def test_a_missing_directory_is_told(monkeypatch, tmp_path):
    monkeypatch.setattr("sys.argv", ["analyse", "--results", str(tmp_path / "nowhere")])
    with pytest.raises(SystemExit, match=r"nowhere: is missing; `make study` makes it"):
        analyse.main()


@pytest.mark.parametrize(
    ("file", "changes", "reason"),
    [
        ("yeast-9/br.json", {"method": "nlr"}, "is a result of nlr on yeast-9"),
        ("yeast-9/br.json", {"folds": 11}, "must have each fold from 0 to 10 once"),
        ("yeast-9/br.json", {"runs": []}, "must have each fold from 0 to 9 once"),
        ("yeast-9/br.json", {"seed": "x"}, "is not a result: seed: "),
        ("yeast-9/br.json", {"seconds": None}, "is not a result: seconds: "),
        ("yeast-9/svm.json", {"method": "svm"}, "is none of the study's benchmarks and methods"),
        ("iris/br.json", {"benchmark": "iris"}, "is none of the study's benchmarks and methods"),
        ("yeast-9/convergence.json", {"objective": [1.0]}, "must have iteration, objective and"),
        ("cost.json", {"n": [[1, 2]]}, "is not a result: n: "),
        ("yeast-9/convergence.json", {"error": "no memory"}, "no memory"),
    ],
)
def test_a_file_that_is_no_result_is_a_failure(results, file, changes, reason):
    artifacts.write(results / file, study_cells.cell("yeast-9", "br") | changes)
    failures = cells.load(results).failures
    assert list(failures) == [file]
    assert reason in failures[file]


def test_runs_with_parameters_that_are_not_searched_are_a_failure(results):
    cell = two_folds({(1, 1): [(0.7, 1), (0.8, 1)]})
    for run in cell["runs"]:
        run["settings"] = {"alpha": 1, "fold": 7, "rule": "paper"}
    artifacts.write(results / "yeast-9/wsc-pml.json", cell)
    told = {"yeast-9/wsc-pml.json": "has parameters that are not searched: fold, rule"}
    assert cells.load(results).failures == told


def test_runs_with_one_parameter_of_two_are_no_grid(results):
    cell = two_folds({(1, 1): [(0.7, 1), (0.8, 1)]})
    for run in cell["runs"]:
        run["settings"] = {"alpha": 1}
    artifacts.write(results / "yeast-9/wsc-pml.json", cell)
    study = cells.load(results)
    assert study.grid.empty
    assert study.means("average_precision").loc["yeast-9", WSC] == pytest.approx(0.75)


def test_metrics_that_some_folds_lack_are_means_of_the_others(results):
    cell = study_cells.cell("yeast-9", "br", folds=2)
    for fold, value in enumerate((None, 0.25)):
        cell["runs"][fold]["metrics"]["one_error"] = value
    artifacts.write(results / "yeast-9/br.json", cell)
    assert cells.load(results).means("one_error").loc["yeast-9", "br"] == 0.25


def test_memory_that_was_not_measured_is_left_out(results):
    cell = study_cells.cell("yeast-9", "br") | {"seconds": 12.0, "peak_memory_mb": None}
    artifacts.write(results / "yeast-9/br.json", cell)
    assert tables.effort(cells.load(results)).shown.loc[0, "BR"] == "12 s"


def test_seconds_are_added_up_method_by_method(results):
    for benchmark, name, seconds in (
        ("yeast-7", "br", 2),
        ("yeast-9", "br", 3),
        ("yeast-9", WSC, 7),
    ):
        cell = study_cells.cell(benchmark, name) | {"seconds": seconds, "peak_memory_mb": 5.0}
        artifacts.write(results / f"{benchmark}/{name}.json", cell)
    shown = tables.effort(cells.load(results)).shown.set_index("benchmark")
    assert shown["BR"].tolist() == ["2 s, 5 MB", "3 s, 5 MB", "5 s"]
    assert shown.loc["all", ["WSC-PML", "NLR"]].tolist() == ["7 s", "0 s"]


def as_printed(results: Path) -> None:
    """All methods of the paper with just the printed figures, on all 24 benchmarks."""
    for benchmark in cells.BENCHMARKS:
        for name in [*cells.SEVEN, GROUP_FEATURES]:
            column = f"{PRINTED_AS.get(name, 'WSC-PML')} mean"
            cell = study_cells.cell(benchmark, name, folds=2, grid=False)
            for run in cell["runs"]:
                for metric in METRICS:
                    of = "average_precision" if metric == "average_precision" else "ranking_loss"
                    run["metrics"][metric] = float(printed(of).loc[benchmark, column])
            artifacts.write(results / benchmark / f"{name}.json", cell)


def test_the_papers_own_figures_uphold_its_claims_about_ranks(results):
    as_printed(results)
    study = cells.load(results)
    found = {c.claim: c for c in claims.judge(study, comparisons.compare_all(study))}
    verdicts = {text: claim.verdict for text, claim in found.items()}
    for text, verdict in verdicts.items():
        if "as printed" in text or "lowest mean rank" in text or "F_F" in text:
            assert verdict == claims.HOLDS, text
        if "significant" in text and "FBD" not in text:
            assert verdict == claims.HOLDS, text
    share = next(c for c in found.values() if "82.5%" in c.claim)
    assert share.figures.startswith("94 of 120 = 78.3%: average precision 22 of 24;")  # 22 + 4 * 18
    assert share.figures.endswith("(7 methods, 24 benchmarks)")
    assert study.absent == []


def apart(results: Path, benchmark: str, name: str, deviations: float) -> None:
    """A cell of WSC-PML that many printed deviations from the printed average precision."""
    mean, std = printed("average_precision").loc[benchmark, ["WSC-PML mean", "WSC-PML std"]]
    cell = study_cells.cell(benchmark, name, folds=2, grid=False)
    for run in cell["runs"]:
        run["metrics"]["average_precision"] = mean + deviations * std
    artifacts.write(results / f"{benchmark}/{name}.json", cell)


@pytest.mark.parametrize(("far", "verdict"), [(4, claims.HOLDS), (5, claims.FAILS)])
def test_figures_are_reproduced_if_18_of_22_are_within_one_deviation(results, far, verdict):
    for place, benchmark in enumerate(study_cells.AVAILABLE):
        apart(results, benchmark, GROUP_FEATURES, -1.5 if place < far else -0.9)
        apart(results, benchmark, WSC, -1.5 if place < 9 - far else 0.9)
    found = claim(cells.load(results), "Average precision of WSC-PML is as printed")
    assert found.verdict == verdict
    group, ours = found.figures.split("; ")
    assert group.startswith(
        f"with the group's scaling and kernel {22 - far} of 22 benchmarks are, median difference "
        "-0.9, outside Mirflickr -1.5, "
    )
    assert ours.startswith(
        f"on our features {13 + far} of 22 benchmarks are, median difference +0.9"
    )


def test_our_features_alone_do_not_tell_whether_figures_are_reproduced(results):
    for benchmark in study_cells.AVAILABLE:
        apart(results, benchmark, WSC, 0)
    found = claim(cells.load(results), "Average precision of WSC-PML is as printed")
    assert found.verdict == claims.UNTESTED
    assert found.figures == "on our features 22 of 22 benchmarks are, median difference +0.0"


def test_other_features_stand_beside_ours_and_the_papers(results):
    apart(results, "image-3", WSC, 1.4)
    apart(results, "image-3", GROUP_FEATURES, -0.4)
    study = cells.load(results)
    shown = tables.features(study).shown.set_index("benchmark")
    assert shown.loc["image-3"].tolist() == ["0.792 ± 0.019", "0.819 (+1.4)", "0.784 (-0.4)"]
    assert shown.loc["image-2"].tolist() == ["0.814 ± 0.020", "missing", "missing"]
    within = tables.agreement(study).shown.set_index("method")["average precision within one"]
    assert within[["WSC-PML", "WSC-PML, group's features"]].tolist() == ["0 of 1", "1 of 1"]


@pytest.mark.parametrize("group", comparisons.GROUPS)
@pytest.mark.parametrize("order", [1, -1])
def test_no_name_leaves_the_diagram_of_critical_differences(group, order):
    names = sorted(comparisons.GROUPS[group], key=lambda name: -len(cells.title(name)))[::order]
    scores = pd.DataFrame([range(len(names))] * 22, columns=names)
    figure = figures.critical_differences(
        comparisons.Comparison(group, "paper", "ranking_loss", scores, [])
    )
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    for name in names:
        (text,) = figure.findobj(lambda part, of=name: cells.title(of) in _words(part))
        box = text.get_window_extent(canvas.get_renderer())
        assert figure.bbox.x0 < box.x0 < box.x1 < figure.bbox.x1, name


def _words(part: Artist) -> list[str]:
    return part.get_text().split() if isinstance(part, Text) else []


def claim(study: cells.Results, part: str) -> claims.Claim:
    judged = claims.judge(study, comparisons.compare_all(study))
    return next(each for each in judged if part in each.claim)


def test_a_claim_is_not_judged_by_a_few_benchmarks_or_without_a_method(results):
    study_cells.write(results, ["yeast-9", "birds-4"], cells.SEVEN, folds=2)
    few = claim(cells.load(results), "lowest mean rank")
    assert few.verdict == claims.UNTESTED
    assert "(7 methods, 2 benchmarks)" in few.figures
    as_printed(results)
    for path in results.glob("*/pamb.json"):
        path.unlink()
    for path in results.glob("*/ablation-*.json"):
        path.unlink()
    without = claim(cells.load(results), "lowest mean rank")
    assert without.verdict == claims.UNTESTED
    assert "(6 methods, 24 benchmarks, without PAMB-style)" in without.figures


def test_ablation_sensitivity_convergence_and_cost_are_judged(tmp_path, results):
    study_cells.write(results, methods=[WSC])
    study = cells.load(results)
    means = study.means("average_precision").loc[study_cells.ABLATION]
    full_best = means[[*cells.VARIANTS]].idxmax(axis=1) == WSC
    full = claim(study, "Full is better")
    assert full.verdict == (claims.HOLDS if full_best.all() else claims.FAILS)
    assert full.figures.startswith(f"on {full_best.sum()} of 4 benchmarks")
    assert claim(study, "moderate").verdict == claims.HOLDS  # made to be best at 1, 1
    assert "alpha 1, beta 1, on 22" in claim(study, "moderate").figures
    courses = study.convergence
    soon = sum(course.change[:20].min() < 1e-3 for course in courses.values())
    assert claim(study, "10 to 20").figures.startswith(f"on {soon} of 22 benchmarks")
    rising = [name for name in cells.BENCHMARKS if name in courses and _rises(courses[name])]
    assert claim(study, "alternating").verdict == claims.FAILS
    assert claim(study, "alternating").figures.endswith(f": {', '.join(rising)}")
    assert claim(study, "O(T nqd)").verdict == claims.HOLDS
    assert claim(study, "O(T nqd)").figures == "exponents n 1.02, q 0.93, d 0.70"
    slow = study_cells.cost() | {"d": [[10, 1.0], [100, 100.0]]}
    artifacts.write(results / "cost.json", slow)
    assert claim(cells.load(results), "O(T nqd)").verdict == claims.FAILS


def test_equal_figures_are_neither_better_nor_poorer(results):
    for benchmark in study_cells.ABLATION:
        for name in cells.VARIANTS:
            cell = study_cells.cell(benchmark, "br", folds=2) | {"method": name}
            artifacts.write(results / benchmark / f"{name}.json", cell)
    study = cells.load(results)
    for part in ("Full is better", "the poorest", "NWS"):
        assert claim(study, part).figures.startswith("on 0 of 4 benchmarks"), part


@pytest.mark.parametrize(("moderate", "best"), [(0.8, True), (0.799, False)])
def test_a_moderate_pair_that_equals_the_best_is_the_best(results, moderate, best):
    figures = {(0.01, 100): [(0.8, 1)] * 2, (1, 1): [(moderate, 1)] * 2}
    artifacts.write(results / "yeast-9/wsc-pml.json", two_folds(figures))
    row = tables.sensitivity(cells.load(results)).data.iloc[0]
    assert (row.alpha, row.beta) == (0.01, 100)
    assert row["best is moderate"] == best


def _rises(course: pd.DataFrame) -> bool:
    return course.objective.diff().max() > 0


def test_the_report_says_what_was_tried_where_we_are_far(results, tmp_path, monkeypatch):
    apart(results, "yeast-9", WSC, -13.2)
    apart(results, "image-3", WSC, 0.9)
    apart(results, "image-3", GROUP_FEATURES, 1.1)
    apart(results, "image-4", GROUP_FEATURES, 0.9)
    monkeypatch.setattr(analyse, "what_was_tried", lambda: {"yeast-9": "wider networks & more"})
    analyse.analyse(results, tmp_path)
    page = (tmp_path / "report.html").read_text()
    assert "<li>yeast-9 (-13.2, missing): wider networks &amp; more</li>" in page
    assert "<li>image-3 (+0.9, +1.1): what was tried is not on record</li>" in page
    assert "<li>image-4" not in page


def test_what_was_tried_names_benchmarks_of_the_study(monkeypatch, tmp_path):
    assert analyse.what_was_tried().keys() <= set(cells.BENCHMARKS)
    monkeypatch.setattr(analyse, "HERE", tmp_path)
    (tmp_path / "tried.yaml").write_text("iris: more trees\n")
    with pytest.raises(UserError, match=r"tried\.yaml: iris: no such benchmark"):
        analyse.what_was_tried()


@pytest.mark.parametrize("entry", [WSC, GROUP_FEATURES])
def test_what_was_tried_is_on_record_for_every_committed_benchmark_that_is_far(entry):
    apart = cells.load(ROOT / "experiments/results").difference("average_precision", entry)
    assert set(apart.index[apart.abs() > 1]) <= analyse.what_was_tried().keys()


def test_the_summary_has_a_row_per_benchmark_and_counts_those_that_agree(
    broken, monkeypatch, capsys
):
    monkeypatch.setattr(summary, "HERE", broken)
    summary.main()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + 24 + 1
    study = cells.load(broken / "results")
    means = study.means("average_precision").loc["yeast-9"]
    rivals = means[[name for name in cells.LEARNERS if name != WSC]]
    best = f"{method(rivals.idxmax()).TITLE} {rivals.max():.3f}"
    ours = " | ".join(f"{means[entry]:.3f}" for entry in (WSC, GROUP_FEATURES, HONEST))
    assert f"| yeast-9 | {ours} | {best} | 0.750 ± 0.019 |" in lines
    assert "| Music_style | n/a | n/a | n/a |  | 0.746 ± 0.014 |" in lines
    agree = tables.agreement(study).shown.set_index("method")["average precision within one"]
    agree = agree[["WSC-PML", "WSC-PML, group's features", "WSC-PML, honest"]]
    assert lines[-1] == f"| within one deviation | {' | '.join(agree)} |  |  |"


def test_what_goes_beyond_the_paper_is_counted(broken):
    study = cells.load(broken / "results")
    both = study.means("average_precision")[[WSC, "krr-c"]].dropna()
    ahead = (both[WSC] > both["krr-c"]).sum()
    assert any(f"than KRR-C on {ahead} of 22 benchmarks" in line for line in report.beyond(study))
