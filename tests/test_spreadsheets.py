"""What people are shown is safe: cells for spreadsheets, lines for terminals."""

import csv
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import ROOT
from wscpml import artifacts
from wscpml.datasets import csv_files, table_files
from wscpml.errors import MOST_CHARACTERS, UNPRINTABLE, UserError, readable, visible
from wscpml.quality import decisions
from wscpml.spreadsheets import as_meant, harmless

FORMULAS = ["=1+1", "@SUM(A1)", "+cmd|' /C calc'!A0", "-2+3", "\t=1", "'=1", "''@x", "- a dash"]
PLAIN = ["-5", "+3.5", "-1,5", "-1e-3", "-", "+", "'rock'", "'", "", "a=b", "-5%", "R&B"]


@pytest.mark.parametrize("cell", FORMULAS)
def test_what_a_spreadsheet_would_take_for_a_formula_begins_with_an_apostrophe(cell):
    assert harmless(cell) == f"'{cell}"
    assert as_meant(harmless(cell)) == cell


@pytest.mark.parametrize("cell", [*PLAIN, None, 5, -5.0])
def test_numbers_and_words_are_written_as_they_are(cell):
    assert harmless(cell) is cell
    assert as_meant(cell) is cell


@given(st.text(st.sampled_from("'=+-@\t\r1.,e%a "), max_size=6))
def test_what_is_written_is_read(cell):
    assert as_meant(harmless(cell)) == cell


def test_tables_are_written_harmless_and_read_as_they_were(tmp_path):
    path = tmp_path / "x.csv"
    cells = [*FORMULAS, *(each for each in PLAIN if each)]
    table = pd.DataFrame({"label": cells, "=name": range(len(cells))})
    artifacts.write(path, table)
    with path.open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["label", "'=name"]
    assert [row[0] for row in rows[1:]] == [harmless(cell) for cell in cells]
    for found in (
        artifacts.read(path),
        table_files.read(path, ["label"]),
        pd.concat(csv_files.parts(path, ["label", "=name"], ["label"], 3)),
    ):
        assert found["label"].tolist() == cells
        assert found["=name"].tolist() == list(range(len(cells)))


def test_decisions_are_harmless_and_read_as_they_were(tmp_path):
    path = tmp_path / "x.csv"
    row = {"instance": "=a", "label": "@b", "decision": True, "note": "+c d"}
    decisions.append(path, [row])
    assert path.read_text().splitlines()[1].startswith("'=a,'@b,true")
    assert decisions.read(path)[["instance", "label", "note"]].iloc[0].tolist() == [
        "=a",
        "@b",
        "+c d",
    ]


def test_a_message_is_lines_of_some_hundred_characters_that_can_be_seen():
    name = "\x1b[31m\u202egnp.exe\x00\n\ud800" + "x" * 10_000
    line = readable(f"x.csv: column {name}: mend it")
    assert line.startswith(r"x.csv: column \x1b[31m\u202egnp.exe\x00\n\ud800xxx")
    assert line.endswith("xxx: mend it")
    assert len(line) <= MOST_CHARACTERS
    assert readable(line) == line
    assert len(readable("\x00" * 10_000)) <= MOST_CHARACTERS
    assert visible("a\n\u202eb\x07") == "a\n\\u202eb\\x07"
    error = UserError("first", "sec\nond", *["more"] * 500)
    assert str(error).startswith("first\nsec\\nond\nmore")
    assert error.args[-1] == "... and 402 more"


def test_hostile_names_are_told_in_one_line(tmp_path):
    path = Path(tmp_path, "x.csv")
    name = "\x1b[31m\x07\u202e" + "n" * 10_000
    path.write_text(f"{name},{name}\n1,2\n", encoding="utf-8")
    with pytest.raises(UserError) as raised:
        table_files.read(path)
    (line,) = raised.value.args
    assert "is there twice" in line
    assert not UNPRINTABLE.search(line)


@pytest.mark.parametrize(
    "page",
    ["wscpml/quality/audit.html.j2", "wscpml/quality/diff.html.j2", "experiments/report.html.j2"],
)
def test_every_page_has_a_policy_that_lets_in_nothing_from_elsewhere(page):
    text = (ROOT / page).read_text()
    policy = text.partition('Content-Security-Policy" content="')[2].partition('"')[0]
    rules = dict(rule.split(maxsplit=1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert "unsafe" not in rules.get("script-src", "")
    assert (rules["base-uri"], rules["form-action"]) == ("'none'", "'none'")
    assert "http" not in policy
