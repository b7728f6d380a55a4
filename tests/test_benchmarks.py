import json

from benchmarks import engine, fit, pipeline, readers


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


def test_the_engine_benchmark_sets_every_bar_beside_its_figure(monkeypatch, tmp_path, capsys):
    out = tmp_path / "figures.json"
    monkeypatch.setattr("sys.argv", ["engine", "--quick", "--json", str(out)])
    engine.main()
    figures = json.loads(out.read_text())
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert engine.BARS.keys() | figures.keys() == lines.keys()
    for name in engine.BARS:
        assert lines[name].endswith("met" if name in figures else "not measured")
    assert {"pairs.cross_at", "network.yeast-9.faster", "together.yeast-9.faster"} <= figures.keys()
    assert min(figures.values()) > 0


def test_a_loss_that_the_textbook_did_not_reach_is_told():
    figures = {"network.x.faster": 20.0, "network.x.loss": 1.0, "network.x.textbook_loss": 2.0}
    assert ">20.000" in engine.line("network.x.faster", figures)
    figures["network.x.textbook_loss"] = 1.0
    assert ">" not in engine.line("network.x.faster", figures)
