"""What people have decided, through the stages."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from stages import inputs
from tests.stages.test_stages import STAGES, apply, change, outputs, run_all
from wscpml import artifacts, settings
from wscpml.errors import UserError
from wscpml.evaluation import metrics

TABLE = Path("data/decisions/table.csv")


def decide(rows: pd.DataFrame) -> None:
    """Write a table of decisions, and name it in the settings."""
    TABLE.parent.mkdir(parents=True, exist_ok=True)
    rows.to_csv(TABLE, index=False)
    change("review", {"decisions": str(TABLE)})


def written() -> dict[Path, bytes]:
    """All files that stages have left."""
    paths = [path for stage in STAGES for path in outputs(stage)]
    files = [file for path in paths for file in (path.rglob("*") if path.is_dir() else [path])]
    return {file: file.read_bytes() for file in files if file.is_file()}


@pytest.fixture
def before(tiny_project):
    """The candidates as they were judged without decisions, in a project that has run."""
    run_all()
    return artifacts.read("data/pseudo_labels.parquet")


@pytest.fixture
def rows(before):
    """Two candidates, a label that is none, and one of a held-out song, all decided."""
    names, test = artifacts.read("data/prepared/names.json"), artifacts.read("data/split.npy")
    candidates = artifacts.read_matrix("data", "candidates")
    missing = np.argwhere((candidates == 0) & ~test[:, None])[0]
    held_out = np.argwhere((candidates == 1) & test[:, None])[0]
    others = [(names["instances"][i], names["labels"][j], "true") for i, j in (missing, held_out)]
    first, last = before.iloc[0], before.iloc[-1]
    ours = [(first.instance, first.label, "false"), (last.instance, last.label, "true")]
    return pd.DataFrame([*ours, *others], columns=["instance", "label", "decision"])


def test_decided_labels_are_certain_and_an_added_one_has_a_row(before, rows):
    decide(rows)
    run_all()
    found = artifacts.read("data/pseudo_labels.parquet")
    assert len(found) == len(before) + 1
    said = found[found.decided != ""].merge(rows, on=["instance", "label"])
    assert len(said) == 3
    assert said.decided.tolist() == said.decision.tolist()
    assert said.label_confidence.tolist() == (said.decision == "true").astype(int).tolist()
    added = said[~said.set_index(["instance", "label"]).index.isin(
        before.set_index(["instance", "label"]).index
    )]  # fmt: skip
    assert added[["B", "pi", "F"]].to_numpy().tolist() == [[0, 0, 0]]
    kept = found[found.decided == ""].reset_index(drop=True)
    for name in ("B", "pi", "F"):
        both = kept.merge(before, on=["instance", "label"])
        np.testing.assert_array_equal(both[f"{name}_x"], both[f"{name}_y"])
    assert "A person has decided 3 tags: 2 to be right" in Path("metrics/audit.html").read_text()


def test_what_is_decided_is_not_counted_as_found_by_us(before, rows):
    decide(rows)
    run_all()
    found = artifacts.read("data/pseudo_labels.parquet")
    measured = artifacts.read("metrics/evaluation.json")
    known = inputs.decided().added_to(inputs.candidates("train"))
    true = inputs.truth("train")[known == 1]
    ours = (found.decided == "").to_numpy()
    for name in ("F", "label_confidence"):
        expected = metrics.noise_auc(true[ours], found[name].to_numpy()[ours])
        assert measured["noise_auc"][name] == expected
    two = before.iloc[[0, -1]]
    agreed = [(two.label_confidence.iloc[k] >= 0.5) == (k == 1) for k in (0, 1)]
    assert measured["decisions"] == {
        "count": 3, "true": 2, "added": 1, "agreement": np.mean(agreed),
    }  # fmt: skip
    assert measured["labels"]["decided_share"] == 3 / len(found)


def test_labels_that_a_person_adds_prove_nothing_of_the_tags(before):
    names, test = artifacts.read("data/prepared/names.json"), artifacts.read("data/split.npy")
    candidates = artifacts.read_matrix("data", "candidates")
    missing = [
        (names["instances"][i], names["labels"][j])
        for i, j in np.argwhere((candidates == 0) & ~test[:, None])
    ]
    added = pd.DataFrame(missing, columns=["instance", "label"]).assign(decision="true")
    wrong = before[["instance", "label"]].assign(decision="false")
    decide(pd.concat([wrong, added]))
    run_all("judge_labels")
    remarks = artifacts.read("models/wsc-pml/noise.json")["remarks"]
    (told,) = (line for line in remarks if "of all tags are wrong" in line)
    assert told.endswith(f"by {len(before)} random answers")


def test_when_decisions_are_gone_so_is_every_trace_of_them(tiny_project, before, rows):
    clean = written()
    decide(rows)
    run_all()
    changed = {path.as_posix() for path, content in written().items() if clean[path] != content}
    assert "models/wsc-pml/label_confidence.npy" in changed
    assert not changed & {"data/candidates.npz", "models/wsc-pml/pseudo_labels.parquet"}
    change("review", {"decisions": None})
    run_all()
    assert written() == clean


def test_a_note_or_a_word_that_does_not_count_changes_nothing_that_others_read(before, rows):
    decide(rows)
    STAGES["collect_decisions"](settings.load())
    once = Path("data/decided.parquet").read_bytes()
    earlier = rows.assign(decision=["true", "false", "false", "false"], reviewer="ann")
    decide(pd.concat([earlier, rows.assign(note="I looked twice")[::-1]]))
    STAGES["collect_decisions"](settings.load())
    assert Path("data/decided.parquet").read_bytes() == once
    differ = artifacts.read("data/contradictions.csv")
    assert len(differ) == 8
    assert differ.columns.tolist() == ["instance", "label", "reviewer", "decision"]


def test_other_methods_learn_what_is_decided(before, rows):
    decide(rows)
    measured = apply("pml-ni")
    assert measured["decisions"] == {"count": 3, "true": 2, "added": 1}
    table = artifacts.read("data/pseudo_labels.parquet")
    assert len(table) == len(before) + 1
    assert table[table.decided == "false"].F.tolist() == [0]
    assert (table[table.decided == "true"].F > 0).all()
    assert "A person has decided 3 tags" in Path("metrics/audit.html").read_text()


def test_decisions_on_other_data_stop_before_anything_is_written(before, rows, capsys):
    output = Path("data/decided.parquet")
    output.unlink()
    decide(rows.assign(instance="nobody's song"))
    with pytest.raises(UserError, match="table.csv: 1 of its 1 instances are not in the data"):
        STAGES["collect_decisions"](settings.load())
    assert not output.exists()
    TABLE.write_text(TABLE.read_text()[:23] + "\n" + "song 1,rock")
    STAGES["collect_decisions"](settings.load())
    assert capsys.readouterr().err.splitlines() == [
        f"{TABLE}: the last line of the decisions breaks off, and is left out"
    ]
    assert not len(artifacts.read(output))


def test_decisions_must_be_where_dvc_watches_them(tiny_project):
    change("review", {"decisions": "data/own/table.csv"})
    with pytest.raises(UserError, match="review.decisions: must be in data/decisions/, which DVC"):
        settings.load()
