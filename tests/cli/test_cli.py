import json
import os
import re
import socket
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import wscpml.review
from tests.contract import small
from wscpml import WSCPML, artifacts
from wscpml.algorithm import features
from wscpml.algorithm.ridge import Ridge
from wscpml.cli import commands, main
from wscpml.datasets.noise import pad_candidates
from wscpml.datasets.registry import REGISTRY
from wscpml.methods import METHODS
from wscpml.quality import decisions, judging
from wscpml.randomness import stream
from wscpml.serving.model import Model, load, save

LABELS = ["rock", "<b>R&B</b>", "NA", '"01", é']
QUICK = ["--set", "classifier.kind=kernel_ridge"]


@pytest.fixture(autouse=True)
def no_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WSCPML_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("WSCPML_DATA", raising=False)
    monkeypatch.setattr(judging, "TREES", 50)


@pytest.fixture
def songs():
    """songs.csv: 160 songs with ids, features and tags of odd names; returns the arrays."""
    X, truth, candidates = small(n=160)
    table = pd.DataFrame(X, columns=[f"x{j}" for j in range(8)])
    table.insert(3, "song", [f"{i:03}" for i in range(160)])
    names = np.array(LABELS, dtype=object)
    table["tags"] = ["|".join(names[row == 1]) for row in candidates]
    table.to_csv("songs.csv", index=False)
    used = candidates[:, [LABELS.index(name) for name in sorted(LABELS)]]
    return X, used, truth


SONGS = ["songs.csv", "--tags", "tags", "--separator", "|", "--id", "song"]


def said_in_json(capsys, *command):
    """What a command prints, which must be JSON and nothing else."""
    main([*command, "--json"])
    return json.loads(capsys.readouterr().out)


def refusal(*command):
    with pytest.raises(SystemExit) as end:
        main(list(command))
    assert isinstance(end.value.code, str)  # goes to stderr, and the exit status is 1
    assert "\n" not in end.value.code
    return end.value.code


def test_datasets_lists_every_set_with_its_benchmarks_and_where_it_is(capsys):
    main(["datasets"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == list(REGISTRY)
    by_name = {line.split()[0]: line for line in lines}
    assert "built in" in by_name["yeast"]
    assert "to fetch" in by_name["emotions"]
    assert "emotions-3, emotions-4, emotions-5" in by_name["emotions"]
    assert "to supply" in by_name["Music_style"]
    assert "subset" in by_name["Mirflickr"]


def test_a_damaged_file_is_told_in_the_list(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("WSCPML_DATA", str(tmp_path))
    (tmp_path / "emotions.mat").write_text("no")
    main(["datasets"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + len(REGISTRY)
    assert "damaged: " in next(line for line in lines if line.startswith("emotions"))


def test_fetch_says_where_files_are_and_what_it_does_not_know(capsys):
    main(["fetch", "yeast-9"])
    assert capsys.readouterr().out == "yeast: built in\n"
    with pytest.raises(SystemExit, match="beast: no such data set; known are Mirflickr"):
        main(["fetch", "yeast", "beast"])
    with pytest.raises(SystemExit, match="Music_style.mat: is not public; put it into data/own/"):
        main(["fetch", "Music_style"])


def test_describe_says_what_was_understood(capsys):
    Path("songs.csv").write_text(
        "song,tempo,loud,tags\na,1,0,rock;jazz\nb,2,0,rock\nc,2,0,\nd,3,0,rock\n"
    )
    main(["describe", "songs.csv", "--tags", "tags", "--id", "song"])
    assert capsys.readouterr().out.splitlines() == [
        "instances           4, from 'a' to 'd'",
        "features            2, from 'tempo' to 'loud'",
        "values not 0        50.0%",
        "constant columns    1: loud",
        "duplicate rows      1",
        "labels              2",
        "candidates a row    1.00 on average, 0 to 2",
        "true labels a row   not given",
        "rows without label  1",
        "labels by frequency (candidates):",
        "  rock       3    75.0%",
        "  jazz       1    25.0%",
        "warning: songs.csv: 1 instances have no label and count as pure negatives",
    ]
    main(["describe", "yeast-7"])
    assert "labels              14" in capsys.readouterr().out
    Path("y.csv").write_text("song,label\na,rock\nb,rock\nc,jazz\nd,rock\n")
    Path("x.csv").write_text("song,tempo\na,1\nb,2\nc,2\nd,3\n")
    main(["describe", "x.csv", "y.csv", "--id", "song"])
    assert "candidates a row    1.00 on average, 1 to 1" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="yeast: is a named data set; --tags is for files"):
        main(["describe", "yeast", "--tags", "x"])
    with pytest.raises(SystemExit, match="--tags names their column here, or CANDIDATES another"):
        main(["describe", "x.csv"])
    with pytest.raises(SystemExit, match="nothing.csv: no such file"):
        main(["describe", "nothing.csv", "--tags", "tags"])


def test_sparse_rows_are_counted_once_too(capsys):
    Path("x.svmlight").write_text("1 1:2\n1,2 1:2\n2 2:1\n")
    main(["describe", "x.svmlight"])
    said = capsys.readouterr().out
    assert "duplicate rows      1" in said
    assert "values not 0        50.0%" in said


def test_methods_lists_every_method_with_its_title_and_source(capsys):
    main(["methods"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == list(METHODS)
    by_name = {line.split()[0]: line for line in lines}
    assert "PML-LENFN" in by_name["pml-lenfn"]
    assert "PAMB-style" in by_name["pamb"]
    assert "reconstruction" in by_name["pamb"]


def test_the_command_is_installed_and_helps():
    command = Path(sys.executable).parent / "wscpml"
    done = subprocess.run([command, "--help"], capture_output=True, text=True, check=True)
    assert "wscpml describe songs.csv --tags tags --id song" in done.stdout
    assert subprocess.run([command, "fly"], capture_output=True).returncode == 2


def test_help_waits_for_no_slow_import(capsys):
    code = (
        "import sys\n"
        "from wscpml.cli import main\n"
        "try:\n"
        "    main(['--help'])\n"
        "except SystemExit:\n"
        "    print({'numpy', 'pandas', 'sklearn', 'torch'} & set(sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("\nset()\n")


def test_the_version_is_told(capsys):
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out == f"wscpml {version('wscpml')}\n"


def test_a_command_that_is_stopped_says_so_and_no_more(capsys, monkeypatch):
    def stop(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(commands, "datasets", stop)
    with pytest.raises(SystemExit) as end:
        main(["datasets"])
    assert end.value.code == 130
    assert capsys.readouterr() == ("", "stopped\n")


def test_a_reader_that_has_seen_enough_is_no_failure():
    command = [sys.executable, "-m", "wscpml", "datasets"]
    root = str(Path(wscpml.__file__).parents[1])
    with subprocess.Popen(
        command,
        env=os.environ | {"PYTHONPATH": root},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


@pytest.mark.parametrize(
    "command", ["describe", "clean", "audit", "predict", "datasets", "fetch", "methods"]
)
def test_every_command_helps_with_examples(capsys, command):
    with pytest.raises(SystemExit) as end:
        main([command, "--help"])
    assert end.value.code == 0
    assert f"examples:\n  wscpml {command}" in capsys.readouterr().out


@pytest.mark.parametrize(
    "wrong",
    [
        "clean songs.csv",
        "clean songs.csv -o out.xls",
        "clean songs.csv -o out.csv --label-studio tasks.xml",
        "audit songs.csv --html page.pdf",
        "predict model new.csv -o out.json",
    ],
)
def test_wrong_usage_is_told_before_any_work(capsys, wrong):
    with pytest.raises(SystemExit) as end:
        main(wrong.split())
    assert end.value.code == 2


def test_lists_and_descriptions_come_as_json(capsys, songs):
    sets = said_in_json(capsys, "datasets")
    assert [each["name"] for each in sets] == list(REGISTRY)
    assert sets[list(REGISTRY).index("emotions")]["benchmarks"][0] == "emotions-3"
    assert [each["name"] for each in said_in_json(capsys, "methods")] == list(METHODS)
    found = said_in_json(capsys, "describe", *SONGS)
    _, candidates, _ = songs
    assert found["label_names"] == sorted(LABELS)
    assert found["label_counts"] == candidates.sum(axis=0).tolist()
    assert found["candidates_a_row"] == candidates.sum(axis=1).mean()
    assert found["true_labels_a_row"] is None
    assert (found["instances"], found["features"], found["duplicate_rows"]) == (160, 8, 0)


@pytest.mark.parametrize("output", ["out.csv", "out.parquet"])
def test_clean_gives_what_the_estimator_finds(capsys, songs, output):
    X, candidates, _ = songs
    said = said_in_json(capsys, "clean", *SONGS, *QUICK, "--seed", "5", "-o", output)
    fitted = WSCPML(kind="kernel_ridge", random_state=5).fit(X, candidates)
    found = artifacts.read(output)
    row, label = np.nonzero(candidates)
    if output == "out.csv":
        found.instance = found.instance.map("{:03}".format)
    assert found.columns.tolist() == ["instance", "label", "label_confidence", "keep", "decided"]
    assert set(found.decided.dropna()) <= {""}
    assert found.instance.tolist() == [f"{i:03}" for i in row]
    assert found.label.tolist() == [sorted(LABELS)[j] for j in label]
    np.testing.assert_allclose(
        found.label_confidence, fitted.label_confidence_[row, label], rtol=1e-9
    )
    assert found.keep.tolist() == (found.label_confidence >= 0.5).astype(int).tolist()
    assert said["candidates"] == len(found)
    assert said["suspicious"] == len(fitted.find_label_issues()) == (found.keep == 0).sum()
    assert said["estimated_noise_rate"] == pytest.approx(1 - found.label_confidence.mean())


def test_clean_leaves_a_model_and_tasks_for_label_studio(capsys, songs):
    X, candidates, _ = songs
    extra = ["--model", "model", "--label-studio", "tasks.json"]
    main(["clean", *SONGS, *QUICK, "-o", "out.csv", *extra])
    said = capsys.readouterr()
    assert "written: out.csv, model, tasks.json, tasks.xml" in said.out
    (warning,) = said.err.splitlines()  # and no progress where there is no terminal
    assert warning.startswith("warning: songs.csv: 4 instances have no label")
    fitted = WSCPML(kind="kernel_ridge", random_state=0).fit(X, candidates)
    np.testing.assert_allclose(load("model").predict_proba(X), fitted.predict_proba(X), rtol=1e-6)
    table, tasks = artifacts.read("out.csv"), artifacts.read("tasks.json")
    assert len(tasks) == table.instance[table.keep == 0].nunique()
    assert {tag for task in tasks for tag in task["data"]["tags"]} == set(LABELS)
    assert "&lt;b&gt;R&amp;B&lt;/b&gt;" in Path("tasks.xml").read_text()
    main(["clean", *SONGS, *QUICK, "-o", "out.csv", "--model", "model"])  # in its place


def test_items_are_shown_by_the_columns_that_people_know_them_by(capsys, songs):
    table = pd.read_csv("songs.csv", dtype=str)
    table["title"] = [f"<i>Song {i}</i>" for i in range(len(table))]
    table["cover"] = [f"covers/{i}.png" for i in range(len(table))]
    table.to_csv("songs.csv", index=False)
    shown = ["--show", "title, cover"]
    assert said_in_json(capsys, "describe", *SONGS, *shown)["features"] == 8
    extra = ["-o", "out.csv", "--label-studio", "tasks.json"]
    main(["clean", *SONGS, *QUICK, *shown, *extra])
    tasks = artifacts.read("tasks.json")
    for task in tasks:
        number = int(task["data"]["instance"])
        assert task["data"]["shown1"] == f"<i>Song {number}</i>"
        assert task["data"]["shown2"] == f"covers/{number}.png"
    assert '<Image name="shown2" value="$shown2"/>' in Path("tasks.xml").read_text()
    main(["queue", *SONGS, *QUICK, *shown, "-o", "next.parquet", "--size", "5"])
    asked = artifacts.read("next.parquet")
    assert asked.title.tolist() == [f"<i>Song {int(name)}</i>" for name in asked.instance]
    assert not len(decisions.last_words(decisions.read(Path("next.parquet"))))  # not filled in
    main(["audit", *SONGS, *QUICK, *shown, "--html", "page.html"])
    page = Path("page.html").read_text()
    assert "covers/" in page
    assert "<i>" not in page
    said = refusal("audit", *SONGS, *QUICK, "--show", "titel", "--html", "page.html")
    assert said.startswith("songs.csv: --show: has no column 'titel'; its columns are x0, x1")
    said = refusal("audit", "emotions-4", "--show", "title", "--html", "page.html")
    assert said == "emotions: is a named data set; --show is for files of your own"


@pytest.mark.parametrize("name", ["note", "reviewer", "time", "chosen"])
def test_a_queue_shows_no_column_that_is_called_like_one_of_its_own(songs, name):
    table = pd.read_csv("songs.csv", dtype=str).assign(**{name: "mine"})
    table.to_csv("songs.csv", index=False)
    said = refusal("queue", *SONGS, *QUICK, "--show", name, "-o", "next.csv")
    assert said == f"--show {name}: is a column of our own table; rename yours"
    assert not Path("next.csv").exists()


def test_what_a_person_has_decided_is_certain_and_no_issue_any_more(capsys, songs):
    X, candidates, _ = songs
    names = sorted(LABELS)
    wrong, right = np.argwhere(candidates == 1)[[0, -1]]
    added = np.argwhere(candidates == 0)[0]
    rows = [(*wrong, "false"), (*right, "TRUE"), (*added, "1")]
    table = pd.DataFrame(
        [(f"{i:03}", names[j], word, "ann") for i, j, word in rows],
        columns=["instance", "label", "decision", "reviewer"],
    )
    table.to_csv("decisions.csv", index=False)
    given = ["--decisions", "decisions.csv"]
    said = said_in_json(capsys, "clean", *SONGS, *QUICK, *given, "-o", "out.parquet")
    found = artifacts.read("out.parquet").set_index(["instance", "label"])
    for i, j, word in rows:
        one = found.loc[(f"{i:03}", names[j])]
        true = word != "false"
        assert (one.label_confidence, one.keep, one.decided) == (true, true, str(true).lower())
    assert (said["decided"], said["candidates"]) == (3, candidates.sum() + 1)
    assert said["suspicious"] == ((found.keep == 0) & (found.decided == "")).sum()
    index = pd.Index([f"{i:03}" for i in range(len(X))])
    fitted = WSCPML(kind="kernel_ridge", random_state=0).fit(
        X, pd.DataFrame(candidates, index, names), decisions=table
    )
    label = found.index.get_level_values(1).map(names.index).to_numpy()
    row = found.index.get_level_values(0).astype(int).to_numpy()
    theirs = fitted.label_confidence_.to_numpy()[row, label]
    np.testing.assert_allclose(found.label_confidence, theirs, rtol=1e-9)
    main(["audit", *SONGS, *QUICK, *given, "--html", "page.html"])
    page = Path("page.html").read_text()
    assert "A person has decided 3 tags: 2 to be right,\n1 to be wrong." in page
    assert f"<b>{said['suspicious']}</b> suspicious" in page
    assert "3 are decided" in capsys.readouterr().out


def own_scores(candidates):
    """A table of what a model of one's own may say, in an order of its own."""
    table = pd.DataFrame(0.2 + 0.6 * candidates[:, ::-1], columns=sorted(LABELS)[::-1])
    table.insert(2, "song", [f"{i:03}" for i in range(len(table))])
    return table[::-1]


def test_probabilities_of_ones_own_model_are_matched_by_id_and_label(songs):
    X, candidates, _ = songs
    own_scores(candidates).set_index("song").to_parquet("oof.parquet")
    main(["clean", *SONGS, *QUICK, "-o", "out.parquet", "--probabilities", "oof.parquet"])
    found = artifacts.read("out.parquet").label_confidence
    fitted = WSCPML(kind="kernel_ridge", random_state=0).fit(
        X, candidates, probabilities=0.2 + 0.6 * candidates
    )
    theirs = fitted.label_confidence_[candidates == 1]
    np.testing.assert_allclose(found, theirs, rtol=1e-9)
    assert (
        abs(
            found
            - WSCPML(kind="kernel_ridge", random_state=0)
            .fit(X, candidates)
            .label_confidence_[candidates == 1]
        ).max()
        > 0.01
    )


def test_variants_are_merged_in_probabilities_too(songs):
    _, candidates, _ = songs
    scores = own_scores(candidates)
    scores.to_parquet("oof.parquet")
    command = ["clean", *SONGS, *QUICK, "--merge-variants", "--probabilities"]
    main([*command, "oof.parquet", "-o", "out.csv"])
    first = sorted(LABELS)[0]
    spelt = scores.rename(columns={first: f" {first.upper()}"}).assign(**{first: 0.1})
    spelt.to_parquet("spelt.parquet")
    main([*command, "spelt.parquet", "-o", "again.csv"])
    assert Path("again.csv").read_text() == Path("out.csv").read_text()


def test_a_mistake_in_probabilities_is_one_line_and_nothing_is_written(songs):
    right = own_scores(songs[1])
    command = ["clean", *SONGS, *QUICK, "-o", "out.csv", "--probabilities", "oof.csv"]
    for wrong, words in (
        (right.drop(columns="song"), "has no column 'song', the --id"),
        (right.drop(columns="rock"), "has no column 'rock', which the candidates have"),
        (right.assign(pop=0.5), "has a column 'pop', which the candidates do not have"),
        (right[1:], "has no row '159', which the candidates have"),
        (right.assign(rock=2), "row '000', column 'rock': must be from 0 to 1, got 2"),
        (right.assign(rock=np.nan), "row '000', column 'rock': must be from 0 to 1, got nan"),
        (right.assign(rock="x"), "row '000', column 'rock': must be from 0 to 1, got 'x'"),
    ):
        wrong.to_csv("oof.csv", index=False)
        assert refusal(*command).startswith(f"oof.csv: --probabilities: {words}")
    assert "oof.npy: --probabilities: is no table" in refusal(*command[:-1], "oof.npy")
    assert not Path("out.csv").exists()
    command[command.index("out.csv")] = "oof.csv"
    assert "oof.csv: is an input, which -o would overwrite" in refusal(*command)


def test_missing_tags_are_written_and_shown(capsys, songs):
    _, candidates, _ = songs
    pages = ["--html", "page.html", "--missing", "missing.csv"]
    said = said_in_json(capsys, "clean", *SONGS, *QUICK, "-o", "out.csv", *pages)
    found = pd.read_csv("missing.csv", dtype={"instance": str}, keep_default_na=False)
    assert said["missing"] == "missing.csv"
    assert said["noise"]["lost"] > 0
    assert list(found)[:3] == ["instance", "label", "probability"]
    assert found.probability.is_monotonic_decreasing
    label = found.label.map(sorted(LABELS).index).to_numpy()
    assert not candidates[found.instance.astype(int).to_numpy(), label].any()
    assert '<h2 id="missing">Missing tags</h2>' in Path("page.html").read_text()
    main(["audit", *SONGS, *QUICK, "--html", "page.html"])
    assert "Missing tags" not in Path("page.html").read_text()


def test_a_mistake_in_decisions_is_one_line_and_nothing_is_written(songs):
    Path("decisions.csv").write_text("instance,label,decision\n000,roll,true\n")
    command = ["clean", *SONGS, *QUICK, "-o", "out.csv", "--decisions", "decisions.csv"]
    assert refusal(*command).startswith("decisions.csv: label 'roll' not in the data (1 such)")
    Path("decisions.csv").write_text("instance,label,decision\n000,rock,perhaps\n")
    assert refusal(*command).startswith("decisions.csv: row 1: 'perhaps' is no decision")
    assert not Path("out.csv").exists()
    command[command.index("out.csv")] = "decisions.csv"
    assert "decisions.csv: is an input, which -o would overwrite" in refusal(*command)


def test_a_directory_that_is_no_model_is_not_replaced(songs):
    Path("music").mkdir()
    Path("music/a.mp3").write_text("do not lose me")
    said = refusal("clean", *SONGS, *QUICK, "-o", "out.csv", "--model", "music")
    assert said == "music: is there, and is not just a model; name a new directory"
    assert Path("music/a.mp3").exists()
    assert not Path("out.csv").exists()


def test_settings_come_from_a_file_and_single_changes(songs):
    said = refusal("clean", *SONGS, "-o", "out.csv", "--set", "clustering.alpha=-1")
    assert said == "--set clustering.alpha=-1: must be > 0"
    Path("my.yaml").write_text("seed: 5\ndataset: ignored\n")
    main(["clean", *SONGS, *QUICK, "--params", "my.yaml", "-o", "a.csv"])
    main(["clean", *SONGS, *QUICK, "--seed", "5", "-o", "b.csv"])
    main(["clean", *SONGS, *QUICK, "--seed", "6", "-o", "c.csv"])
    a, b, c = (Path(f"{name}.csv").read_text() for name in "abc")
    assert a == b != c
    assert "none.yaml: is missing" in refusal(
        "clean", *SONGS, "--params", "none.yaml", "-o", "a.csv"
    )


def test_a_benchmark_has_the_candidates_of_the_pipeline(monkeypatch):
    monkeypatch.setattr(judging, "TREES", 30)
    options = [*QUICK, "--set", "features.kernel=none", "--seed", "3"]
    main(["clean", "yeast-7", "-o", "out.parquet", *options])
    found, truth = pd.read_parquet("out.parquet"), REGISTRY["yeast"].load().truth
    row, _ = np.nonzero(pad_candidates(truth, 7, stream(3, "noise")))
    assert found.instance.tolist() == row.tolist()
    said = refusal("clean", "yeast", "-o", "out.csv")
    assert said.startswith("yeast: has true labels and no candidates; take a benchmark: yeast-7,")


def test_one_instance_is_too_few(capsys):
    Path("x.csv").write_text("a,tags\n1,rock\n")
    said = refusal("clean", "x.csv", "--tags", "tags", "-o", "out.csv")
    assert said == "x.csv: has 1 instances; there must be more to learn from"


def test_audit_writes_the_page_of_what_the_estimator_finds(capsys, songs):
    X, candidates, _ = songs
    said = said_in_json(capsys, "audit", *SONGS, *QUICK, "--html", "page.html")
    fitted = WSCPML(kind="kernel_ridge", random_state=0).fit(
        X, pd.DataFrame(candidates, [f"{i:03}" for i in range(160)], sorted(LABELS))
    )
    issues = fitted.find_label_issues()
    assert said["html"] == "page.html"
    assert said["suspicious"] == len(issues) > 0
    page = Path("page.html").read_text(encoding="utf-8")
    assert "songs.csv" in page
    assert set(re.findall(r"https?://[^\s\"'<]*", page)) == {"http://www.w3.org/2000/svg"}
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    tags, labels = json.loads(data)["tables"]
    listed = [row[:2] for row in tags["rows"]]
    assert listed == issues[["instance", "label"]].to_numpy().tolist()[: len(listed)]
    assert len(listed) + tags["left_out"] == len(issues)
    assert {row[0] for row in labels["rows"]} == set(LABELS)


def test_truth_of_some_rows_is_told_and_the_others_are_unknown_on_the_page(capsys, songs):
    _, candidates, _ = songs
    rows = np.flatnonzero(candidates.any(axis=1))[:10]
    first = [sorted(LABELS)[j] for j in candidates[rows].argmax(axis=1)]
    truth = pd.DataFrame({"song": [f"{i:03}" for i in rows], "label": first})
    truth.to_csv("t.csv", index=False)
    told = (
        "songs.csv: the true labels of 150 of 160 instances are not listed and count as unknown; a "
        "row of weight 0 says that an instance has none"
    )
    found = said_in_json(capsys, "describe", *SONGS, "--truth", "t.csv")
    assert found["true_labels_a_row"] == 1
    assert told in found["warnings"]
    found = said_in_json(capsys, "audit", *SONGS, *QUICK, "--truth", "t.csv", "--html", "page.html")
    assert found["warnings"][-1] == told
    page = Path("page.html").read_text()
    assert "In truth" in page
    assert '"unknown"' in page


def test_nothing_that_is_read_is_overwritten(songs, model):
    before = Path("songs.csv").read_bytes()
    Path("link.csv").symlink_to("songs.csv")
    Path("same.csv").hardlink_to("songs.csv")
    Path("sub").mkdir()
    Path("x.arff").write_text("")
    Path("x.xml").write_text("")
    Path("settings.json").write_text("seed: 5\n")

    def refused(command, output, option):
        said = f"{output}: is an input, which {option} would overwrite; name another"
        assert refusal(*command) == said

    for output in ("songs.csv", "link.csv", "same.csv", "sub/../songs.csv"):
        refused(["clean", *SONGS, "-o", output], output, "-o")
        refused(["predict", "model", "new.csv", "songs.csv", "-o", output], output, "-o")
    refused(["clean", "x.csv", "songs.csv", "-o", "songs.csv"], "songs.csv", "-o")
    refused(["clean", "x.csv", "--truth", "songs.csv", "-o", "songs.csv"], "songs.csv", "-o")
    refused(["clean", *SONGS, "-o", "out.csv", "--model", "songs.csv"], "songs.csv", "--model")
    refused(["audit", "page.html", "--html", "page.html"], "page.html", "--html")
    clean = ["clean", "-o", "out.csv", "--label-studio"]
    refused(
        [*clean, "settings.json", *SONGS, "--params", "settings.json"],
        "settings.json",
        "--label-studio",
    )
    refused([*clean, "x.json", "x.arff"], "x.xml", "the .xml of --label-studio")
    assert Path("songs.csv").read_bytes() == before


def test_no_two_outputs_are_one_file(songs):
    Path("sub").mkdir()
    both = ["clean", *SONGS, "-o", "out.csv", "--model"]
    assert refusal(*both, "sub/../out.csv") == (
        "sub/../out.csv: is what both -o and --model would write; name another"
    )
    clean = ["clean", *SONGS, "-o", "o.csv", "--label-studio", "tasks.json", "--model"]
    assert refusal(*clean, "tasks.xml") == (
        "tasks.xml: is what both --model and the .xml of --label-studio would write; name another"
    )


@pytest.fixture
def model():
    """A model of three features and three labels in `model`, the weights of which are known."""
    whole = Model(
        features.fit_scaling(np.zeros((1, 3)), "none"),
        Ridge(np.eye(3)[:, ::-1] / 4, np.full(3, 0.25)),
        ["x", "y", "z"],
        ["a;b", "NA", "<i>"],
    )
    save("model", whole)
    return whole


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_predict_gives_probabilities_and_labels_under_their_names(capsys, model, ending):
    X = np.random.default_rng(0).normal(size=(10, 3)) * 3
    table = pd.DataFrame(X, columns=["x", "y", "z"])[["z", "x", "y"]]
    table.insert(1, "id", [f"{i:02}" for i in range(10)])
    table["ignored"] = "text"
    artifacts.write(f"one.{ending}", table[:7])
    artifacts.write(f"two.{ending}", table[7:])
    files = [f"one.{ending}", f"two.{ending}"]
    output = ["--id", "id", "--separator", "|", "-o", f"out.{ending}"]
    said = said_in_json(capsys, "predict", "model", *files, *output)
    assert said == {"rows": 10, "labels": 3, "output": f"out.{ending}"}
    found = artifacts.read(f"out.{ending}")
    expected = model.predict_proba(X)
    assert found.columns.tolist() == ["id", "a;b", "NA", "<i>", "labels"]
    np.testing.assert_allclose(found[model.label_names], expected, rtol=1e-6)
    names = np.array(model.label_names)
    assert found.labels.fillna("").tolist() == ["|".join(names[p >= 0.5]) for p in expected]
    assert found.id.tolist() == (list(range(10)) if ending == "csv" else table.id.tolist())


def test_what_cannot_be_predicted_is_one_line_and_leaves_no_file(model):
    rows = "x,y,z\n" + "1,2,3\n" * 5000
    for content, message in (
        ("x,z\n1,2\n", "new.csv: has no column y, which the model needs; its columns are x, z"),
        (f"{rows}1,,3\n", "new.csv: row 5001, column 'y': is empty; mend that value"),
        (f"{rows}1,2,inf\n", "new.csv: row 5001, column 'z': inf is not a finite number; mend"),
        (f"{rows}1,fast,3\n", "new.csv: row 5001, column 'y': 'fast' is not a number"),
        ("x,y,z\n", "new.csv: has no rows"),
        ("", "new.csv: is empty"),
    ):
        Path("new.csv").write_text(content)
        assert refusal("predict", "model", "new.csv", "-o", "out.csv").startswith(message)
        assert sorted(each.name for each in Path().iterdir()) == ["model", "new.csv"]
    assert refusal("predict", "model", "none.csv", "-o", "out.csv") == "none.csv: no such file"
    assert refusal("predict", "none", "new.csv", "-o", "out.csv").startswith(
        "none/weights.safetensors: is missing; `wscpml clean"
    )
    Path("new.csv").write_text("x,y,z,NA\n1,2,3,4\n")
    said = refusal("predict", "model", "new.csv", "--id", "NA", "-o", "out.csv")
    assert said == "NA: is the name of a label too; rename the column of ids"


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_predict_takes_no_more_memory_for_more_rows(model, ending):
    block = pd.DataFrame(np.random.default_rng(0).normal(size=(4096, 3)), columns=list("xyz"))
    code = (
        "import sys; from wscpml.cli import main; main(sys.argv[1:]);"
        "print(open('/proc/self/status').read().partition('VmHWM:')[2].split()[0])"
    )

    def sizes(blocks):
        """Of the file, and of the process at its peak (ru_maxrss would count its parent's)."""
        artifacts.write(f"in.{ending}", artifacts.Parts(block for _ in range(blocks)))
        command = ["predict", "model", f"in.{ending}", "-o", f"out.{ending}"]
        root = str(Path(wscpml.__file__).parents[1])
        done = subprocess.run(
            [sys.executable, "-c", code, *command],
            env=os.environ | {"PYTHONPATH": root},
            capture_output=True,
            text=True,
            check=True,
        )
        return Path(f"in.{ending}").stat().st_size, int(done.stdout.split()[-1]) * 1024

    (file, memory), (large_file, large_memory) = sizes(20), sizes(160)
    assert large_file - file > 10_000_000
    assert large_memory - memory < 5_000_000


def test_a_review_begins_with_what_can_be_refused_at_once(songs, monkeypatch):
    monkeypatch.setattr(commands, "_fitted", None)  # nothing is computed before
    review = ["review", *SONGS, "--decisions"]
    assert "songs.csv: is an input, which --decisions would" in refusal(*review, "songs.csv")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = str(taken.getsockname()[1])
        told = refusal(*review, "decisions.csv", "--port", port)
        assert told.startswith(f"port {port}: cannot be used (")
    told = refusal(*review, "decisions.csv", "--root", "covers", "--port", "0")
    assert told == "covers: --root: no such directory"
    Path("decisions.csv").write_text("instance,label\n001,rock\n")
    told = refusal(*review, "decisions.csv", "--port", "0")
    assert told.startswith("decisions.csv: has no column 'decision'")


@pytest.mark.parametrize(
    "wrong",
    [["--decisions", "decisions.parquet"], ["--decisions", "d.csv", "--every", "0"], []],
)
def test_a_review_needs_a_table_to_append_to_and_counts(wrong, capsys):
    with pytest.raises(SystemExit) as end:
        main(["review", *SONGS, *wrong])
    assert end.value.code == 2
    assert "--decisions" in capsys.readouterr().err


def test_a_review_without_a_server_installed_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "wscpml.review.app", raising=False)
    monkeypatch.delattr(wscpml.review, "app", raising=False)
    told = refusal("review", *SONGS, "--decisions", "decisions.csv")
    assert told == "wscpml review: needs uvicorn; pip install 'wscpml[review]'"


def test_a_review_shows_what_was_judged_and_judges_anew(songs, monkeypatch):
    from wscpml.review import app

    found = []
    monkeypatch.setattr(app, "serve", lambda *given: found.append(given))
    more = ["--decisions", "decisions.csv", "--port", "0", "--every", "1", "--reviewer", "Anna"]
    main(["review", *SONGS, *QUICK, *more])
    ((session, _, reviewer),) = found
    assert reviewer == "Anna"
    item = session.next("me")
    assert item["id"] in {f"{i:03}" for i in range(160)}
    before = session.progress("me")
    row, label = item["row"], item["open"][0]
    monkeypatch.setattr(session, "_start", lambda work: found.append(work))
    session.decide("me", row, label, False)
    found[1]()
    after = session.progress("me")
    assert (after["problem"], after["rounds"], after["decided"]) == ("", 1, 1)
    assert after["errors_left"] != before["errors_left"]
