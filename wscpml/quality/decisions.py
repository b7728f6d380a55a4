"""What a person has decided: pairs of an instance and a label that are known to be true or false.

As a table: `instance`, `label` and `decision` (`true` or `false`), and if one likes `reviewer`,
`time` and `note`. Rows are only ever appended, and the last word on a pair counts, by the order of
the rows. An empty decision takes back what the same reviewer has said of the pair before.
"""

import csv
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from wscpml.arrays import EVEN_ODDS, Array, Matrix, values_at
from wscpml.datasets.dataset import few
from wscpml.errors import HALF, UserError
from wscpml.limits import told_if_unreadable
from wscpml.spreadsheets import harmless

COLUMNS = ("instance", "label", "decision", "reviewer", "time", "note")
NEEDED = COLUMNS[:3]
PAIR = ["instance", "label"]
TRUE, FALSE, NONE = "true", "false", ""
WORDS = {TRUE: TRUE, FALSE: FALSE, "1": TRUE, "0": FALSE, "1.0": TRUE, "0.0": FALSE, NONE: NONE}
RECORD = re.compile(rb'(?:[^"\n]++|"[^"]*+")*+\n')  # a line, or more where one breaks in quotes
STRANGERS = 0.9  # share of unknown instances from which a table is another data set's


@dataclass(frozen=True)
class Decided:
    """m decided pairs, each pair once."""

    row: Array  # (m,), which instance
    label: Array  # (m,)
    true: Array  # (m,), bool

    @classmethod
    def nothing(cls) -> "Decided":
        """No pair."""
        return cls(np.empty(0, int), np.empty(0, int), np.empty(0, bool))

    def added_to(self, candidates: Matrix) -> Matrix:
        """Candidates ``(n, q)`` with the labels that were missing and are true."""
        return _with_values(candidates, self.row[self.true], self.label[self.true], 1)

    def settle(self, label_confidence: Matrix) -> Matrix:
        """Label confidences ``(n, q)`` with 1 and 0 where it is decided.

        Sparse ones have a value for each candidate, so that a false one stays among them.
        """
        return _with_values(label_confidence, self.row, self.label, self.true)

    def among(self, shape: tuple[int, int]) -> Array:
        """Which pairs are decided, a boolean ``(n, q)``."""
        found = np.zeros(shape, dtype=bool)
        found[self.row, self.label] = True
        return found

    def undecided(self, candidates: Matrix) -> Matrix:
        """Candidates ``(n, q)`` without those that are decided."""
        if not sparse.issparse(candidates):
            return np.where(self.among(candidates.shape), 0, candidates).astype(candidates.dtype)
        rest = candidates.copy()
        rest.data[self.codes(candidates) > 0] = 0
        rest.eliminate_zeros()
        return rest

    def codes(self, candidates: Matrix) -> Array:
        """Of each candidate, row by row: 1 if it is decided to be true, 2 if false, else 0."""
        codes = np.where(self.true, np.uint8(1), np.uint8(2))
        every = sparse.csr_array((codes, (self.row, self.label)), shape=candidates.shape)
        return values_at(every, *np.nonzero(candidates))

    def words(self, candidates: Matrix) -> Array:
        """Of each candidate, row by row: `true` or `false` if it is decided, else nothing."""
        return np.array([NONE, TRUE, FALSE], dtype=object)[self.codes(candidates)]

    def on(self, candidates: Matrix) -> "Decided":
        """What is decided of candidates ``(n, q)`` alone."""
        chosen = values_at(candidates, self.row, self.label) == 1
        return Decided(self.row[chosen], self.label[chosen], self.true[chosen])

    def agreement(self, candidates: Matrix, label_confidence: Matrix) -> float | None:
        """The share of the decided candidates that label confidences are on the right side of."""
        of = self.on(candidates)
        ours = values_at(label_confidence, of.row, of.label) >= EVEN_ODDS
        return float((ours == of.true).mean()) if len(of.row) else None

    def table(self, instances: Sequence[Any], labels: Sequence[str]) -> pd.DataFrame:
        """The pairs by their names, a row each, and the decision."""
        return pd.DataFrame(
            {
                "instance": [str(instances[i]) for i in self.row],
                "label": [labels[j] for j in self.label],
                "decision": np.where(self.true, TRUE, FALSE),
            },
            dtype=str,
        )

    def of_labels(self, chosen: Array) -> "Decided":
        """What is decided of some labels, by their numbers ``(k,)``, among these alone."""
        place = np.full(max(self.label.max(initial=-1), chosen.max(initial=-1)) + 1, -1)
        place[chosen] = np.arange(len(chosen))
        kept = place[self.label] >= 0
        return Decided(self.row[kept], place[self.label[kept]], self.true[kept])

    def of_rows(self, chosen: Array) -> "Decided":
        """What is decided of some rows, a boolean ``(n,)``, among these rows alone."""
        kept = chosen[self.row]
        place = np.cumsum(chosen) - 1
        return Decided(place[self.row[kept]], self.label[kept], self.true[kept])


def _with_values(matrix: Matrix, row: Array, label: Array, values: Any) -> Matrix:
    """A copy of a matrix that has the values of some pairs; what is 0 of them is stored too."""
    changed = matrix.copy()
    if not len(row):
        return changed
    if not sparse.issparse(changed):
        changed[row, label] = values
        return changed
    values = np.broadcast_to(values, row.shape)
    changed.sort_indices()
    there = np.repeat(np.arange(changed.shape[0]), np.diff(changed.indptr)) * changed.shape[1]
    there, asked = there + changed.indices, row.astype(np.int64) * changed.shape[1] + label
    place = np.minimum(np.searchsorted(there, asked), max(len(there) - 1, 0))
    known = there[place] == asked if len(there) else np.zeros(len(asked), bool)
    changed.data[place[known]] = values[known]
    new = ~known & (values != 0)
    if new.any():
        more = (values[new].astype(changed.dtype), (row[new], label[new]))
        changed = sparse.csr_array(changed + sparse.csr_array(more, shape=changed.shape))
        changed.sort_indices()
    return changed


def taken(decisions: Any) -> tuple[pd.DataFrame, str]:
    """A table, or that in a file, checked; and what messages call it."""
    if isinstance(decisions, str | Path):
        return read(decisions), str(decisions)
    if not isinstance(decisions, pd.DataFrame):
        raise UserError(f"decisions=: must be a table or a file, got {type(decisions).__name__}")
    return checked(decisions, "decisions="), "decisions="


def read(path: str | Path) -> pd.DataFrame:
    """The table in a file, .csv or .parquet, checked; all its columns are text.

    A last line that breaks off, because whoever wrote it was stopped, is left out; `remarks` tells.
    """
    from wscpml.datasets import csv_files, table_files

    path = Path(path)
    if path.suffix not in (".csv", ".parquet"):
        raise UserError(f"{path}: decisions are a table, .csv or .parquet")
    if not path.is_file():
        raise UserError(f"{path}: no such file of decisions")
    if path.suffix == ".parquet":
        return checked(table_files.read(path), str(path))
    with told_if_unreadable(path):
        content = path.read_bytes()
        whole = _whole_size(content, path)
        if not whole:
            return empty(cut_off=bool(content))
        table = csv_files.read(path, text=csv_files.names(path), length=whole)
    return checked(table, str(path), cut_off=whole < len(content))


def empty(cut_off: bool = False) -> pd.DataFrame:
    """A table without decisions."""
    return checked(pd.DataFrame(columns=list(NEEDED)), "", cut_off)


def checked(table: pd.DataFrame, where: str, cut_off: bool = False) -> pd.DataFrame:
    """A person's table with the columns of ours, as text, decisions as `true`, `false` or nothing.

    What it is called, `where`, is for messages.
    """
    missing = [name for name in NEEDED if name not in table]
    if missing:
        raise UserError(
            f"{where}: has no column {missing[0]!r}; decisions have the columns "
            f"{', '.join(NEEDED)}, and may have {', '.join(COLUMNS[3:])}"
        )
    twice = table.columns[table.columns.duplicated()]
    if len(twice):
        raise UserError(f"{where}: column {twice[0]!r} is there twice; rename one")
    found = pd.DataFrame(
        {
            name: _text(table[name]) if name in table else pd.Series("", table.index, dtype=object)
            for name in COLUMNS
        }
    ).reset_index(drop=True)
    for name in PAIR:
        _refuse(found[name] == "", found, where, f"{name} is empty; name it, or leave the row out")
    words = found.decision.str.strip().str.lower().map(WORDS)
    _refuse(words.isna(), found, where, "{decision!r} is no decision; write true or false")
    found["decision"] = words.astype(object)
    found.attrs["cut_off"] = cut_off
    return found


def _text(column: "pd.Series[Any]") -> "pd.Series[Any]":
    """A column as text, whole numbers without a point, and nothing where it is empty."""
    if pd.api.types.is_float_dtype(column) and (column.dropna() % 1 == 0).all():
        column = column.astype("Int64")
    return column.astype(object).where(column.notna(), "").map(str)


def _refuse(wrong: "pd.Series[bool]", table: pd.DataFrame, where: str, problem: str) -> None:
    if wrong.any():
        row = int(np.argmax(wrong))
        raise UserError(f"{where}: row {row + 1}: {problem.format(**table.iloc[row])}")


def _each_ones_last_words(table: pd.DataFrame) -> pd.DataFrame:
    """What each reviewer said last of each pair, without what was taken back."""
    last = table.drop_duplicates([*PAIR, "reviewer"], keep="last")
    return last[last.decision != NONE]


def last_words(table: pd.DataFrame) -> pd.DataFrame:
    """The rows that count: of each pair the last one, in the order of the rows."""
    return _each_ones_last_words(table).drop_duplicates(PAIR, keep="last").reset_index(drop=True)


def contradictions(table: pd.DataFrame) -> pd.DataFrame:
    """Pairs on which reviewers differ: `instance`, `label`, `reviewer` and the `decision` of each.

    A row for each reviewer, those of a pair together.
    """
    words = _each_ones_last_words(table)
    differ = words.groupby(PAIR, sort=False).decision.transform("nunique") > 1
    found = words.loc[differ, [*PAIR, "reviewer", "decision"]]
    order = found.groupby(PAIR, sort=False).ngroup().to_numpy()
    return found.iloc[np.argsort(order, kind="stable")].reset_index(drop=True)


def remarks(table: pd.DataFrame) -> list[str]:
    """What a person may not expect of a table, in words."""
    found = []
    if table.attrs.get("cut_off"):
        found.append("the last line of the decisions breaks off, and is left out")
    said = table[table.decision != NONE]
    one = [*PAIR, "reviewer", "time"]
    both = said[said.groupby(one, sort=False).decision.transform("nunique") > 1]
    if len(both):
        first = both.iloc[0]
        found.append(
            f"{len(both.drop_duplicates(one))} pairs are decided both ways by one reviewer at one "
            f"time, such as {first.instance!r}, {first.label!r}; the last row "
            "counts"
        )
    differ = contradictions(table)
    if len(differ):
        first = differ.iloc[0]
        found.append(
            f"reviewers differ on {len(differ.drop_duplicates(PAIR))} pairs, such as "
            f"{first.instance!r}, {first.label!r}; the last word counts"
        )
    return found


def decided(
    table: pd.DataFrame, instances: Iterable[Any], labels: Iterable[str], where: str
) -> Decided:
    """The last words of a table among the instances and labels of a data set, in their order."""
    words = last_words(table)
    i, j = (
        _places(words[name], names, f"{where}: {name}")
        for name, names in zip(PAIR, (instances, labels), strict=True)
    )
    _refuse_unknown(words, i < 0, j < 0, where)
    order = np.lexsort((j, i))
    return Decided(i[order], j[order], (words.decision == TRUE).to_numpy(bool)[order])


def _places(said: "pd.Series[Any]", names: Iterable[Any], where: str) -> Array:
    """Where each name that is said is among all names, -1 if it is not."""
    if isinstance(names, pd.Index) and names.inferred_type == "string":
        every = names  # which knows what it has looked up before
    else:
        every = pd.Index([str(name) for name in names], dtype=object)
    if every.has_duplicates:
        twice = every[every.duplicated()][0]
        raise UserError(f"{where} {twice!r} is there twice in the data; rename one")
    return every.get_indexer(pd.Index(said))


def _refuse_unknown(words: pd.DataFrame, instance: Array, label: Array, where: str) -> None:
    strangers = words.instance[instance].unique().tolist()
    known = words.instance[~instance].nunique()
    if len(strangers) > STRANGERS * (len(strangers) + known):
        raise UserError(
            f"{where}: {len(strangers)} of its {len(strangers) + known} instances are not in the "
            f"data ({few(strangers)}): these seem to be the decisions on another data set; "
            "give those on this one"
        )
    for name, unknown in ((PAIR[0], instance), (PAIR[1], label)):
        if unknown.any():
            names = words.loc[unknown, name].unique().tolist()
            raise UserError(
                f"{where}: {name} {few([repr(each) for each in names])} not in the data "
                f"({len(names)} such); mend the name, or leave the rows out"
            )


def append(path: str | Path, rows: Iterable[Mapping[Any, Any]]) -> None:
    """Append decisions to a CSV file, which is made if it is missing; they are on disk on return.

    A decision is True, False, or None to take it back. Several processes may append at once, each
    its rows together. A last line that breaks off is cut away.
    """
    import fcntl

    path = Path(path)
    if path.suffix != ".csv":
        raise UserError(f"{path}: decisions are appended to a .csv alone; name one")
    told = [_told(row, path) for row in rows]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.write(_after(file, path, told))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror})") from None


def _told(row: Mapping[Any, Any], path: Path) -> dict[str, str]:
    """A row as text: one line, whatever a note has in it."""
    told = {name: "" if row.get(name) is None else str(row[name]) for name in COLUMNS}
    told["decision"] = {"True": TRUE, "False": FALSE}.get(told["decision"], told["decision"])
    told["note"] = " ".join(told["note"].split())
    for name, text in told.items():
        if "\n" in text or "\r" in text:
            raise UserError(f"{path}: {name} {text!r} has a line break, which no line can hold")
        if HALF.search(text):
            raise UserError(f"{path}: {name} {text!r} has half of a character; rename it")
    if told["decision"] not in (TRUE, FALSE, NONE) or not all(told[name] for name in PAIR):
        raise UserError(f"{path}: {row!r} is no decision on an instance and a label")
    return told


def _after(file: Any, path: Path, rows: list[dict[str, str]]) -> bytes:
    """What to write behind the content of an open file, of which a cut-off line is cut away."""
    from wscpml.datasets import csv_files

    file.seek(0)
    content = file.read()
    size = _whole_size(content, path)
    file.truncate(size)
    whole_line = not size or size < len(content) or content.endswith(b"\n")
    names, separator = (
        (csv_files.names(path), csv_files.separator(path)) if size else (COLUMNS, ",")
    )
    lost = [name for name in COLUMNS if name not in names and any(row[name] for row in rows)]
    if lost:
        raise UserError(f"{path}: has no column {lost[0]!r}; add it, or name a new file")
    text = StringIO()
    table = csv.DictWriter(
        text, list(names), extrasaction="ignore", delimiter=separator, lineterminator="\n"
    )
    if not size:
        table.writeheader()
    table.writerows({name: harmless(cell) for name, cell in row.items()} for row in rows)
    return ("" if whole_line else "\n").encode() + text.getvalue().encode()


def _whole_size(content: bytes, path: Path) -> int:
    """How much of a CSV file there is without a last line that breaks off.

    A quote that is left open would hide what is appended: it is refused.
    """
    if content.endswith(b"\n") and content.count(b'"') % 2 == 0:
        return len(content)
    end = 0
    while line := RECORD.match(content, end):
        end = line.end()
    if _breaks_off(content[end:], content[:end]):
        return end
    if content.count(b'"', end) % 2:
        place = content.count(b"\n", 0, end) + 1
        raise UserError(
            f"{path}: line {place}: a quote is left open; close it, or write it twice within quotes"
        )
    return len(content)


def _breaks_off(line: bytes, before: bytes) -> bool:
    """Whether a last line without an end is not all of a decision."""
    if b"\n" in line or b"\r" in line:  # a quote that is open since long ago: for the reader
        return False
    text = line.decode(errors="replace").removeprefix("\ufeff")
    if not before:
        return ",".join(COLUMNS).startswith(text) and not all(name in text for name in NEEDED)
    try:
        line.decode()
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"  # if it is another, the reader tells
    header = before.partition(b"\n")[0].decode("utf-8-sig", "replace")
    separator = max(",;\t", key=header.count)
    names, cells = (next(csv.reader([each], delimiter=separator), []) for each in (header, text))
    if len(cells) < len(names) or text.count('"') % 2:
        return True
    word = cells[-1].strip().lower()
    return (
        names[-1] == "decision"
        and word not in (TRUE, FALSE)
        and (TRUE.startswith(word) or FALSE.startswith(word))
    )
