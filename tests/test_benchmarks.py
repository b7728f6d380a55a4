import json

from benchmarks import pipeline, readers


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
