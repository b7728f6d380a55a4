import json

import pytest

from benchmarks import defaults, fit, pipeline, readers


def test_the_pipeline_benchmark_accounts_for_all_of_each_stage(monkeypatch, tmp_path, capsys):
    out = tmp_path / "figures.json"
    monkeypatch.setattr("sys.argv", ["pipeline", "--quick", "--json", str(out)])
    pipeline.main()
    figures = json.loads(out.read_text())
    printed = capsys.readouterr().out
    for stage in pipeline.STAGES:
        parts = [figures[f"{stage}.{part}"] for part in ("method", "files", "start_up")]
        assert min(parts) >= 0
        assert stage in printed
    assert figures["train_classifier.method"] > figures["inject_noise.method"]


def test_the_readers_benchmark_compares_every_format(monkeypatch, tmp_path, capsys):
    out = tmp_path / "figures.json"
    monkeypatch.delenv("WSCPML_DATA", raising=False)
    monkeypatch.setattr("sys.argv", ["readers", "--quick", "--json", str(out)])
    readers.main()
    figures = json.loads(out.read_text())
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


def test_the_fit_benchmark_measures_both_classifiers_on_all_labels(monkeypatch, tmp_path, capsys):
    out = tmp_path / "figures.json"
    monkeypatch.setattr("sys.argv", ["fit", "--quick", "--json", str(out)])
    fit.main()
    figures = json.loads(out.read_text())
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


def test_the_study_of_defaults_fills_its_tables(monkeypatch, tmp_path, capsys):
    out = tmp_path / "figures.json"
    monkeypatch.setattr("sys.argv", ["defaults", "--quick", "--json", str(out)])
    defaults.main()
    figures = json.loads(out.read_text())
    ours = figures["A.yeast-9.quantile, laplace 0.5.ap"]
    assert ours == figures["C.yeast-9.energy 0.999.ap"] > 0.6
    assert ours == pytest.approx(figures["B.yeast-9.leave-one-out average precision.ap"])
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
