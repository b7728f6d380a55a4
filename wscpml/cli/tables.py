"""Tables that `wscpml clean` writes: decisions with unjudged tags, and a person's own, cleaned."""

from argparse import Namespace
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from wscpml.datasets.dataset import Dataset
from wscpml.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

WORDS = (".csv", ".tsv", ".csv.gz", ".tsv.gz")  # files whose numbers are kept as they are written


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
    from wscpml.datasets import own, table_files, tags

    path = Path(options.features)
    table = read = table_files.read(path, [options.tags])
    if table_files.kind(path) in WORDS:
        table = table_files.read(path, list(map(str, table)))
    names = data.label_names + (data.unjudged.label_names if data.unjudged else [])
    spelt = {tags.plain(name): name for name in names} if options.merge_variants else {}
    row = {instance: i for i, instance in enumerate(data.instance_ids)}
    pairs = zip(dropped.instance, dropped.label, strict=True)
    wrong = {(row[instance], label) for instance, label in pairs}

    def renamed(labels: Iterable[str]) -> dict[str, str]:
        return {label: spelt.get(tags.plain(label), label) for label in labels}

    if options.tags not in table:
        apart = (options.id, *options.show)
        columns, _ = tags.columns(
            options.tags, [name for name in map(str, table) if name not in apart]
        )
        return _without(table, read[columns], renamed(columns), wrong)
    lists = tags.read_lists(table[options.tags], options.separator, str(path), own.on_command_line)
    of_each = renamed(label for labels in lists.labels for label in labels)
    return table.assign(**{options.tags: lists.without(wrong, of_each)})


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

    from wscpml.datasets.tables import numbers

    values = numbers(columns, "")
    absent = np.argwhere(values <= 0)
    zero = table[list(columns)].iat[tuple(absent[0])] if len(absent) else "0"
    changed = {}
    for (name, label), of_column in zip(names.items(), values.T, strict=True):
        there = np.flatnonzero(of_column > 0).tolist()
        changed[name] = table[name].copy()
        changed[name].iloc[[i for i in there if (i, label) in wrong]] = zero
    return table.assign(**changed)
