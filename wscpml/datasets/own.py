"""A person's own files: which column or array is what."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from wscpml.arrays import Array, Matrix, known_rows, to_dense, values_at
from wscpml.datasets import readers, table_files, tags
from wscpml.datasets.columns import ROLES, Role
from wscpml.datasets.dataset import (
    Dataset,
    Unjudged,
    ask_for_labels,
    binary,
    in_full,
    lean,
)
from wscpml.datasets.encoding import Encoded, encode
from wscpml.datasets.tables import numbers
from wscpml.errors import UserError

DECIMAL = re.compile(r"-?\d+(\.\d+)?")
NO_LABELS, UNKNOWN = np.uint8(0), np.int8(-1)  # what long rows mean by leaving an instance out
MOST_NAMED = 20  # columns in a message
NO_VOTES = np.float64(0)
TAGGERS = ("tagger", "annotator")  # columns of long rows that say who gave the label


def in_python(option: str) -> str:
    """What a call of ours names an option."""
    return "columns=" if option in ROLES else f"{option}="


def in_params(option: str) -> str:
    """What params.yaml names an option."""
    return "dataset.columns" if option in ROLES else f"dataset.{option}"


def on_command_line(option: str) -> str:
    """What the command `wscpml` names an option."""
    places = {"features": "FILE", "candidates": "CANDIDATES"}
    return places.get(option, f"--{option.replace('_', '-')}")


@dataclass(frozen=True)
class Sources:
    """Where the parts of a data set are, and how to read them."""

    features: Path
    candidates: Path | None = None  # None: in the same file as the features
    truth: Path | None = None
    id: str | None = None  # column that names the instances
    tags: str | None = None  # column of lists of labels, or 0/1 columns as rock,jazz or tag_*
    separator: str | None = None  # between the labels of such a list; None: found by looking
    merge_variants: bool = False  # whether labels are one that differ in case or blanks alone
    min_count: int = 1  # rows that a label must have to be judged
    label_count: int | None = None  # of the last attributes of an ARFF file
    columns: Mapping[str, Role] = field(default_factory=dict)  # what they are, by name
    show: Sequence[str] = ()  # columns to show to a person, which are no features
    named: Callable[[str], str] = in_python  # what messages call an option


@dataclass(frozen=True)
class Features:
    """Features as a file has them."""

    matrix: Matrix
    names: list[str] | None
    ids: list[str] | None
    encoded: Encoded | None = None  # of a table
    raw: pd.DataFrame | None = None


@dataclass(frozen=True)
class Labels:
    """Labels as a file has them."""

    path: Path
    matrix: Matrix
    names: list[str] | None
    ids: list[str] | None
    may_lack_instances: bool = False  # long rows say nothing of an instance without labels
    votes: Matrix | None = None  # like the matrix: how much speaks for each label


def load(
    sources: Sources, held_out: Callable[[int], Array] | None = None, shown: bool = False
) -> Dataset:
    """Read a data set from a person's own files.

    Where the truth is known, `held_out` says which of so many rows, a boolean ``(n,)``, are not to
    learn from: the encoding of columns is not fitted to them. If `shown`, bars tell how far it is.
    """
    if sources.separator == "":
        raise UserError(f"{sources.named('separator')}: must not be empty")
    files = _Files(sources, shown)
    with files.told_by_their_rows():
        return _load(files, sources, held_out)


def _load(files: "_Files", sources: Sources, held_out: Callable[[int], Array] | None) -> Dataset:
    for name in sources.show:
        files.shown_in(name)
    has_truth = bool(sources.truth or files.holds_truth())
    features = files.features(held_out if has_truth else None)
    n = features.matrix.shape[0]
    candidates = files.labels(sources.candidates or sources.features, "labels")
    truth = None
    if has_truth:
        truth = _in_full(files.labels(sources.truth or sources.features, "truth"))
        candidates = _in_full(candidates)
    for labels in filter(None, (candidates, truth)):
        if features.ids is None:
            features = replace(features, ids=files.adopted(labels, n))
    to_show = {name: files.shown_column(name, features) for name in sources.show}
    label_names = candidates.names or _numbered("label", candidates.matrix.shape[1])
    matrices = [_aligned(candidates, features, sources, NO_LABELS)]
    if candidates.votes is not None:
        voted = replace(candidates, matrix=candidates.votes)
        matrices.append(_aligned(voted, features, sources, NO_VOTES))
    if truth:
        matrices.append(_aligned(truth, features, sources, UNKNOWN))
    if truth and truth.names and truth.names != label_names:
        ask_for_labels(2 * n, len({*label_names, *truth.names}), str(truth.path))
        label_names, matrices = _same_columns(label_names, matrices, truth.names)
    odd = tags.odd_labels(label_names, matrices[0], sources.named, sources.merge_variants)
    files.remarks += [f"{candidates.path}: {line}" for line in odd]
    if sources.merge_variants:
        groups = tags.variants(label_names, matrices[0].sum(axis=0))
        label_names, matrices = tags.merged(label_names, matrices, groups)
    unjudged = None
    if sources.min_count > 1:
        rare = matrices[0].sum(axis=0) < sources.min_count
        if rare.all():
            raise UserError(
                f"{candidates.path}: {sources.named('min_count')}: no label has "
                f"{sources.min_count} rows"
            )
        unjudged = Unjudged([label_names[j] for j in np.flatnonzero(rare)], matrices[0][:, rare])
        label_names = [label_names[j] for j in np.flatnonzero(~rare)]
        matrices = [matrix[:, ~rare] for matrix in matrices]
        files.remarks += unjudged.told(sources.named("min_count"))
    votes = None if candidates.votes is None else matrices[1]
    if votes is not None and len(np.unique(values_at(votes, *np.nonzero(votes)))) < 2:
        votes = None
    return Dataset(
        features=features.matrix,
        truth=lean(matrices[-1]) if truth else None,
        candidates=lean(matrices[0]),
        feature_names=features.names or _numbered("x", features.matrix.shape[1]),
        label_names=label_names,
        instance_ids=np.arange(n).tolist() if features.ids is None else _whole(features.ids),
        remarks=files.remarks,
        columns=features.encoded.columns if features.encoded else (),
        encoding=features.encoded.encoding if features.encoded else None,
        raw=features.raw,
        unjudged=unjudged,
        shown=pd.DataFrame(to_show) if to_show else None,
        votes=None if votes is None else lean(votes),
    )


class _Files:
    """The files of a data set, each read once."""

    def __init__(self, sources: Sources, shown: bool) -> None:
        self.sources, self.shown = sources, shown
        self.read: dict[Path, Any] = {}
        self.parts: dict[Path, list[tuple[Path, int]]] = {}  # of a table in several files
        self.remarks: list[str] = []

    @contextmanager
    def told_by_their_rows(self) -> Iterator[None]:
        """Refusals of a row of a table in several files name the file and its row."""
        try:
            yield
        except UserError as mistake:
            raise UserError(*map(self._of_its_file, mistake.args)) from None

    def _of_its_file(self, line: str) -> str:
        for path, parts in self.parts.items():
            told = re.match(f"{re.escape(str(path))}: row (\\d+)", line)
            if told is None:
                continue
            row = int(told[1])
            for file, count in parts:
                if row <= count:
                    return f"{file}: row {row}{line[told.end() :]}"
                row -= count
        return line

    def content(self, path: Path) -> Any:
        """A table, or the Parts of another format."""
        if path not in self.read:
            refuse_unreadable(path)
            if table_files.is_table(path):
                named = (self.sources.id, self.sources.tags, "label", *self.sources.show)
                words = [name for name, role in self.sources.columns.items() if role != "number"]
                text = [name for name in (*named, *words) if name]
                table, self.parts[path] = table_files.read_with_parts(path, text)
                self.read[path] = self.without_row_numbers(table, path)
            else:
                self.read[path] = readers.read(path, self.sources.label_count)
        return self.read[path]

    def without_row_numbers(self, table: pd.DataFrame, path: Path) -> pd.DataFrame:
        """A table without the column that pandas writes an index to, unless it is the ids."""
        first, n = table.columns[0], len(table)
        if first not in table_files.UNNAMED or first == self.sources.id or not n:
            return table
        if not any(np.array_equal(table[first], range(k, n + k)) for k in (0, 1)):
            return table
        self.remarks.append(
            f"{path}: its first column has no name and just counts the rows, so it is left out; "
            "give it a name to keep it"
        )
        return table.drop(columns=first)

    def ids(self, table: pd.DataFrame, path: Path) -> list[str] | None:
        """The ids of a table's rows; whole numbers may be written as floats."""
        if self.sources.id is None:
            return None
        found = ids(table, self.sources.id, path, self.sources.named("id"))
        decimal = next((key for key in found if "." in key), None)
        if decimal is None or not all(map(DECIMAL.fullmatch, found)):
            return found
        remark = (
            f"{path}: column {self.sources.id!r}: ids are decimal numbers, such as {decimal}, and "
            "1.0 counts as 1; write whole numbers or text"
        )
        if remark not in self.remarks:
            self.remarks.append(remark)
        return [re.sub(r"\.0+$", "", key) for key in found]

    def numbers(self, table: pd.DataFrame, path: Path, named_as_tags: bool) -> Array:
        named = self.sources.named
        options = f"{named('id')}, {named('tags')} or {named('show')}"
        way_out = f"leave the column out, or name it as {options}"
        if named_as_tags:
            way_out = f"{named('tags')} names one column of lists, or columns of 0 and 1"
        return numbers(table, str(path), way_out=way_out)

    def holds_truth(self) -> bool:
        return getattr(self.content(self.sources.features), "truth", None) is not None

    def features(self, held_out: Callable[[int], Array] | None) -> Features:
        path, sources = self.sources.features, self.sources
        found = self.content(path)
        if isinstance(found, readers.Parts):
            if found.features is None:
                raise UserError(f"{path}: holds no features")
            if found.first_column == 0:
                self.remarks.append(
                    f"{path}: some row has column 0, so that columns count from 0; in files to "
                    "predict some row must have it, too"
                )
            return Features(found.features, found.feature_names, None)
        with_tags = sources.candidates in (None, path)
        tagged = self.tag_columns(found, path, with_tags)
        if with_tags and not tagged:
            lacking = f"it has no column {sources.tags!r}; " if sources.tags else ""
            raise UserError(
                f"{path}: where are its tags? {lacking}{sources.named('tags')} names their column "
                f"here, or {sources.named('candidates')} another file; the columns are "
                f"{_columns(found)}"
            )
        ids = self.ids(found, path)
        shown = [name for name in sources.show if name not in sources.columns]
        rest = (sources.id, *tagged, *shown)
        table = found.drop(columns=[name for name in rest if name in found])
        train = None if held_out is None else ~held_out(len(table))
        encoded = encode(table, str(path), sources.named, sources.columns, train, self.shown)
        raw = table if encoded.encoding else None
        way_in = "" if sources.id else f"if it names the rows, give it as {sources.named('id')}"
        told = (line for each in encoded.columns for line in each.remarks(way_in))
        self.remarks += [f"{path}: {line}" for line in told]
        return Features(encoded.matrix, encoded.names, ids, encoded, raw)

    def labels(self, path: Path, kind: str) -> Labels:
        """Labels from a table's lists, long rows or 0/1 columns, or from a matrix."""
        found, sources = self.content(path), self.sources
        if isinstance(found, readers.Parts):
            return _matrix_labels(found, path, kind, path == sources.features)
        ids, tagged = self.ids(found, path), self.tag_columns(found, path)
        marks = tags.of_zero_and_one(found[sources.tags]) if tagged == [sources.tags] else None
        if marks is not None:
            found = found.assign(**{tagged[0]: marks})
        elif tagged == [sources.tags]:
            column, named = found[sources.tags], sources.named
            lists = tags.read_lists(column, sources.separator, str(path), named)
            self.remarks += lists.remarks
            names, matrix = lists.indicator()
            return Labels(path, matrix, names, ids)
        if not tagged and ids is not None and "label" in found:
            self.remarks += _repeated(found, sources.id, path)
            return _long_rows(found, ids, path)
        rest = (sources.id, *sources.show)
        columns = found.drop(columns=[name for name in rest if name in found])
        if tagged:
            columns = columns[tagged]
        names = list(map(str, columns))
        matrix = binary(self.numbers(columns, path, bool(tagged)), str(path), names)
        return Labels(path, matrix, names, ids)

    def adopted(self, labels: Labels, n: int) -> list[str] | None:
        """Ids for n features that have none, if labels have some.

        Long rows come in any order and may lack instances, so these must name them by number.
        """
        ids, features = labels.ids, self.sources.features
        if ids is None or not labels.may_lack_instances and len(ids) != n:
            return None
        if not labels.may_lack_instances:
            self.remarks.append(
                f"{labels.path}: its ids are taken for those of {features}, which has none, row by "
                "row; make sure that both have the same order"
            )
            return ids
        for first in (0, 1):
            numbers = list(map(str, range(first, n + first)))
            if set(numbers) == set(ids):
                return numbers
        raise UserError(
            f"{labels.path}: its rows name instances, such as {ids[0]!r}, and {features} does not; "
            f"give features as a table with the column {self.sources.id!r}, or number all {n} "
            "instances by their rows, from 0 or from 1 on"
        )

    def tag_columns(self, table: pd.DataFrame, path: Path, all_of_them: bool = True) -> list[str]:
        """The columns of a table that hold its tags: one of lists, or some of 0 and 1, or none."""
        sources = self.sources
        apart = (sources.id, *sources.show)
        there = [c for c in table if isinstance(c, str) and c not in apart]
        found, unknown = tags.columns(sources.tags, there)
        if found and unknown and all_of_them:
            raise UserError(
                f"{path}: {sources.named('tags')}: has no column {unknown[0]!r}; its columns are "
                f"{_columns(table)}"
            )
        return found

    def shown_in(self, name: str) -> Path:
        """The file that has a column to show: that of the features, or else of the candidates."""
        paths = [path for path in (self.sources.features, self.sources.candidates) if path]
        tables = [(path, self.content(path)) for path in paths]
        named = {path: table for path, table in tables if isinstance(table, pd.DataFrame)}
        found = [path for path, table in named.items() if name in table]
        if not found:
            columns = ", ".join(map(_columns, named.values())) or "not named"
            raise UserError(
                f"{paths[0]}: {self.sources.named('show')}: has no column {name!r}; its columns "
                f"are {columns}"
            )
        return found[0]

    def shown_column(self, name: str, features: Features) -> list[str]:
        """A column to show, a cell for each row of the features, by the ids if both files have."""
        path, n = self.shown_in(name), features.matrix.shape[0]
        table = self.content(path)
        cells = table[name].map(str, na_action="ignore").astype(object).fillna("").tolist()
        ids = self.ids(table, path)
        if path != self.sources.features and ids is not None and features.ids is not None:
            of_each = dict(zip(reversed(ids), reversed(cells), strict=True))  # the first counts
            return [of_each.get(key, "") for key in features.ids]
        if len(cells) != n:
            raise UserError(
                f"{path}: {self.sources.named('show')}: column {name!r} has {len(cells)} rows, and "
                f"there are {n} instances"
            )
        return cells


def _numbered(stem: str, count: int) -> list[str]:
    return [f"{stem}{i + 1}" for i in range(count)]


def _columns(table: pd.DataFrame) -> str:
    names = list(map(str, table.columns))
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def refuse_unreadable(path: Path) -> None:
    """Refuse a file that is not there, is empty or of a kind that is not known."""
    if path == table_files.STANDARD_INPUT or path.is_dir() or table_files.is_pattern(path):
        return
    if table_files.kind(path) not in (*table_files.KINDS, *readers.FORMATS):
        known = ", ".join((*table_files.KINDS, *readers.FORMATS))
        raise UserError(f"{path}: extension {path.suffix!r} is not known; known are {known}")
    if not path.is_file():
        raise UserError(f"{path}: no such file")
    if path.stat().st_size == 0:
        raise UserError(f"{path}: is empty")


def ids(table: pd.DataFrame, column: str, path: Path, option: str, first: int = 1) -> list[str]:
    """A column of ids as text, so that those of different files can be compared.

    What the column's `option` is called and the number of the `first` row are for messages.
    """
    if column not in table:
        raise UserError(
            f"{path}: {option}: has no column {column!r}; its columns are {_columns(table)}"
        )
    _refuse_empty(table, column, path, first)
    return [str(key).removesuffix(" 00:00:00") for key in table[column]]


def _whole(ids: list[str]) -> list[Any]:
    """Ids as whole numbers where that is what all of them are."""
    if all(key.isdecimal() and key == str(int(key)) for key in ids):
        return [int(key) for key in ids]
    return ids


def _refuse_empty(table: pd.DataFrame, column: str, path: Path, first: int = 1) -> None:
    missing = table[column].isna().to_numpy()
    if missing.any():
        row = first + int(np.argmax(missing))
        raise UserError(f"{path}: row {row}, column {column!r}: is empty")


def _long_rows(table: pd.DataFrame, ids: list[str], path: Path) -> Labels:
    """A row per instance and label, or one of each tagger's.

    A weight of 0 or less means that the label is not there. The votes of a label are the weights of
    its rows together, or how many taggers give it.
    """
    if not len(table):
        raise UserError(f"{path}: has no rows")
    _refuse_empty(table, "label", path)
    weights = np.ones(len(table))
    if "weight" in table:
        _refuse_empty(table, "weight", path)
        weights = np.maximum(numbers(table[["weight"]], str(path))[:, 0], 0)
        if not np.isfinite(weights).all():
            row = int(np.argmin(np.isfinite(weights))) + 1
            raise UserError(f"{path}: row {row}, column 'weight': is not a finite number")
    rows, unique_ids = pd.factorize(pd.Series(ids, dtype=object))
    columns, names = pd.factorize(table["label"].astype(str).str.strip(), sort=True)
    who = next((name for name in TAGGERS if name in table), None)
    if who:
        _refuse_empty(table, who, path)
        given = pd.DataFrame({"row": rows, "column": columns, "who": table[who].astype(str)})
        last = ~given.duplicated(keep="last").to_numpy()  # word of each tagger on a label
        rows, columns, weights = rows[last], columns[last], (weights > 0)[last]
    there, shape = weights > 0, (len(unique_ids), len(names))
    pairs, place = np.unique(rows[there] * shape[1] + columns[there], return_inverse=True)
    ends = np.searchsorted(pairs, np.arange(shape[0] + 1) * shape[1])
    ones, label = np.ones(len(pairs), np.uint8), pairs % shape[1]
    matrix: Matrix = sparse.csr_array((ones, label, ends), shape=shape)
    votes = None
    if who or "weight" in table:
        weighed = np.bincount(place, weights[there])
        votes = lean(sparse.csr_array((weighed, label, ends), shape=shape))
    whole = shape[1] > tags.UNLIKE * shape[0]  # hardly labels: refused if very many
    matrix = in_full(matrix, str(path)) if whole else lean(matrix)
    return Labels(path, matrix, names.tolist(), unique_ids.tolist(), True, votes)


def _repeated(table: pd.DataFrame, id: str | None, path: Path) -> list[str]:
    """A remark on long rows that are there twice, and do not say why."""
    if any(name in table for name in ("weight", *TAGGERS)):
        return []
    twice = int(table.duplicated([id, "label"]).sum())
    if not twice:
        return []
    return [
        f"{path}: {twice} rows repeat an id and label, which counts once; if they are votes, name "
        f"who gave them in a column {TAGGERS[0]!r}"
    ]


def _matrix_labels(found: readers.Parts, path: Path, kind: str, with_features: bool) -> Labels:
    """The labels among a file's matrices; a file of its own may have just one matrix."""
    matrix, names = getattr(found, kind), found.label_names
    if matrix is None and not with_features:
        matrix = next((m for m in (found.labels, found.truth) if m is not None), None)
        if matrix is None:
            matrix, names = found.features, found.feature_names
    if matrix is None:
        raise UserError(f"{path}: holds no {'candidates' if kind == 'labels' else 'truth'}")
    return Labels(path, binary(matrix, str(path)), names, None)


def _aligned(labels: Labels, features: Features, sources: Sources, absent: np.generic) -> Matrix:
    """The label rows in the order of the features; an instance without a row is `absent`."""
    n, ids = features.matrix.shape[0], features.ids
    if labels.ids is None or ids is None:
        if labels.matrix.shape[0] != n:
            raise UserError(
                f"{labels.path}: has labels of {labels.matrix.shape[0]} instances, "
                f"{sources.features} features of {n}; give both the same rows, or a column that "
                f"both have as {sources.named('id')}"
            )
        return labels.matrix
    if labels.ids == ids:
        return labels.matrix
    position = {key: i for i, key in enumerate(ids)}
    unknown = [key for key in labels.ids if key not in position]
    if unknown:
        raise UserError(
            f"{labels.path}: instance {unknown[0]!r} has labels but no features "
            f"({len(unknown)} such instances)"
        )
    if len(set(labels.ids)) < len(labels.ids):
        twice = pd.Index(labels.ids).duplicated().argmax()
        raise UserError(f"{labels.path}: instance {labels.ids[twice]!r} has two rows of labels")
    if len(labels.ids) < len(ids) and not labels.may_lack_instances:
        known = set(labels.ids)
        lacking = next(key for key in ids if key not in known)
        raise UserError(
            f"{labels.path}: instance {lacking!r} has features but no row of labels "
            f"({len(ids) - len(known)} such instances)"
        )
    places = [position[key] for key in labels.ids]
    if sparse.issparse(labels.matrix):
        row = np.array(places)[np.repeat(np.arange(len(places)), np.diff(labels.matrix.indptr))]
        parts = labels.matrix.data, (row, labels.matrix.indices)
        return sparse.csr_array(parts, shape=(n, labels.matrix.shape[1]))
    aligned = np.full((n, labels.matrix.shape[1]), absent)
    aligned[places] = labels.matrix
    return aligned


def _in_full(labels: Labels) -> Labels:
    votes = None if labels.votes is None else to_dense(labels.votes)
    return replace(labels, matrix=in_full(labels.matrix, str(labels.path)), votes=votes)


def _same_columns(
    names: list[str], matrices: Sequence[Array], truth_names: list[str]
) -> tuple[list[str], list[Array]]:
    """Candidates, their votes and the truth, the last, over all labels that either names."""
    every = list(dict.fromkeys([*names, *truth_names]))
    place = {name: j for j, name in enumerate(every)}
    widened = []
    own_names = [names] * (len(matrices) - 1) + [truth_names]
    for matrix, own in zip(matrices, own_names, strict=True):
        wide = np.zeros((len(matrix), len(every)), matrix.dtype)
        wide[:, [place[name] for name in own]] = matrix
        wide[~known_rows(matrix)] = UNKNOWN
        widened.append(wide)
    return every, widened
