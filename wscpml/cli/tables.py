"""Tables that `wscpml clean` writes: decisions with unjudged tags, and a person's own, cleaned."""

from argparse import Namespace
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wscpml.datasets.dataset import Dataset
from wscpml.errors import UserError

if TYPE_CHECKING:
    import pandas as pd


def with_unjudged(decided: "pd.DataFrame", data: Dataset, rows: slice) -> "pd.DataFrame":
    """Decisions on some instances with their tags that were too rare to be judged.

    These are kept, and `judged` says 0.
    """
    import pandas as pd

    from wscpml.datasets.candidate_table import candidate_table
    from wscpml.quality.decisions import NONE

    if data.unjudged is None:
        return decided
    instances = data.instance_ids[rows]
    passed = candidate_table(
        instances, data.unjudged.label_names, data.unjudged.candidates[rows]
    ).assign(keep=1, decided=NONE, judged=0)
    both = pd.concat([each.astype({"label": str}) for each in (decided.assign(judged=1), passed)])
    place = pd.Series(range(len(instances)), instances)
    order = both.instance.map(place).to_numpy().argsort(kind="stable")
    return both.iloc[order].astype({"keep": "uint8", "judged": "uint8"}).reset_index(drop=True)


def refuse_uncleanable(options: Namespace) -> None:
    """A cleaned table needs a column of tags in a file that can be read once more."""
    if not options.tags or options.candidates:
        raise UserError("--cleaned-table: is FILE without wrong tags, and needs --tags, its column")
    if options.features == "-":
        raise UserError("--cleaned-table: standard input cannot be read twice; give a file")


def cleaned(options: Namespace, data: Dataset, dropped: "pd.DataFrame") -> "pd.DataFrame":
    """The person's own table, its tags without those that are not to be kept."""
    import pandas as pd

    from wscpml.datasets import own, table_files, tags
    from wscpml.datasets.tables import of_one_kind

    path = Path(options.features)
    table = read = table_files.read(path, [options.tags])
    if table_files.is_of_text(path):  # whose numbers are kept as they are written
        table = table_files.read(path, list(map(str, table)))
    names = data.label_names + (data.unjudged.label_names if data.unjudged else [])
    spelt = {tags.plain(name): name for name in names} if options.merge_variants else {}
    row = {instance: i for i, instance in enumerate(data.instance_ids)}
    pairs = zip(dropped.instance, dropped.label, strict=True)
    wrong = {(row[instance], label) for instance, label in pairs}

    def renamed(labels: Iterable[str]) -> dict[str, str]:
        return {label: spelt.get(tags.plain(label), label) for label in labels}

    whole = table.assign(**{str(name): of_one_kind(table[name]) for name in table})
    if options.tags not in table or tags.of_zero_and_one(read[options.tags]) is not None:
        apart = (options.id, *options.show)
        columns, _ = tags.columns(
            options.tags, [name for name in map(str, table) if name not in apart]
        )
        return _without(whole, read[columns], renamed(columns), wrong)
    lists = tags.read_lists(table[options.tags], options.separator, str(path), own.on_command_line)
    of_each = renamed(label for labels in lists.labels for label in labels)
    left = pd.Series(lists.without(wrong, of_each), table.index)
    return whole.assign(**{options.tags: of_one_kind(left)})


def _without(
    table: "pd.DataFrame",
    columns: "pd.DataFrame",
    names: Mapping[str, str],
    wrong: Collection[tuple[int, str]],
) -> "pd.DataFrame":
    """A table whose columns of 0 and 1 have what means 0 in them, for wrong pairs of row and label.

    The label of each column is by `names`.
    """
    import numpy as np

    from wscpml.datasets import tags

    def none(column: "pd.Series[Any]") -> Any:
        """0 or -1 as a column that has neither would have it."""
        cell = column.iloc[0]
        if isinstance(cell, str):
            return "False" if cell.strip().lower() == "true" else str(least)
        return type(cell)(0 if isinstance(cell, bool | np.bool_) else least)

    marks: dict[str, Any] = {name: tags.of_zero_and_one(columns[name]) for name in names}
    least = int(min(0, *(each.min() for each in marks.values())))
    changed = {}
    for name, label in names.items():
        there = np.flatnonzero(marks[name] > 0).tolist()
        absent = np.flatnonzero(marks[name] <= 0)
        column = table[name].copy()
        zero = column.iloc[absent[0]] if len(absent) else none(column)
        column.iloc[[i for i in there if (i, label) in wrong]] = zero
        changed[name] = column
    return table.assign(**changed)
