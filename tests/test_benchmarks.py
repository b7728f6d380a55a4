import json

from benchmarks import pipeline


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
