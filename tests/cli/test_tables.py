"""The command on a table as people have it: words, dates, holes, messy tags."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from wscpml import WSCPML, artifacts
from wscpml.cli import commands, main, tables
from wscpml.datasets.songs import WORDS, songs
from wscpml.quality import audit, judging

QUICK = ["--set", "classifier.kind=kernel_ridge"]
SONGS = ["songs.csv", "--tags", "tags", "--id", "song"]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(judging, "TREES", 50)


@pytest.fixture
def sample():
    main(["sample", "songs.csv"])


def refusal(*command):
    with pytest.raises(SystemExit) as end:
        main(list(command))
    assert isinstance(end.value.code, str)
    assert "\n" not in end.value.code
    return end.value.code


def test_the_sample_is_handed_out_and_nothing_is_overwritten(sample, capsys):
    assert len(pd.read_csv("songs.csv")) == 300
    assert refusal("sample", "songs.csv") == "songs.csv: is there already; name another"


def test_describe_says_what_each_column_is_and_what_is_odd(sample, capsys):
    main(["describe", *SONGS])
    said = capsys.readouterr().out
    assert "  country       category: 0 and 1 for each of 6 values" in said
    assert "  released      date: year, month, day, weekday" in said
    assert "  description   text: TF-IDF of " in said
    tempo = "  tempo         number, 3.7% missing: itself; the median, 105, and a mark if missing"
    assert tempo in said
    assert "constant columns    0\n" in said
    assert "warning: songs.csv: column 'tags': ',' is taken for what stands between" in said
    assert "warning: songs.csv: 3 labels are written in several ways" in said
    main(["describe", *SONGS, "--ignore", "tempo", "--text", "country", "--json"])
    columns = json.loads(capsys.readouterr().out)["columns"]
    assert columns[0] == {"name": "tempo", "role": "ignore", "how": "as you say", "missing": 11}
    assert [each["role"] for each in columns if each["name"] == "country"] == ["text"]
    assert refusal("describe", *SONGS, "--text", "tempo", "--date", "tempo") == (
        "--date tempo: is --text too; give it once"
    )
    assert "--text: has no column 'lyrics'" in refusal("describe", *SONGS, "--text", "lyrics")


def test_describe_lists_thirty_labels_at_most(capsys):
    table = pd.DataFrame({"x": range(80), "tags": [f"l{i % 40:02}" for i in range(80)]})
    table.to_csv("songs.csv", index=False)
    main(["describe", "songs.csv", "--tags", "tags"])
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("  l") for line in lines) == 30
    assert "  ... and 10 rarer ones" in lines


@pytest.fixture
def cleaned(sample):
    """Everything that one run of clean can write."""
    main(
        ["clean", *SONGS, *QUICK, "--merge-variants", "--min-count", "5"]
        + ["-o", "clean.csv", "--model", "model", "--html", "page.html"]
        + ["--cleaned-table", "cleaned.csv"]
    )


def test_one_fit_gives_all_outputs(sample, monkeypatch, capsys):
    fits, fit = [], WSCPML._fit
    monkeypatch.setattr(WSCPML, "_fit", lambda *given: fits.append(1) or fit(*given))
    pages, of = [], audit.of
    monkeypatch.setattr(audit, "of", lambda *given: pages.append(given) or of(*given))
    outputs = ["-o", "clean.csv", "--html", "page.html", "--cleaned-table", "cleaned.parquet"]
    main(["clean", *SONGS, *QUICK, *outputs])
    assert len(fits) == len(pages) == 1
    assert "song 1" in Path("page.html").read_text()
    assert "written: clean.csv, page.html, cleaned.parquet" in capsys.readouterr().out


def test_the_cleaned_table_is_ones_own_without_the_wrong_tags(cleaned):
    before, after = (
        pd.read_csv(f, dtype=str, keep_default_na=False) for f in ("songs.csv", "cleaned.csv")
    )
    pd.testing.assert_frame_equal(before.drop(columns="tags"), after.drop(columns="tags"))
    decided = pd.read_csv("clean.csv")
    kept = decided[decided.keep == 1].groupby("instance").label.agg(set)
    found = after.set_index("song").tags.map(lambda cell: set(filter(None, cell.split(", "))))
    assert found.tolist() == [kept.get(song, set()) for song in after.song]
    assert not {"rock", "r&b"} & set.union(*found)
    assert 0 < decided.keep.mean() < 1


@pytest.mark.parametrize(("kind", "none"), [("csv", "0"), ("parquet", "False")])
def test_tags_may_be_columns_of_zero_and_one_beside_the_features(kind, none):
    table = songs(300)[0]
    given = table.pop("tags").str.get_dummies(", ").add_prefix("tag_")
    given = given.rename(columns=str.strip).rename(columns={"tag_rock": "tag_ROCK"}).astype(bool)
    if kind == "csv":
        given = given.astype(int)
    table = table.join(given)
    table["tempo"] = table.tempo.map("{:.2f}".format) if kind == "csv" else table.tempo
    artifacts.write(f"items.{kind}", table)
    chosen = ["--tags", "tag_*", "--id", "song", "--merge-variants", "--min-count", "5"]
    outputs = ["-o", "clean.csv", "--cleaned-table", f"cleaned.{kind}"]
    main(["clean", f"items.{kind}", *chosen, *QUICK, *outputs])
    if kind == "csv":
        before, after = (pd.read_csv(f, dtype=str) for f in ("items.csv", "cleaned.csv"))
    else:
        before, after = (pd.read_parquet(f) for f in ("items.parquet", "cleaned.parquet"))
    pd.testing.assert_frame_equal(before.drop(columns=given), after.drop(columns=given))
    changed = before[given.columns] != after[given.columns]
    assert set(after[given.columns].to_numpy()[changed].astype(str)) == {none}
    dropped = pd.read_csv("clean.csv").query("keep == 0")
    row, column = changed.to_numpy().nonzero()
    pairs = {(table.song[i], given.columns[j].casefold()) for i, j in zip(row, column, strict=True)}
    assert pairs == set(zip(dropped.instance, dropped.label.str.casefold(), strict=True))
    assert len(pairs) > 5


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ({"a": [True, True], "b": [1, 0]}, {"a": [False, True], "b": [0, 0]}),
        ({"a": [1, 1], "b": ["1", "1"]}, {"a": [0, 1], "b": ["0", "1"]}),
        ({"a": [1.0, 1.0], "b": [1, -1]}, {"a": [-1.0, 1.0], "b": [-1, -1]}),
        (
            {"a": ["True", "True"], "b": ["TRUE", "FALSE"]},
            {"a": ["False", "True"], "b": ["FALSE"] * 2},
        ),
    ],
)
def test_what_means_none_in_a_column_is_as_the_column_has_it(given, left):
    table = pd.DataFrame(given)
    found = tables._without(table, table, {"a": "a", "b": "b"}, {(0, "a"), (0, "b")})
    pd.testing.assert_frame_equal(found, pd.DataFrame(left))


def test_a_single_column_of_zero_and_one_is_cleaned(sample):
    table = pd.read_csv("songs.csv")
    table["rock"] = table.pop("tags").str.casefold().str.contains("rock").fillna(False).astype(int)
    table.to_csv("one.csv", index=False)
    main(["clean", "one.csv", "--tags", "rock", "--id", "song", *QUICK]
         + ["-o", "clean.csv", "--cleaned-table", "cleaned.csv"])  # fmt: skip
    kept = pd.read_csv("clean.csv").query("keep == 1").instance
    after = pd.read_csv("cleaned.csv")
    assert after.song[after.rock == 1].tolist() == kept.tolist()


def test_a_table_in_several_files_is_cleaned_as_it_is_written(sample):
    table = pd.read_csv("songs.csv", dtype=str).assign(song=[f"{i:03}" for i in range(300)])
    Path("days").mkdir()
    for k in range(2):
        table[150 * k :][:150].to_csv(f"days/day{k}.csv", index=False)
    main(["clean", "days", *SONGS[1:], *QUICK, "-o", "clean.csv", "--cleaned-table", "cleaned.csv"])
    after = pd.read_csv("cleaned.csv", dtype=str)
    pd.testing.assert_frame_equal(after.drop(columns="tags"), table.drop(columns="tags"))
    for given in ("days", "days/day*.csv"):
        command = ["clean", given, *SONGS[1:], *QUICK, "-o"]
        said = refusal(*command, "days/day1.csv")
        assert said == "days/day1.csv: is an input, which -o would overwrite; name another"
        said = refusal(*command, "days/day_9.csv")
        assert said == f"days/day_9.csv: -o would be among the files of {given}; name another"


def test_columns_of_several_kinds_are_text_in_parquet(sample):
    table = pd.read_csv("songs.csv").astype(object)
    table["title"] = [1999 if i % 7 == 0 else f"title {i}" for i in range(len(table))]
    table.to_excel("songs.xlsx", index=False)
    main(["clean", "songs.xlsx", *SONGS[1:], *QUICK, "--show", "title", "-o", "clean.parquet"]
         + ["--cleaned-table", "cleaned.parquet", "--model", "model"])  # fmt: skip
    assert pd.read_parquet("cleaned.parquet").title[:2].tolist() == ["1999", "title 1"]
    table["song"] = [i if i % 2 else f"song {i}" for i in range(len(table))]
    table.to_excel("more.xlsx", index=False)
    main(["predict", "model", "more.xlsx", "--id", "song", "-o", "predicted.parquet"])
    assert pd.read_parquet("predicted.parquet").song[:2].tolist() == ["song 0", "1"]
    table.rename(columns={"song": "labels"}).to_excel("labels.xlsx", index=False)
    assert refusal("predict", "model", "labels.xlsx", "--id", "labels", "-o", "x.csv") == (
        "--id labels: is a column of our own table; rename yours"
    )


def test_rare_tags_pass_through_unjudged_and_are_marked(cleaned):
    decided = pd.read_csv("clean.csv")
    rare = decided[decided.label == "polka"]
    assert len(rare) == 2
    assert rare.label_confidence.isna().all()
    assert (rare.keep == 1).all()
    assert (rare.judged == 0).all()
    assert decided[decided.label != "polka"].judged.all()
    assert decided.instance.drop_duplicates().tolist() == pd.read_csv("songs.csv").song.tolist()


def test_flags_are_better_with_the_text(capsys):
    table, truth = songs(400)
    table.to_csv("songs.csv", index=False)
    found = {}
    for text in (["--text", "description"], ["--ignore", "description"]):
        main(
            ["clean", *SONGS, *QUICK, "--merge-variants", "--min-count", "9", *text, "-o", "o.csv"]
        )
        decided = pd.read_csv("o.csv").query("judged == 1")
        row = decided.instance.str.removeprefix("song ").astype(int) - 1
        true = truth[row, decided.label.map(list(WORDS).index)]
        found[text[0]] = roc_auc_score(true, decided.label_confidence)
    assert found["--text"] > found["--ignore"] + 0.03


def test_a_model_gives_in_another_process_the_same_numbers_for_raw_rows(cleaned):
    new = songs(40, seed=3)[0].drop(columns="tags")
    new.loc[0, "country"] = "Atlantis"
    new.loc[1, ["country", "released", "description", "tempo"]] = None
    new.loc[2, "description"] = ""
    new.loc[3, "released"] = "1066-10-14"
    new.assign(extra="x")[new.columns[::-1]].to_csv("new.csv", index=False)
    command = [sys.executable, "-m", "wscpml", "predict", "model", "new.csv", "-o", "other.parquet"]
    subprocess.run(command, check=True, capture_output=True)
    loaded = WSCPML.load("model")
    expected = loaded.predict_proba(new)
    assert np.isfinite(expected.to_numpy()).all()
    other = artifacts.read("other.parquet")[loaded.label_names_]
    assert other.to_numpy().tobytes() == expected.to_numpy().tobytes()
    main(["predict", "model", "new.csv", "--id", "song", "-o", "here.csv"])
    assert pd.read_csv("here.csv").song.tolist() == new.song.tolist()


def test_a_model_s_files_are_plain_data(cleaned):
    assert sorted(file.suffix for file in Path("model").iterdir()) == [
        ".json",
        ".json",
        ".json",
        ".safetensors",
        ".safetensors",
    ]
    texts = [file.read_text() for file in Path(commands.__file__).parents[1].rglob("*.py")]
    assert len(texts) > 50
    for word in ("import pickle", "joblib.load", "allow_pickle=True", "torch.load"):
        assert not [text for text in texts if word in text]


def test_a_model_without_its_encoding_is_told(cleaned):
    Path("model/encoding.json").unlink()
    assert "encoding.json: is missing" in refusal("predict", "model", "songs.csv", "-o", "o.csv")


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        (
            {"tempo": "fast"},
            "new.csv: row 3, column 'tempo': 'fast' is not a number; mend that value",
        ),
        ({"released": "soon"}, "row 3, column 'released': 'soon' is not a date such as 2024-05-31"),
    ],
)
def test_a_cell_that_cannot_be_predicted_from_is_one_line(cleaned, changes, line):
    new = pd.read_csv("songs.csv", dtype=object)[:5]
    new.loc[2, list(changes)] = list(changes.values())
    new.to_csv("new.csv", index=False)
    assert line in refusal("predict", "model", "new.csv", "-o", "o.csv")
    assert not Path("o.csv").exists()


@pytest.mark.parametrize(
    ("given", "line"),
    [
        (["songs.csv", "y.csv"], "--cleaned-table: is FILE without wrong tags, and needs --tags"),
        (["-", "--tags", "tags"], "--cleaned-table: standard input cannot be read twice"),
    ],
)
def test_a_table_that_cannot_be_cleaned_is_told_before_any_work(sample, given, line):
    Path("y.csv").write_text("a\n1\n")
    assert line in refusal("clean", *given, "-o", "o.csv", "--cleaned-table", "c.csv")
