import json
import re
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

import stages
from benchmarks import dvc_stages
from stages import (
    apply_method,
    build_confidence,
    cluster,
    collect_decisions,
    evaluate,
    fetch,
    identify,
    inject_noise,
    judge_labels,
    learn_prototypes,
    prepare,
    run,
    track,
    train_classifier,
)
from tests.conftest import ROOT, Tiny
from wscpml import artifacts, settings
from wscpml.cli import main
from wscpml.datasets.files import File, digest
from wscpml.datasets.registry import REGISTRY, Named
from wscpml.errors import UserError
from wscpml.methods import METHODS, method
from wscpml.quality import audit
from wscpml.randomness import stream
from wscpml.serving.versions import Locked

STAGES = {
    module.__name__.removeprefix("stages."): getattr(
        module, module.__name__.removeprefix("stages.")
    )
    for module in (
        fetch,
        prepare,
        inject_noise,
        collect_decisions,
        learn_prototypes,
        build_confidence,
        cluster,
        judge_labels,
        train_classifier,
        apply_method,
        evaluate,
    )
}
DVC = dvc_stages()


def paths(stage: str, kind: str, method: str = "wsc-pml") -> list[Path]:
    entries = DVC[stage].get(kind, [])
    names = [entry if isinstance(entry, str) else next(iter(entry)) for entry in entries]
    return [Path(name.replace("${method}", method)) for name in names]


def outputs(stage: str) -> list[Path]:
    return [path for kind in ("outs", "metrics", "plots") for path in paths(stage, kind)]


def files_in(path: Path) -> list[Path]:
    return [file for file in path.rglob("*") if file.is_file()] if path.is_dir() else [path]


def run_all(until: str = "evaluate") -> None:
    for name, stage in STAGES.items():
        stage(settings.load())
        if name == until:
            return


def change(key: str, values: object) -> None:
    """Set a key of the settings, or some of a section's."""
    params = yaml.safe_load(Path("params.yaml").read_text())
    params[key] = params[key] | values if isinstance(values, dict) else values
    Path("params.yaml").write_text(yaml.safe_dump(params))


def apply(name: str) -> dict[str, Any]:
    """Run all but the stages of WSC-PML with another method; returns the metrics."""
    change("method", name)
    for stage in (
        "fetch", "prepare", "inject_noise", "collect_decisions", "apply_method", "evaluate",
    ):  # fmt: skip
        STAGES[stage](settings.load())
    return artifacts.read("metrics/evaluation.json")


def test_each_stage_writes_just_the_outputs_that_dvc_expects(tiny_project):
    known = {f.relative_to(tiny_project) for f in tiny_project.rglob("*") if f.is_file()}
    for name, stage in STAGES.items():
        stage(settings.load())
        written = {f.relative_to(tiny_project) for f in tiny_project.rglob("*") if f.is_file()}
        expected = {file for path in outputs(name) for file in files_in(path)}
        assert written - known == expected
        known = written


def test_ids_and_label_names_are_kept_to_the_end(tiny_project):
    run_all()
    pseudo_labels = artifacts.read("data/pseudo_labels.parquet")
    assert pseudo_labels.columns.tolist() == [
        "instance",
        "label",
        "B",
        "pi",
        "F",
        "label_confidence",
        "decided",
    ]
    candidates, test = artifacts.read_matrix("data", "candidates"), artifacts.read("data/split.npy")
    assert len(pseudo_labels) == candidates[~test].sum()
    for row in pseudo_labels.sample(20, random_state=0).itertuples():
        i, j = int(row.instance.split()[1]), Tiny().data.label_names.index(row.label)
        assert candidates[i, j] == 1
        assert not test[i]
    predictions = artifacts.read("data/predictions.parquet")
    assert predictions.columns.tolist() == ["instance", "rock", "R&B (80s)", "NA", "01"]
    assert predictions.instance.tolist() == [f"song {i}" for i in np.flatnonzero(test)]
    assert artifacts.read("metrics/per_label.csv").label.tolist() == Tiny().data.label_names


def test_the_audit_is_of_the_training_rows_by_their_confidence(tiny_project):
    run_all()
    page = Path("metrics/audit.html").read_text()
    test = artifacts.read("data/split.npy")
    candidates = artifacts.read_matrix("data", "candidates")[~test].sum()
    assert f"{(~test).sum()} instances with {candidates} tags of\n4 labels" in page
    assert "<title>tiny: which tags are wrong</title>" in page
    assert audit.PROBABILITY in page
    assert 'id="calibration"' in page


def test_the_audit_shows_the_items_as_people_know_them(tiny_project):
    data = Tiny().data
    Path("data/own").mkdir(parents=True)
    songs = pd.DataFrame(data.features, columns=data.feature_names)
    names = np.array(["rock", "jazz", "pop", "folk"])
    songs["tags"] = [";".join(names[row == 1]) for row in np.maximum(data.truth, data.truth[::-1])]
    songs["title"] = [f"Opus {i}" for i in range(60)]
    songs.to_csv("data/own/songs.csv", index=False)
    own = {"name": None, "features": "data/own/songs.csv", "tags": "tags", "show": ["title"]}
    change("dataset", own)
    run_all()
    assert artifacts.read("data/prepared/names.json")["features"] == data.feature_names
    page = Path("metrics/audit.html").read_text()
    table = json.loads(re.search(r'id="data">(.*?)</script>', page, re.S).group(1))["tables"][0]
    assert table["columns"][1] == ["shown 1", "title", "text"]
    assert all(title == f"Opus {instance}" for instance, title, *_ in table["rows"])
    change("dataset", own | {"name": "yeast", "features": None, "tags": None})
    with pytest.raises(UserError, match="dataset: show is for files of your own"):
        settings.load()


def test_tags_of_params_may_be_columns_of_zero_and_one(tiny_project):
    Path("data/own").mkdir(parents=True)
    text = "tempo,rock,jazz\n" + "".join(f"{i},{i % 2},{i % 3 % 2}\n" for i in range(20))
    Path("data/own/x.csv").write_text(text)
    change("dataset", {"name": None, "features": "data/own/x.csv", "tags": "rock,jazz"})
    run_all("prepare")
    names = artifacts.read("data/prepared/names.json")
    assert (names["features"], names["labels"]) == (["tempo"], ["rock", "jazz"])
    change("dataset", {"tags": "rock,jaz"})
    with pytest.raises(UserError, match=r"x\.csv: dataset\.tags: has no column 'jaz'; its columns"):
        run_all("prepare")


def test_the_audit_of_another_method_says_that_it_has_no_probabilities(tiny_project):
    apply("pml-ni")
    page = Path("metrics/audit.html").read_text()
    assert "<title>tiny by pml-ni: which tags are wrong</title>" in page
    assert evaluate.PSEUDO_LABEL in page
    assert audit.PROBABILITY not in page


def test_noise_does_not_depend_on_the_fold(tiny_project, params):
    run_all("inject_noise")
    before = artifacts.read_matrix("data", "candidates"), artifacts.read("data/split.npy")
    change("split", {"fold": 3})
    run_all("inject_noise")
    np.testing.assert_array_equal(artifacts.read_matrix("data", "candidates"), before[0])
    assert not (artifacts.read("data/split.npy") & before[1]).any()


def test_candidates_that_a_set_brings_are_kept(tiny_project, monkeypatch):
    own = np.ones((60, 4), np.uint8)
    monkeypatch.setitem(REGISTRY, "tiny", Tiny(candidates=own))
    run_all("inject_noise")
    np.testing.assert_array_equal(artifacts.read_matrix("data", "candidates"), own)


def test_a_set_without_truth_runs_through_and_nothing_is_held_out(
    tiny_project, monkeypatch, capsys
):
    own = (np.arange(240).reshape(60, 4) % 3 > 0).astype(np.uint8)
    monkeypatch.setitem(REGISTRY, "tiny", Tiny(candidates=own, truth=None))
    run_all()
    assert not artifacts.read("data/split.npy").any()
    assert len(artifacts.read("data/pseudo_labels.csv")) == own.sum()
    measured = artifacts.read("metrics/evaluation.json")
    assert set(measured.pop("noise_auc").values()) == {None}
    assert set(measured.pop("label_confidence").values()) == {None}
    assert set(measured.pop("printed").values()) == {None}
    told = measured.pop("labels")
    assert set(measured.values()) == {None}
    confidence = artifacts.read("data/pseudo_labels.parquet").label_confidence
    assert told["tags"] == own.sum()
    assert told["suspicious"] == (confidence < 0.5).sum()
    assert told["wrong_share"] == pytest.approx(1 - confidence.mean())
    assert told["mean_confidence"] == pytest.approx(confidence.mean())
    assert 0.5 < told["leave_one_out_average_precision"] < 1
    assert "decided_share" not in told
    assert artifacts.read("metrics/noise.json") == {}
    assert "no rows are held out" in capsys.readouterr().err
    histogram = artifacts.read("metrics/candidates.csv")
    assert histogram.F_unknown.sum() == pytest.approx(1)
    assert histogram.F_true.sum() == 0


@pytest.mark.parametrize("kind", ["uniform", "label_dependent", "instance_dependent"])
def test_other_noise_models_keep_the_truth_and_state_the_rate_they_reached(
    tiny_project, kind, capsys
):
    change("noise", {"kind": kind, "rate": 0.4})
    run_all("inject_noise")
    candidates = artifacts.read_matrix("data", "candidates")
    assert (candidates >= Tiny().data.truth).all()
    reached = artifacts.read("metrics/noise.json")["rate"]
    assert reached == pytest.approx(0.4, abs=0.1)
    assert f"{reached:.1%} of all false labels are candidates" in capsys.readouterr().out


def test_pseudo_labels_in_another_order_are_refused(tiny_project):
    run_all("judge_labels")
    table = artifacts.read("models/wsc-pml/pseudo_labels.parquet")
    for other in (table[::-1], table[:-1]):
        artifacts.write("models/wsc-pml/pseudo_labels.parquet", other)
        with pytest.raises(UserError, match="its rows are not the candidates"):
            STAGES["train_classifier"](settings.load())


def test_sparse_features_run_through(tiny_project, monkeypatch):
    dense = Tiny().data.features * (np.arange(300).reshape(60, 5) % 13 == 0)
    monkeypatch.setitem(REGISTRY, "tiny", Tiny(features=dense))
    run_all()
    assert Path("data/prepared/features.npz").exists()
    assert not Path("data/prepared/features.npy").exists()
    assert 0 <= artifacts.read("metrics/evaluation.json")["ranking_loss"] <= 1


@pytest.fixture
def file_project(tiny_project, monkeypatch):
    """Settings that name a set of two files in a mirror."""
    mirror = tiny_project / "mirror"
    mirror.mkdir()
    data = Tiny().data
    np.savez(mirror / "x.npz", features=data.features)
    np.savez(mirror / "y.npz", truth=data.truth)
    known = [File(f"{name}.npz", digest(mirror / f"{name}.npz"), None) for name in "xy"]
    monkeypatch.setitem(REGISTRY, "tiny", Named(60, 5, 4, 1.2, "", "", files=tuple(known)))
    monkeypatch.setenv("WSCPML_DATA", str(mirror))
    return tiny_project


def test_once_fetched_a_named_set_is_read_without_mirror_and_network(file_project, monkeypatch):
    run_all("fetch")
    files = {name: digest(Path("mirror") / name) for name in ("x.npz", "y.npz")}
    assert artifacts.read("data/raw/files.json") == files
    shutil.rmtree("mirror")
    monkeypatch.delenv("WSCPML_DATA")
    monkeypatch.setenv("WSCPML_CACHE", str(file_project / "cache"))
    run_all("prepare")
    np.testing.assert_array_equal(artifacts.read("data/prepared/truth.npy"), Tiny().data.truth)
    Path("data/raw/x.npz").unlink()
    with pytest.raises(UserError, match="x.npz: is not public"):
        STAGES["fetch"](settings.load())


@pytest.mark.parametrize("harm", [Path.unlink, lambda path: path.write_bytes(b"?")])
def test_a_raw_file_that_is_not_the_fetched_one_is_refused_and_fetched_anew(file_project, harm):
    run_all("fetch")
    path = Path("data/raw/x.npz")
    whole = path.read_bytes()
    harm(path)
    with pytest.raises(UserError, match="data/raw/x.npz: is missing or not the file that was"):
        STAGES["prepare"](settings.load())
    assert not Path("data/prepared").exists()
    run_all("prepare")
    assert path.read_bytes() == whole


def test_raw_files_of_another_set_do_not_stay(file_project, monkeypatch):
    run_all("fetch")
    monkeypatch.setitem(REGISTRY, "tiny", Tiny())
    run_all("fetch")
    assert [path.name for path in Path("data/raw").iterdir()] == ["files.json"]


def test_more_candidates_than_labels_leave_no_output(tiny_project, params):
    params["dataset"]["name"], params["noise"]["candidates"] = "tiny", 5
    Path("params.yaml").write_text(yaml.safe_dump(params))
    with pytest.raises(UserError, match="noise.candidates: must be at most 4"):
        run_all("inject_noise")
    assert not Path("data/candidates.npz").exists()


def reads(monkeypatch, stage: str) -> set[Path]:
    """What a stage reads."""
    read, inputs = artifacts.read, set()
    with monkeypatch.context() as patch:
        patch.setattr(
            artifacts, "read", lambda path, **ways: inputs.add(Path(path)) or read(path, **ways)
        )
        STAGES[stage](settings.load())
    return inputs


@pytest.mark.parametrize("name", list(STAGES)[1:])
@pytest.mark.parametrize(("harm", "words"), [(None, "is missing"), (0.6, "is damaged or cut off")])
def test_a_stage_refuses_a_harmed_input_before_it_writes(
    tiny_project, monkeypatch, name, harm, words
):
    run_all(name)
    inputs = reads(monkeypatch, name)
    declared = {file for path in paths(name, "deps") for file in files_in(path)}
    assert inputs
    assert inputs <= declared
    for path in outputs(name):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    for file in inputs:
        whole = file.read_bytes()
        file.unlink()
        if harm:
            file.write_bytes(whole[: int(harm * len(whole))])
        with pytest.raises(UserError) as mistake:
            STAGES[name](settings.load())
        assert str(mistake.value).startswith(f"{file}: {words}")
        assert "\n" not in str(mistake.value)
        assert not [path for path in outputs(name) if path.exists()]
        file.write_bytes(whole)


def test_a_users_mistake_is_plain_lines_on_stderr_and_exit_1(tiny_project, params):
    params["dataset"]["name"] = "yeast"
    params["clustering"]["alpha"] = -1
    params["noise"]["kandidates"] = 3
    Path("params.yaml").write_text(yaml.safe_dump(params))
    for command in ("stages.identify", "wscpml.settings"):
        assert refused(command) == [
            "params.yaml: noise.kandidates: unknown key; "
            "known here: kind, candidates, rate, missing",
            "params.yaml: clustering.alpha: must be > 0, got -1",
        ]


def refused(command: str) -> list[str]:
    """Lines that a module ends with, exit 1 and nothing else said."""
    done = subprocess.run(
        [sys.executable, "-m", command],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 1
    assert done.stdout == ""
    return done.stderr.splitlines()


def test_clustering_that_does_not_settle_says_so(tiny_project, capsys):
    change("clustering", {"max_iterations": 1, "beta": 0.1})
    run_all("cluster")
    assert "clustering.max_iterations: F still changed by" in capsys.readouterr().err


def test_kernel_ridge_is_a_classifier_too_and_leaves_out_of_sample_scores(tiny_project):
    change("classifier", {"kind": "kernel_ridge"})
    run_all()
    candidates, test = artifacts.read_matrix("data", "candidates"), artifacts.read("data/split.npy")
    left_out = artifacts.read("models/wsc-pml/classifier/leave_one_out.npy")
    found = artifacts.read("metrics/evaluation.json")["noise_auc"]
    assert found["leave_one_out"] > found["F"]
    table = artifacts.read("data/pseudo_labels.parquet")
    np.testing.assert_array_equal(table.leave_one_out, left_out)
    assert len(left_out) == candidates[~test].sum()
    predictions = artifacts.read("data/predictions.parquet").drop(columns="instance")
    assert predictions.to_numpy().min() >= 0
    assert predictions.to_numpy().max() <= 1


def test_the_papers_own_labels_are_measured_beside_the_cleaned_ones(tiny_project):
    run_all()
    cleaned = artifacts.read("metrics/evaluation.json")
    change("classifier", {"labels": "printed"})
    run_all()
    printed = artifacts.read("metrics/evaluation.json")
    names = list(printed["printed"])
    assert len(names) == 5
    assert cleaned["printed"] == printed["printed"] == {name: printed[name] for name in names}
    assert {name: cleaned[name] for name in names} != cleaned["printed"]
    assert cleaned["label_confidence"] == printed["label_confidence"]


def test_noise_rates_are_told_label_by_label(tiny_project):
    run_all("judge_labels")
    rates = artifacts.read("models/wsc-pml/noise_rates.csv")
    candidates, test = artifacts.read_matrix("data", "candidates"), artifacts.read("data/split.npy")
    assert rates.label.tolist() == Tiny().data.label_names
    assert rates.candidates.tolist() == candidates[~test].sum(axis=0).tolist()
    assert rates.noise_rate.between(rates.lower, rates.upper).all()
    found = artifacts.read("models/wsc-pml/noise.json")
    assert found["kind"] in ("none seen", "common", "per label", "pairs")
    assert all(isinstance(line, str) for line in found["remarks"])


def test_the_command_predicts_with_the_model_of_the_pipeline(tiny_project):
    run_all()
    data, test = Tiny().data, artifacts.read("data/split.npy")
    table = pd.DataFrame(data.features[test], columns=data.feature_names)
    artifacts.write("new.csv", table.assign(song=np.array(data.instance_ids)[test]))
    main(["predict", "models/wsc-pml/classifier", "new.csv", "--id", "song", "-o", "out.parquet"])
    found, expected = artifacts.read("out.parquet"), artifacts.read("data/predictions.parquet")
    assert found.columns.tolist() == ["song", *data.label_names, "labels"]
    assert found.song.tolist() == expected.instance.tolist()
    np.testing.assert_allclose(found[data.label_names], expected[data.label_names], rtol=1e-6)


def test_evaluation_holds_the_five_metrics_and_noise_identification(tiny_project):
    run_all()
    found = json.loads(Path("metrics/evaluation.json").read_text())
    assert list(found) == [
        "average_precision",
        "ranking_loss",
        "one_error",
        "coverage",
        "hamming_loss",
        "printed",
        "label_confidence",
        "labels",
        "noise_auc",
    ]
    assert list(found["noise_auc"]) == ["B", "pi", "F", "label_confidence"]
    told = found["noise_auc"]
    assert told["label_confidence"] > told["F"]
    assert "auc" not in found["label_confidence"]  # one figure, one name


@pytest.mark.parametrize("name", [name for name in METHODS if name != "wsc-pml"])
def test_any_other_method_runs_in_place_of_the_stages(tiny_project, name):
    measured = apply(name)
    assert measured["average_precision"] > 0.6
    assert measured["noise_auc"]["F"] > 0.5
    candidates, test = artifacts.read_matrix("data", "candidates"), artifacts.read("data/split.npy")
    X, truth = Tiny().data.features, Tiny().data.truth
    fitted = method(name)(random_state=stream(0, "method"))
    fitted.fit(X[~test], (truth if name == "oracle" else candidates)[~test])
    table = artifacts.read("data/pseudo_labels.parquet")
    assert table.columns.tolist() == ["instance", "label", "F", "decided"]
    np.testing.assert_array_equal(table.F, fitted.pseudo_labels_[candidates[~test] == 1])
    for file, expected in (
        ("predictions", fitted.predict_proba(X[test])),
        ("predicted_labels", fitted.predict(X[test])),
    ):
        found = artifacts.read(f"data/{file}.parquet").drop(columns="instance")
        np.testing.assert_array_equal(found, expected)
    assert measured["hamming_loss"] == np.mean(fitted.predict(X[test]) != truth[test])
    assert artifacts.read("metrics/iterations.csv").objective.tolist() == fitted.objective_
    assert not Path("models/wsc-pml").exists()


def test_another_method_reads_only_what_dvc_expects(tiny_project, monkeypatch):
    apply("pml-ni")
    inputs = reads(monkeypatch, "apply_method")
    declared = {file for path in paths("apply_method", "deps", "pml-ni") for file in files_in(path)}
    assert inputs <= declared
    assert Path("models/pml-ni/params.yaml") in declared


def test_the_threshold_is_for_methods_without_a_rule_of_their_own(tiny_project):
    change("evaluation", {"threshold": 0.9})
    for name, own_rule in (("pml-ni", False), ("nlr", True)):
        apply(name)
        probabilities, labels = (
            artifacts.read(f"data/{file}.parquet").drop(columns="instance").to_numpy()
            for file in ("predictions", "predicted_labels")
        )
        assert ((probabilities >= 0.9) == labels).all() != own_rule


def test_a_parameter_of_another_method_may_be_changed(tiny_project):
    path = Path("models/rf-c/params.yaml")
    path.write_text("trees: 200\nsmallest_leaf: 20\n")
    apply("rf-c")
    coarse = artifacts.read("data/predictions.parquet")
    shutil.copy(ROOT / path, path)
    apply("rf-c")
    assert not coarse.equals(artifacts.read("data/predictions.parquet"))


@pytest.mark.parametrize(
    ("name", "key", "value", "message"),
    [
        ("rf-c", "tree", 3, "tree: unknown key; known here: trees, smallest_leaf"),
        ("rf-c", "trees", "many", "trees: must be a whole number, got 'many'"),
        ("ml-knn", "k", 0, "k: must be >= 1, got 0"),
        ("nlr", "intercept", "some", "intercept: must be true or false, got 'some'"),
        ("pml-ni", "lam", -1, "lam: must be >= 0, got -1"),
        ("br", "kernel", "foo", "kernel: must be 'laplace', 'rbf' or 'none', got 'foo'"),
    ],
)
def test_a_mistake_in_the_parameters_of_a_method_is_one_line(
    tiny_project, name, key, value, message
):
    path = Path(f"models/{name}/params.yaml")
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | {key: value}))
    with pytest.raises(UserError) as mistake:
        settings.parameters(name)
    assert str(mistake.value) == f"{path}: {message}"


def test_another_method_needs_no_truth_unless_it_is_the_oracle(tiny_project, monkeypatch):
    own = (np.arange(240).reshape(60, 4) % 3 > 0).astype(np.uint8)
    monkeypatch.setitem(REGISTRY, "tiny", Tiny(candidates=own, truth=None))
    measured = apply("pml-ni")
    assert measured.pop("noise_auc") == {"F": None}
    assert measured.pop("labels") == {"tags": own.sum()}
    assert set(measured.values()) == {None}
    assert len(artifacts.read("data/pseudo_labels.csv")) == own.sum()
    with pytest.raises(UserError, match="method: oracle needs true labels, and the data set has"):
        apply("oracle")


def test_sparse_features_run_through_another_method(tiny_project, monkeypatch):
    dense = Tiny().data.features * (np.arange(300).reshape(60, 5) % 13 == 0)
    monkeypatch.setitem(REGISTRY, "tiny", Tiny(features=dense))
    assert 0 <= apply("pml-ni")["ranking_loss"] <= 1


def test_a_method_that_is_none_is_one_line_with_those_there_are(tiny_project):
    change("method", "pml")
    change("dataset", {"name": "yeast"})
    for command in ("stages.identify", "wscpml.settings"):
        known = ", ".join(METHODS)
        assert refused(command) == [f"params.yaml: method: must be one of {known}, got 'pml'"]


def test_a_mistake_in_own_files_is_told_in_the_words_of_params_yaml(tiny_project):
    Path("data/own").mkdir(parents=True, exist_ok=True)
    Path("data/own/x.csv").write_text("tempo\n1\n2\n")
    change("dataset", {"name": None, "features": "data/own/x.csv"})
    said = r"where are its tags\? dataset.tags names their column here, or dataset.candidates"
    with pytest.raises(UserError, match=f"data/own/x.csv: {said}"):
        run_all("prepare")


def test_of_very_many_candidates_the_csv_has_the_most_suspicious_and_says_so(monkeypatch, capsys):
    table = pd.DataFrame({"instance": range(6), "label_confidence": [0.9, 0.1, 0.5, 0.3, 0.7, 0.2]})
    assert apply_method.for_people(table) is table
    monkeypatch.setattr(apply_method, "MOST_IN_CSV", 3)
    assert apply_method.for_people(table).instance.tolist() == [1, 3, 5]
    assert "has the 3 most suspicious of 6 candidates" in capsys.readouterr().err


def test_a_large_output_is_left_to_dvc(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(track, "MOST_LOGGED", 10)
    for name in ("large.parquet", "own.csv", "small.parquet"):
        Path(name).write_text("x" * (5 if name == "small.parquet" else 11))
    found = Locked({"large.parquet": "1", "small.parquet": "2"}, {}, {}, {})
    given = ["large.parquet", "own.csv", "small.parquet"]
    assert track.copied(given, found) == ["own.csv", "small.parquet"]
    assert capsys.readouterr().err == "too large for MLflow, kept by DVC alone: large.parquet\n"


def test_a_stage_of_wsc_pml_leaves_its_outputs_empty_where_the_method_is_another(
    tiny_project, capsys
):
    (tiny_project / "models/dvc.yaml").symlink_to(ROOT / "models/dvc.yaml")
    (tiny_project / "data/scaled").mkdir(parents=True)
    change("method", "pml-ni")
    identify.identify(settings.load())
    assert settings.loaded().model_dump() == settings.load().model_dump()
    run(STAGES["learn_prototypes"])
    assert capsys.readouterr().out == "not needed: the method is pml-ni\n"
    assert [path.read_bytes() for path in outputs("learn_prototypes")] == [b"", b""]


def test_what_track_is_to_log_and_is_missing_is_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = Locked({"large.parquet": "1"}, {}, {}, {})
    with pytest.raises(UserError, match=r"large.parquet: cannot be read \(No such file"):
        track.copied(["large.parquet"], found)
    monkeypatch.setattr(track, "named_files", lambda _: ["data/own/x.csv"])
    with pytest.raises(UserError, match=r"data/own/x.csv: cannot be read .*; bring it back"):
        track.sources(settings.load(ROOT / "params.yaml"))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize(
    "line",
    [
        "wscpml=={}",
        "# of ours\r\nWSCPML [pipeline] == {} # pinned",
        "wscpml=={} \\\n    --hash=sha256:00 \\\n    --hash=sha256:01\nother==3",
        'wscpml[pipeline]=={} ; python_version > "3"',
        'wscpml==0.0.2; python_version < "3"\nwscpml=={}',
        "wscpml-extra==9\n-r other.txt\nwscpml=={}",
    ],
)
def test_the_version_that_is_pinned_is_read_as_pip_reads_it(tmp_path, monkeypatch, line, encoding):
    monkeypatch.chdir(tmp_path)
    stages.PINNED.write_bytes(line.format(version("wscpml")).encode(encoding))
    stages.refuse_other_version()
    stages.PINNED.write_bytes(line.format("0.0.1").encode(encoding))
    with pytest.raises(UserError, match=r"requirements-wscpml.txt: names wscpml 0\.0\.1, and"):
        stages.refuse_other_version()


def test_a_pin_in_no_encoding_is_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    stages.PINNED.write_bytes(b"# caf\xe9\nwscpml==1\n")
    with pytest.raises(UserError, match=r"requirements-wscpml.txt: is no text in UTF-8"):
        stages.refuse_other_version()
