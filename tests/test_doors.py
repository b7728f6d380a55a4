"""One method behind every door: the pipeline, WSCPML in Python, and the command give one answer."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from sklearn.metrics import roc_auc_score

from tests.contract import small
from tests.stages.test_stages import run_all
from wscpml import WSCPML, artifacts, settings
from wscpml.cli import main
from wscpml.devices import one_blas_thread
from wscpml.errors import UserError
from wscpml.quality import judging

LABELS = ["rock", "jazz", "pop", "folk"]
DECISIONS = Path("data/decisions/table.csv")


@dataclass
class Answer:
    """What one door says of the training rows, and of rows that it has not seen."""

    tags: pd.DataFrame  # instance, label, label_confidence, keep: a row per candidate
    reasons: pd.DataFrame  # of the suspicious ones, as the audit's page lists them
    probabilities: np.ndarray
    labels: np.ndarray


def tags(instances, label, confidence) -> pd.DataFrame:
    table = pd.DataFrame({"instance": instances, "label": label, "label_confidence": confidence})
    table = table.astype({"instance": str, "label": str})
    return table.assign(keep=(table.label_confidence >= 0.5).astype(int))


def reasons(page: str) -> pd.DataFrame:
    """The table of suspicious tags in the audit's page."""
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    table = json.loads(text)["tables"][0]
    found = pd.DataFrame(table["rows"], columns=[name for name, *_ in table["columns"]])
    return found.drop(columns="truth", errors="ignore")


@pytest.fixture
def project(tmp_path, monkeypatch, params):
    """120 songs of which a fold is held out, as files of a person's own; few trees."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(judging, "TREES", 30)
    X, truth, candidates = small(n=120, d=3)
    names = [f"song {i}" for i in range(len(X))]
    songs = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    songs.insert(0, "song", names)
    Path("data/own").mkdir(parents=True)
    for file, matrix in (("tags", candidates), ("truth", truth)):
        table = pd.DataFrame(matrix, columns=LABELS)
        table.insert(0, "song", names)
        table.to_csv(f"data/own/{file}.csv", index=False)
    songs.to_csv("data/own/songs.csv", index=False)
    params["seed"] = 3
    params["dataset"] = {
        "features": "data/own/songs.csv",
        "candidates": "data/own/tags.csv",
        "truth": "data/own/truth.csv",
        "id": "song",
    }
    params["split"] = {"folds": 4, "fold": 1}
    # so that training goes beyond the closed form it starts from, and takes its random numbers
    params["classifier"] |= {"batch_size": 16, "max_epochs": 10, "patience": 10}
    return params


def by_pipeline() -> Answer:
    with one_blas_thread():
        run_all()
    found = artifacts.read("data/pseudo_labels.parquet")
    probabilities, labels = (
        artifacts.read(f"data/{name}.parquet").drop(columns="instance").to_numpy()
        for name in ("predictions", "predicted_labels")
    )
    return Answer(
        tags(found.instance, found.label, found.label_confidence),
        reasons(Path("metrics/audit.html").read_text()),
        probabilities,
        labels,
    )


def sides() -> list[tuple[pd.DataFrame, pd.DataFrame]]:
    """Songs and tags of the training rows and of the others, as the pipeline dealt them."""
    songs, given = (pd.read_csv(f"data/own/{name}.csv") for name in ("songs", "tags"))
    test = artifacts.read("data/split.npy")
    return [(songs[side], given[side]) for side in (~test, test)]


def by_estimator() -> Answer:
    (songs, given), (rest, _) = sides()
    chosen = settings.for_estimator(Path("params.yaml"), [])
    fitted = WSCPML(**chosen).fit(
        songs.set_index("song"), given.set_index("song"), DECISIONS if DECISIONS.exists() else None
    )
    row, label = np.nonzero(fitted.candidates_)
    issues = fitted.find_label_issues().astype({"prototype_rank": int})
    issues["label_confidence"] = [float(f"{v:.3g}") for v in issues.label_confidence]
    rest = rest.set_index("song")
    return Answer(
        tags(
            given.song.to_numpy()[row],
            np.array(LABELS)[label],
            fitted.label_confidence_.to_numpy()[row, label],
        ),
        issues,
        fitted.predict_proba(rest).to_numpy(),
        fitted.predict(rest).to_numpy(),
    )


def by_command() -> Answer:
    (songs, given), (rest, _) = sides()
    for name, table in (("songs", songs), ("tags", given), ("rest", rest)):
        table.to_csv(f"{name}.csv", index=False)
    taken = ["songs.csv", "tags.csv", "--id", "song", "--params", "params.yaml"]
    taken += ["--decisions", str(DECISIONS)] if DECISIONS.exists() else []
    main(["clean", *taken, "-o", "clean.parquet", "--model", "model"])
    main(["audit", *taken, "--html", "page.html"])
    main(["predict", "model", "rest.csv", "--id", "song", "-o", "predicted.parquet"])
    cleaned = pd.read_parquet("clean.parquet")
    predicted = pd.read_parquet("predicted.parquet")
    found = tags(cleaned.instance, cleaned.label, cleaned.label_confidence)
    assert cleaned.keep.tolist() == found.keep.tolist()
    named = [set(filter(None, cell.split(";"))) for cell in predicted.labels]
    return Answer(
        found,
        reasons(Path("page.html").read_text()),
        predicted[LABELS].to_numpy(),
        np.array([[label in each for label in LABELS] for each in named]),
    )


def with_words_and_holes():
    """Make the songs a table with columns of every kind."""
    songs, rng = pd.read_csv("data/own/songs.csv"), np.random.default_rng(0)
    truth = pd.read_csv("data/own/truth.csv")[LABELS].to_numpy() == 1
    songs["about"] = [f"take {i} of {' '.join(np.array(LABELS)[t])}" for i, t in enumerate(truth)]
    songs["country"] = rng.choice(["Mali", "France", "Japan"], len(songs))
    songs["released"] = [f"20{i % 24:02}-05-{1 + i % 28:02}" for i in range(len(songs))]
    songs.loc[rng.random(len(songs)) < 0.1, ["x1", "country", "released"]] = None
    songs.to_csv("data/own/songs.csv", index=False)


def nearly_empty():
    """Make the songs a table of counts of words, few of which a song has."""
    songs, rng = pd.read_csv("data/own/songs.csv"), np.random.default_rng(0)
    truth = pd.read_csv("data/own/truth.csv")[LABELS].to_numpy()
    chances = np.hstack([np.kron(truth, np.full((1, 4), 0.8)), np.full((len(songs), 80), 0.01)])
    counts = (rng.random(chances.shape) < chances) * rng.integers(1, 4, chances.shape)
    assert (counts > 0).mean() < 0.1
    words = pd.DataFrame(counts, columns=[f"word {j}" for j in range(counts.shape[1])])
    pd.concat([songs[["song"]], words], axis=1).to_csv("data/own/songs.csv", index=False)


def nearly_empty_once_encoded():
    """Make the songs a table of two categories, which tell the labels."""
    songs = pd.read_csv("data/own/songs.csv")
    truth = pd.read_csv("data/own/truth.csv")[LABELS].to_numpy()
    styles = [f"style {each}" for each in truth @ [1, 2, 4, 8]]
    rooms = [f"room {i % 14}" for i in range(len(songs))]
    table = pd.DataFrame({"song": songs.song, "style": styles, "room": rooms})
    table.to_csv("data/own/songs.csv", index=False)


@pytest.mark.parametrize(
    ("labels", "kind", "change"),
    [
        ("printed", "network", None),
        ("printed", "kernel_ridge", None),
        ("cleaned", "network", None),
        ("cleaned", "kernel_ridge", None),
        ("cleaned", "kernel_ridge", with_words_and_holes),
        ("cleaned", "kernel_ridge", nearly_empty),
        ("cleaned", "kernel_ridge", nearly_empty_once_encoded),
    ],
)
def test_every_door_gives_the_same_answer(project, labels, kind, change):
    if change:
        change()
    project["classifier"] |= {"labels": labels, "kind": kind}
    Path("params.yaml").write_text(yaml.safe_dump(project))
    one, *others = by_pipeline(), by_estimator(), by_command()
    assert one.tags.keep.nunique() == 2
    assert len(one.reasons) == (one.tags.keep == 0).sum()
    assert one.labels.any()
    losses = artifacts.read("metrics/training.csv").validation_loss
    assert kind == "kernel_ridge" or losses.min() < 0.99 * losses[0]
    for other in others:
        pd.testing.assert_frame_equal(one.tags, other.tags, check_exact=True)
        pd.testing.assert_frame_equal(one.reasons, other.reasons, check_exact=True)
        np.testing.assert_array_equal(one.probabilities, other.probabilities)
        np.testing.assert_array_equal(one.labels, other.labels)


def test_every_door_takes_incomplete_tags_to_the_same_effect(project):
    project["dataset"]["complete"] = False
    project["classifier"] |= {"labels": "cleaned", "kind": "kernel_ridge"}
    Path("params.yaml").write_text(yaml.safe_dump(project))
    one, *others = by_pipeline(), by_estimator(), by_command()
    for other in others:
        pd.testing.assert_frame_equal(one.tags, other.tags, check_exact=True)
        np.testing.assert_array_equal(one.probabilities, other.probabilities)
    assert artifacts.read("models/wsc-pml/noise.json")["lost"] > 0
    pages = [Path(page).read_text() for page in ("metrics/audit.html", "page.html")]
    assert len({re.search('"name":"missing".*?]]', page)[0] for page in pages}) == 1


def test_every_door_takes_votes_to_the_same_effect(project):
    """Without a truth, so that nothing is held out."""
    rng, given = np.random.default_rng(0), pd.read_csv("data/own/tags.csv").set_index("song")
    truth = pd.read_csv("data/own/truth.csv").set_index("song")
    votes = given * (1 + rng.binomial(4, np.where(truth == 1, 0.8, 0.1)))
    rows = votes.melt(ignore_index=False, var_name="label", value_name="weight").reset_index()
    rows[rows.weight > 0].to_csv("data/own/tags.csv", index=False)
    project["dataset"] |= {"truth": None}
    project["classifier"] |= {"labels": "cleaned", "kind": "kernel_ridge"}
    Path("params.yaml").write_text(yaml.safe_dump(project))
    with one_blas_thread():
        run_all()
    one = artifacts.read("data/pseudo_labels.parquet")
    chosen = settings.for_estimator(Path("params.yaml"), [])
    songs = pd.read_csv("data/own/songs.csv").set_index("song")
    names = sorted(LABELS)
    fitted, without = (
        WSCPML(**chosen).fit(songs, given[names], votes=each) for each in (votes, None)
    )
    pairs = fitted.label_confidence_.to_numpy()[fitted.candidates_ == 1]
    assert one.label_confidence.tolist() == pairs.tolist()
    main(["clean", "data/own/songs.csv", "data/own/tags.csv", "--id", "song"]
         + ["--params", "params.yaml", "-o", "clean.parquet"])  # fmt: skip
    assert pd.read_parquet("clean.parquet").label_confidence.tolist() == pairs.tolist()
    true = truth[names].to_numpy()[fitted.candidates_ == 1]
    plain = without.label_confidence_.to_numpy()[fitted.candidates_ == 1]
    assert roc_auc_score(true, pairs) > (1 + roc_auc_score(true, plain)) / 2


@pytest.mark.parametrize("labels", ["printed", "cleaned"])
def test_every_door_takes_decisions_to_the_same_effect(project, labels):
    project["classifier"] |= {"labels": labels, "kind": "kernel_ridge"}
    Path("params.yaml").write_text(yaml.safe_dump(project))
    before = by_pipeline()
    _, given = sides()[0]
    missing = given[given.rock == 0].song.iloc[0]
    rows = [(each.instance, each.label, "true") for each in before.reasons.head(3).itertuples()]
    rows += [(missing, "rock", "true"), (*before.tags.iloc[0, :2], "false")]
    DECISIONS.parent.mkdir()
    table = pd.DataFrame(rows, columns=["instance", "label", "decision"])
    table.to_csv(DECISIONS, index=False)
    project["review"]["decisions"] = str(DECISIONS)
    Path("params.yaml").write_text(yaml.safe_dump(project))
    one, *others = by_pipeline(), by_estimator(), by_command()
    said = one.tags.merge(table, on=["instance", "label"])
    assert said.label_confidence.tolist() == (said.decision == "true").astype(int).tolist()
    assert len(said) == 5
    assert len(one.tags) == len(before.tags) + 1
    assert len(one.reasons) == (one.tags.keep == 0).sum() - 1  # what is decided is no suspicion
    assert not np.array_equal(one.probabilities, before.probabilities)
    for other in others:
        pd.testing.assert_frame_equal(one.tags, other.tags, check_exact=True)
        pd.testing.assert_frame_equal(one.reasons, other.reasons, check_exact=True)
        np.testing.assert_array_equal(one.probabilities, other.probabilities)
        np.testing.assert_array_equal(one.labels, other.labels)


WRONG = {
    "classifier.labels": "clean",
    "classifier.kind": "ridge",
    "clustering.rule": "Paper",
    "features.scaling": "standard",
    "clustering.alpha": -1,
    "clustering.beta": 0,
    "weak_supervision.theta": 5,
    "classifier.validation_share": 2,
    "clustering.max_iterations": 0,
    "classifier.width": 0,
    "features.kernel": "gauss",
    "features.bandwidth": -1,
}


@pytest.mark.parametrize("knob", WRONG)
def test_a_wrong_value_is_refused_by_every_door_in_its_own_words(project, knob):
    (section, key), value = knob.split("."), WRONG[knob]
    X, _, candidates = small()
    with pytest.raises(ValueError, match="must be") as in_python:
        WSCPML(**{key: value}).fit(X, candidates)
    words, _, allowed = str(in_python.value).partition(": ")
    assert words == f"{key}={value!r}"

    with pytest.raises(SystemExit) as on_command_line:
        main(["clean", "data/own/songs.csv", "data/own/tags.csv", "--id", "song"]
             + ["-o", "clean.csv", "--set", f"{knob}={value}"])  # fmt: skip
    assert str(on_command_line.value) == f"--set {knob}={value}: {allowed}"

    project[section][key] = value
    Path("params.yaml").write_text(yaml.safe_dump(project))
    with pytest.raises(UserError) as in_file:
        settings.load()
    assert str(in_file.value) == f"params.yaml: {knob}: {allowed}, got {value!r}"
