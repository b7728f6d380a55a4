import json
import mmap
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks import (
    ROOT,
    agreement,
    defaults,
    edges,
    engine,
    fit,
    label_noise,
    methods,
    missing_labels,
    pipeline,
    readers,
    review,
    scale,
    tables,
    votes,
)
from tests.contract import small
from wscpml.datasets import benchmarks
from wscpml.datasets.registry import BENCHMARKS
from wscpml.evaluation import memory
from wscpml.methods import METHODS, method
from wscpml.quality import judging


@pytest.fixture
def quick(monkeypatch, tmp_path):
    """Runs a benchmark with --quick; returns the figures that it writes."""

    def run(benchmark, *options):
        out = tmp_path / "figures.json"
        monkeypatch.setattr("sys.argv", ["benchmark", "--quick", "--json", str(out), *options])
        benchmark.main()
        return json.loads(out.read_text())

    return run


def test_the_pipeline_benchmark_accounts_for_all_of_each_stage(quick, monkeypatch, capsys):
    monkeypatch.setattr(pipeline, "STAGES", pipeline.STAGES[:4])
    figures = quick(pipeline)
    printed = capsys.readouterr().out
    for stage in pipeline.STAGES:
        parts = [figures[f"{stage}.{part}"] for part in ("method", "files", "start_up")]
        assert min(parts) >= 0
        assert stage in printed
        assert figures[f"{stage}.wall"] == pytest.approx(sum(parts))


def test_the_pipeline_benchmark_compares_a_repro_of_nothing_with_status(tmp_path):
    seconds = pipeline.fastest([sys.executable, "-c", "sum(range(10**6))"], tmp_path, times=2)
    assert min(seconds.values()) > 0
    parts = ("wall", "method", "files", "start_up")
    figures = dict.fromkeys((f"{each}.{part}" for each in pipeline.STAGES for part in parts), 1.0)
    assert "dvc status" not in pipeline.table(figures)
    figures["dvc_repro.wall"] = 50.0
    for kind, repro, status in (("wall", 3.0, 2.0), ("processor", 1.0, 0.8)):
        figures[f"dvc_repro_no_op.{kind}"] = repro
        figures[f"dvc_status.{kind}"] = status
        figures[f"dvc_repro_no_op.to_status.{kind}"] = repro / status
    assert pipeline.table(figures).splitlines()[-4:] == [
        "dvc repro, all to do         50.00 s",
        "dvc repro, nothing to do      3.00 s, 1.00 s of a processor",
        "dvc status                    2.00 s, 0.80 s of a processor",
        "the last but one is 1.50 and 1.25 x the last",
    ]


def test_the_readers_benchmark_compares_every_format(quick, monkeypatch, capsys):
    monkeypatch.delenv("WSCPML_DATA", raising=False)
    figures = quick(readers)
    assert {name.split(".")[1] for name in figures} == {
        "csv",
        "parquet",
        "npz",
        "mat",
        "svmlight",
        "arff",
    }
    assert "tagged.csv.ratio" in figures
    assert "scipy.io.loadmat" in capsys.readouterr().out


def test_the_tables_benchmark_shows_what_the_text_is_worth_beside_a_hand_written_encoding(
    quick, monkeypatch, capsys
):
    monkeypatch.setattr(judging, "TREES", 100)
    figures = quick(tables)
    assert figures["as it is"] > figures["without text"] + 0.05
    assert figures["as it is"] > figures["by hand"] - 0.03  # of 300 songs; of 3000, 0.01
    assert "by hand" in capsys.readouterr().out


def test_the_fit_benchmark_measures_both_classifiers_on_all_labels(quick, capsys):
    figures = quick(fit)
    for kind in fit.HEADS:
        assert figures[f"yeast-9.{kind}.truth"] > figures[f"yeast-9.{kind}.candidates"] > 0.7
    assert figures["yeast-9.auc.leave_one_out"] > 0.8
    assert "yeast-9" in capsys.readouterr().out


def test_the_fit_benchmark_says_what_it_could_not_measure(monkeypatch, tmp_path, capsys):
    monkeypatch.delenv("WSCPML_DATA", raising=False)
    monkeypatch.setenv("WSCPML_CACHE", str(tmp_path))
    monkeypatch.setattr("sys.argv", ["fit", "birds-4"])
    fit.main()
    assert "birds-4       not measured: set WSCPML_DATA" in capsys.readouterr().out


def test_the_methods_benchmark_measures_time_memory_and_growth(quick, capsys):
    figures = quick(methods)
    assert figures["yeast-9.br.seconds_ratio"] == figures["yeast-9.br.bytes_ratio"] == 1
    ours = figures["yeast-9.pml-ni.seconds"] / figures["yeast-9.br.seconds"]
    assert figures["yeast-9.pml-ni.seconds_ratio"] == ours
    assert figures["yeast-9.pml-ni.bytes"] > 0
    assert figures.keys() >= {"growth.br", "growth.pml-ni"}
    printed = capsys.readouterr().out
    assert "PML-NI" in printed
    assert "slower than 60 x BR on yeast-9: none" in printed


@pytest.fixture
def small_set(monkeypatch):
    """A set of 160 rows and 4 labels in place of the real ones, and few trees."""
    given = label_noise.Noisy(*small(n=160))
    monkeypatch.setattr(label_noise, "load", lambda *_: given)
    monkeypatch.setattr(benchmarks, "missing", lambda _: None)
    monkeypatch.setattr(judging, "TREES", 50)
    return given


def test_the_label_noise_benchmark_compares_with_cleanlab(quick, capsys, small_set):
    figures = quick(label_noise)
    chosen = small_set.candidates == 1
    assert figures["emotions pad.false"] == pytest.approx(1 - small_set.truth[chosen].mean())
    for name in ("ours", "lr", "rf", "given", "frequency"):
        assert 0 < figures[f"emotions pad.{name}.auc"] < 1
    assert figures["emotions pad.ours.auc"] > figures["emotions pad.frequency.auc"]
    assert figures["emotions pad.flags.precision"] > figures["emotions pad.false"]
    candidates, cleaned, truth = (
        figures[f"emotions pad.ap.{name}"] for name in ("candidates", "cleaned", "truth")
    )
    closed = (cleaned - candidates) / (truth - candidates)
    assert figures["emotions pad.gap_closed"] == pytest.approx(closed)
    assert "of 1 cases" in capsys.readouterr().out


def test_the_benchmark_of_missing_labels_compares_with_cleanlab(
    quick, capsys, monkeypatch, small_set
):
    class Small:
        def load(self):
            return SimpleNamespace(features=small_set.X, truth=small_set.truth)

    monkeypatch.setattr(missing_labels, "REGISTRY", {"emotions": Small()})
    figures = quick(missing_labels)
    assert 0.1 < figures["emotions uniform.lost"] < 0.2  # rows keep one of their own
    assert 0 < figures["emotions uniform.estimated_lost"] < 0.5
    for name in ("ours", "lr", "rf"):
        assert 0.5 < figures[f"emotions uniform.{name}.auc"] < 1
    told = [figures[f"emotions uniform.wrong.{name}"] for name in ("told", "none_lost.told")]
    assert min(told) > 0.6
    assert "emotions uniform" in capsys.readouterr().out
    monkeypatch.setattr(missing_labels, "measure", lambda *_: pytest.fail("measured again"))
    assert quick(missing_labels) == figures


def test_what_is_made_of_given_scores_can_be_measured_alone(
    monkeypatch, capsys, tmp_path, small_set
):
    monkeypatch.setattr(label_noise, "training", lambda *_: pytest.fail("trained"))
    monkeypatch.setattr(
        "sys.argv", ["label_noise", "--quick", "--given", "--json", str(tmp_path / "f.json")]
    )
    label_noise.main()
    figures = json.loads((tmp_path / "f.json").read_text())
    assert 0.5 < figures["emotions pad.given.auc"] < 1
    assert figures["emotions pad.rf.scoring_seconds"] < figures["emotions pad.rf.seconds"]
    assert "emotions pad" in capsys.readouterr().out


def test_the_limits_are_better_the_more_is_known(monkeypatch, tmp_path, capsys, small_set):
    out = tmp_path / "f.json"
    monkeypatch.setattr("sys.argv", ["label_noise", "--quick", "--limits", "--json", str(out)])
    label_noise.main()
    f = json.loads(out.read_text())
    assert f["emotions pad.chances.error"] < 0.2
    assert f["emotions pad.truth.error"] < 0.2
    for name in ("chances", "truth"):
        assert f[f"emotions pad.{name}.flags.precision"] > f["emotions pad.ours.flags.precision"]
    assert 0 <= f["emotions pad.quiet.share"] <= 1
    assert "emotions pad" in capsys.readouterr().out


def test_all_answers_tell_more_than_none(monkeypatch, tmp_path, capsys, small_set):
    out = tmp_path / "f.json"
    monkeypatch.setattr("sys.argv", ["review", "--quick", "--limits", "--json", str(out)])
    review.main()
    f = json.loads(out.read_text())
    assert 0.5 < f["emotions:pad.start"] < f["emotions:pad.all"] < 1
    assert 0.5 < f["emotions:pad.one_chance"] < f["emotions:pad.start"] + 0.02
    assert 0 < f["emotions:pad.wrong_all"] < f["emotions:pad.wrong_start"]
    assert f["emotions:pad.times_random"] > 1
    assert "emotions:pad" in capsys.readouterr().out


def test_one_draw_of_a_case_is_measured_alone(monkeypatch):
    monkeypatch.setattr(review, "Reviewed", lambda *which: which)
    assert list(review.drawn("emotions:per_label:2", 3)) == [("emotions", "per_label", 2)]
    assert len(list(review.drawn("emotions:per_label", 3))) == 3


def test_a_remark_is_about_the_labels_that_it_names_or_all():
    remarks = [judging.Remark("some", [1]), judging.Remark("all", [])]
    noise = SimpleNamespace(warnings=remarks[:1])
    assert label_noise.named(noise, 3).tolist() == [False, True, False]
    assert label_noise.named(SimpleNamespace(warnings=remarks), 3).all()


def test_the_benchmark_of_votes_shows_that_they_help_and_that_empty_ones_do_not_hurt(
    quick, monkeypatch, capsys, small_set
):
    monkeypatch.setattr(votes, "load", lambda *_: small_set)
    figures = quick(votes)
    alone, with_votes, nothing = (
        figures[f"emotions uniform.{name}.auc"] for name in ("alone", "votes", "nothing")
    )
    assert with_votes > (1 + alone) / 2
    assert nothing > alone - 0.02
    assert "emotions uniform" in capsys.readouterr().out


def test_at_the_edges_rare_tags_change_nothing_and_right_tags_are_left_alone(
    quick, monkeypatch, capsys
):
    monkeypatch.setattr(judging, "TREES", 30)
    monkeypatch.setattr(edges, "FEW", 200)
    monkeypatch.setattr(edges, "RARE", (0, 3, 25))
    figures = quick(edges)
    assert {figures[f"{count} rare tags.change"] for count in (3, 25)} == {0}
    assert figures["a second spelling.change"] < 0.05
    assert figures["25 rare tags.recall"] == figures["0 rare tags.recall"] > 0.3
    assert all(value <= 0.05 for key, value in figures.items() if key.endswith(".flagged"))
    assert all(value == 1 for key, value in figures.items() if key.endswith(".sound"))
    assert "2000, half of them once" in capsys.readouterr().out


def test_a_measured_case_is_not_measured_again(quick, monkeypatch, small_set):
    before = quick(label_noise)
    monkeypatch.setattr(label_noise, "measure", lambda *_: pytest.fail("measured again"))
    assert quick(label_noise) == before


def test_every_kind_of_noise_gives_candidates_of_a_real_set():
    for kind in label_noise.KINDS:
        one, same, other = (label_noise.load("yeast", kind, draw) for draw in (0, 0, 1))
        assert (one.candidates == same.candidates).all()
        assert (one.candidates != other.candidates).any()
        assert (one.candidates >= one.truth).all()


def test_a_model_that_knows_one_value_of_a_label_is_sure_of_it():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(30, 3)), rng.integers(0, 2, (30, 3))
    Y[:, 0], Y[:, 1] = 0, 1
    found = label_noise.out_of_fold(label_noise.peers(False)["rf"].set_params(n_estimators=5), X, Y)
    assert (found[:, 0] == 0).all()
    assert (found[:, 1] == 1).all()
    assert 0 < found[:, 2].mean() < 1


def test_the_peak_of_memory_starts_anew():
    def use(size):  # memory of its own, not what an earlier test has left in the heap
        np.frombuffer(mmap.mmap(-1, size), np.uint8)[:] = 1

    use(8 * 10**7)
    before = memory.forget_peak()
    use(4 * 10**7)
    assert 3.5e7 < memory.peak() - before < 6e7


def test_growth_is_the_exponent_of_the_rows(monkeypatch):
    def square(name, *sources):
        return [{"seconds": 3e-6 * int(n) ** 2} for n in sources]

    monkeypatch.setattr(methods, "measure", square)
    assert methods.growth("br", (100, 200, 400)) == pytest.approx(2)


def test_the_agreement_benchmark_sets_ours_beside_the_paper(quick, capsys):
    figures = quick(agreement)
    assert figures["yeast-9.pml-ni.printed"] == 0.725
    assert figures["yeast-9.pml-ni.std"] == 0.016
    ours = figures["yeast-9.pml-ni.ours"]
    apart = (ours - 0.725) / 0.016
    printed = capsys.readouterr().out
    assert f"| {ours:.3f}, 0.725 ± 0.016, {apart:+.1f} |" in printed
    assert printed.splitlines()[-1].startswith(f"| within one | {int(abs(apart) <= 1)} of 1 |")


def test_the_papers_figures_are_those_of_its_benchmarks():
    paper = agreement.printed("average_precision")
    assert len(paper) == 24
    assert set(BENCHMARKS) < set(paper.index)
    assert len(agreement.NAMES) == 9
    assert {f"{name} mean" for name in agreement.PRINTED_AS.values()} < set(paper.columns)
    assert set(agreement.PRINTED_AS) < set(METHODS)


def test_a_draw_changes_noise_and_folds_but_nothing_else():
    one, same, other = (benchmarks.load("yeast-9", seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.candidates, same.candidates)
    np.testing.assert_array_equal(one.fold, same.fold)
    np.testing.assert_array_equal(one.truth, other.truth)
    assert (one.candidates != other.candidates).any()
    assert (one.fold != other.fold).any()
    assert set(one.fold) == set(range(10))


def test_the_committed_agreement_quotes_the_paper_and_holds_for_methods_from_authors_code():
    lines = (ROOT / "docs/agreement.md").read_text().splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")]
    assert rows[0][1:] == [method(name).TITLE for name in agreement.PRINTED_AS]
    assert [row[0] for row in rows[1:]] == [*agreement.NAMES, "within one"]
    paper = agreement.printed("average_precision")
    for setting, *cells in rows[1:-1]:
        for name, cell in zip(agreement.PRINTED_AS, cells, strict=True):
            _, printed, apart = cell.split(", ")
            title = agreement.PRINTED_AS[name]
            mean, std = (paper.loc[setting, f"{title} {of}"] for of in ("mean", "std"))
            assert printed == f"{mean:.3f} ± {std:.3f}"
            assert "reconstruction" in method(name).SOURCE or abs(float(apart)) <= 1


def test_the_study_of_defaults_fills_its_tables(quick, capsys):
    figures = quick(defaults)
    ours = figures["A.yeast-9.quantile, laplace 0.5.ap"]
    assert ours == figures["C.yeast-9.energy 0.999.ap"] > 0.6
    assert ours == pytest.approx(figures["B.yeast-9.middle of the best average precisions.ap"])
    rules = {key: value for key, value in figures.items() if key[0] == "B" and key.endswith(".ap")}
    assert max(rules.values()) == rules["B.yeast-9.best in hindsight, by the truth.ap"]
    ranks = [figures[f"C.yeast-9.energy {energy}.rank"] for energy in defaults.ENERGIES]
    assert ranks == sorted(set(ranks))
    for start in ("closed form", "random"):
        trained = figures[f"D.yeast-9.{start}, L-BFGS 100.loss"]
        assert trained < figures["D.yeast-9.random, AdamW 20, rate 0.003.loss"]
    printed = capsys.readouterr().out
    for letter, (title, *_) in defaults.STUDIES.items():
        assert f"## {letter}. {title}\n\n|  | yeast-9 | mean | short |\n| --- |" in printed


def test_the_study_of_defaults_says_what_it_could_not_measure(monkeypatch, tmp_path, capsys):
    monkeypatch.delenv("WSCPML_DATA", raising=False)
    monkeypatch.setenv("WSCPML_CACHE", str(tmp_path))
    monkeypatch.setattr("sys.argv", ["defaults", "birds-4"])
    defaults.main()
    assert "birds-4       not measured: set WSCPML_DATA" in capsys.readouterr().out


def test_the_engine_benchmark_sets_every_bar_beside_its_figure(quick, capsys):
    figures = quick(engine)
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert engine.BARS.keys() | figures.keys() == lines.keys()
    for name, (low, high) in engine.BARS.items():
        said = "not measured"
        if name in figures:
            said = "met" if low <= figures[name] <= high else "not met"
        assert lines[name].endswith(f"  {said}")
    assert {"pairs.cross_at", "network.yeast-9.faster", "together.yeast-9.faster"} <= figures.keys()
    assert min(figures.values()) > 0


def test_a_loss_that_the_textbook_did_not_reach_is_told():
    figures = {"network.x.faster": 20.0, "network.x.loss": 1.0, "network.x.textbook_loss": 2.0}
    assert ">20.000" in engine.line("network.x.faster", figures)
    figures["network.x.textbook_loss"] = 1.0
    assert ">" not in engine.line("network.x.faster", figures)


def test_the_scale_benchmark_measures_all_doors_and_goes_on_where_it_was(
    quick, monkeypatch, capsys
):
    monkeypatch.setattr(judging, "TREES", 20)
    monkeypatch.setattr(scale, "in_child", lambda name, place: scale.CHILDREN[name](place))
    figures = quick(scale)
    for name in ("fit", "lr", "rf", "given", "issues", "clean", "predict"):
        assert figures[f"300x8x10.{name}.seconds"] > 0
        assert figures[f"300x8x10.{name}.own_gb"] > 0
    for name in ("fit", "lr", "rf", "given", "issues", "clean"):
        assert figures[f"300x8x10.{name}.auc"] > 0.7
    assert figures["300x8x10.clean.auc"] == pytest.approx(figures["300x8x10.fit.auc"], abs=0.02)
    assert {"exponent.n.seconds", "exponent.q.own_gb"} <= figures.keys()
    monkeypatch.setattr(scale, "make", None)
    assert quick(scale) == figures


def test_the_scale_benchmark_says_what_fewer_trees_cost(quick, monkeypatch, small_set):
    monkeypatch.setattr(scale, "TREES", (5, 40))
    figures = quick(scale, "--trees")
    for title in ("emotions per_label", "300 8 10"):
        few, many = (figures[f"{title}.{count}.auc"] for count in scale.TREES)
        assert 0.5 < few < many
    monkeypatch.setattr(scale, "make", None)
    assert quick(scale, "--trees") == figures


def test_made_data_are_as_they_are_said_to_be(tmp_path):
    scale.make(scale.Problem(500, 6, 30, 5), tmp_path)
    X, candidates, true = scale.read(tmp_path)
    assert X.shape == (500, 6)
    assert candidates.shape == (500, 30)
    assert (candidates.sum(axis=1) == 5).all()
    assert true.mean() == pytest.approx(0.6)
    frequent = np.bincount(candidates.indices[true], minlength=30)
    assert frequent[:10].sum() > 2 * frequent[-10:].sum()
    false = np.bincount(candidates.indices[~true], minlength=30)
    assert false.max() < 3 * max(false.min(), 10)
