"""What a person reviews: what we think of every candidate, the doubtful ones as tasks; and back.

Label Studio sorts tasks by one score each: here it is the confidence of the task's least likely
tag, so that in ascending order the most suspicious come first.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np
import pandas as pd

from wscpml.arrays import EVEN_ODDS, Matrix, row_blocks, values_at
from wscpml.datasets.candidate_table import candidate_table
from wscpml.datasets.media import medium
from wscpml.errors import UserError
from wscpml.limits import parsed_json, told_if_unreadable
from wscpml.quality.decisions import COLUMNS, FALSE, NONE, TRUE, Decided, checked

ROWS_AT_ONCE = 100_000  # instances in a part of a table of their candidates
TASKS_AT_ONCE = 10_000  # of Label Studio
SHOWN = "shown"  # and a number: what a task calls such a cell
OBJECTS = {"image": "Image", "audio": "Audio", None: "Text"}  # of Label Studio
ANNOTATION = ("instance", "reviewer", "time")  # what is the same in all decisions of one
NOT_IN_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def judged_tags(
    instances: "Sequence[Any] | pd.Index[Any]",
    labels: Sequence[str],
    candidates: Matrix,
    label_confidence: Matrix,
    decided: Decided,
) -> pd.DataFrame:
    """A row per candidate, in the order of rows and labels: its confidence, and 1 to keep it.

    What a person has `decided` is `true`, `false` or nothing.
    """
    confidence = values_at(label_confidence, *np.nonzero(candidates))
    return candidate_table(
        instances,
        labels,
        candidates,
        label_confidence=confidence,
        keep=(confidence >= EVEN_ODDS).astype(np.uint8),
        decided=decided.words(candidates),
    )


def judged_parts(
    instances: "pd.Index[Any]",
    labels: Sequence[str],
    candidates: Matrix,
    label_confidence: Matrix,
    decided: Decided,
) -> Iterator[tuple[slice, pd.DataFrame]]:
    """The same in parts, each of so many instances, and which these are."""
    n = len(instances)
    for rows in row_blocks(n, ROWS_AT_ONCE) or [slice(0, 0)]:
        chosen = np.zeros(n, bool)
        chosen[rows] = True
        yield (
            rows,
            judged_tags(
                instances[rows],
                labels,
                candidates[rows],
                label_confidence[rows],
                decided.of_rows(chosen),
            ),
        )


def label_studio_tasks(
    judged: pd.DataFrame, version: str, shown: Mapping[Any, Sequence[str]] | None = None
) -> list[dict[str, Any]]:
    """A task per instance that has a candidate not to keep, the most suspicious first.

    Its prediction chooses the candidates that are kept. What is decided needs no task. What is
    `shown` of an instance are the cells of the columns that `label_studio_config` is given.
    """
    tasks = []
    for instance, each in groupby(judged.itertuples(), key=attrgetter("instance")):
        rows: list[Any] = list(each)
        of_each: dict[Any, Any] = {row.label: row.label_confidence for row in rows}
        kept = [label for label, value in of_each.items() if value >= EVEN_ODDS]
        least = min((row.label_confidence for row in rows if not row.decided), default=1.0)
        if least >= EVEN_ODDS:
            continue
        chosen = {
            "from_name": "labels",
            "to_name": "instance",
            "type": "choices",
            "score": min((of_each[label] for label in kept), default=0.0),
            "value": {"choices": kept},
        }
        prediction = {
            "model_version": version,
            "score": least,
            "result": [chosen] if kept else [],
        }
        cells = shown[instance] if shown else ()
        data = {"instance": str(instance), "tags": list(of_each), "confidence": of_each}
        data |= {f"{SHOWN}{place}": cell for place, cell in enumerate(cells, start=1)}
        tasks.append({"data": data, "predictions": [prediction]})
    return sorted(tasks, key=lambda task: task["predictions"][0]["score"])


def label_studio_parts(
    instances: "pd.Index[Any]",
    labels: Sequence[str],
    candidates: Matrix,
    label_confidence: Matrix,
    decided: Decided,
    version: str,
    shown: Mapping[Any, Sequence[str]] | None = None,
) -> Iterator[dict[str, Any]]:
    """The same tasks one by one, without the table of all candidates."""
    n, (row, label) = len(instances), np.nonzero(candidates)
    confidence = values_at(label_confidence, row, label)
    least = np.ones(n)
    np.minimum.at(least, row, np.where(decided.codes(candidates) == 0, confidence, 1))
    doubtful = np.flatnonzero(least < EVEN_ODDS)
    by_doubt = doubtful[np.argsort(least[doubtful], kind="stable")]
    for some in row_blocks(len(by_doubt), TASKS_AT_ONCE):
        chosen = np.zeros(n, bool)
        chosen[by_doubt[some]] = True
        judged = judged_tags(
            instances[chosen],
            labels,
            candidates[chosen],
            label_confidence[chosen],
            decided.of_rows(chosen),
        )
        yield from label_studio_tasks(judged, version, shown)


def label_studio_config(labels: Sequence[str], shown: pd.DataFrame | None = None) -> str:
    """The labeling interface that these tasks are made for.

    Of each column that is `shown` the cells say whether it is one of pictures, sounds or text.
    """
    columns = {} if shown is None else {str(name): shown[name] for name in shown}
    for kind, name in [
        *(("label", each) for each in labels),
        *(("column", each) for each in columns),
    ]:
        if NOT_IN_XML.search(name):
            raise UserError(f"{kind} {name!r}: has a character that XML cannot hold; rename it")
    choices = "\n".join(f"    <Choice value={quoteattr(label)}/>" for label in labels)
    objects = "".join(
        f"  <Header value={quoteattr(name)}/>\n"
        f'  <{_object(cells)} name="{SHOWN}{place}" value="${SHOWN}{place}"/>\n'
        for place, (name, cells) in enumerate(columns.items(), start=1)
    )
    return f"""<View>
{objects}  <Text name="instance" value="$instance"/>
  <Table name="confidence" value="$confidence"/>
  <Choices name="labels" toName="instance" choice="multiple">
{choices}
  </Choices>
</View>
"""


def label_studio_export(path: Path) -> Any:
    """What Label Studio has exported, as it is."""
    with told_if_unreadable(path, "JSON"):
        return parsed_json(path.read_text(encoding="utf-8-sig"))


def label_studio_decisions(export: Any, where: str) -> pd.DataFrame:
    """The decisions in an export of these tasks from Label Studio, JSON or JSON-MIN, oldest first.

    A tag that is chosen is true, one that was a candidate and is not chosen is false. Annotations
    that were cancelled say nothing. What the export is called, `where`, is for messages.
    """
    if not isinstance(export, list):
        raise UserError(
            f"{where}: is no list of tasks; export from Label Studio as JSON or JSON-MIN"
        )
    rows: list[dict[str, str]] = []
    for number, task in enumerate(export, start=1):
        try:
            rows += _said_of_task(task)
        except (AttributeError, KeyError, TypeError, ValueError):
            raise UserError(
                f"{where}: task {number} is none of Label Studio's with tags that `wscpml clean "
                "--label-studio` wrote; export that project as JSON or JSON-MIN"
            ) from None
    found = pd.DataFrame(rows, columns=list(COLUMNS))
    return checked(found.sort_values("time", kind="stable"), where)


def news(said: pd.DataFrame, there: pd.DataFrame) -> list[dict[Any, Any]]:
    """The decisions from Label Studio, oldest first, that a table does not have yet.

    A label that a reviewer has added, and that a later annotation of the same instance has neither
    chosen nor among its tags, is taken back: by an empty decision behind those of the annotation.
    """
    told = list(COLUMNS[:-1])
    known = pd.MultiIndex.from_frame(said[told]).isin(pd.MultiIndex.from_frame(there[told]))
    of_each: dict[tuple[Any, Any], dict[Any, Any]] = {}  # the words of a reviewer on an instance
    for row in there.itertuples():
        of_each.setdefault((row.instance, row.reviewer), {})[row.label] = row.decision
    found: list[dict[Any, Any]] = []
    rows = zip(said.to_dict("records"), known.tolist(), strict=True)
    for _, each in groupby(rows, key=lambda row: [row[0][name] for name in ANNOTATION]):
        annotation = list(each)
        words = {row["label"]: row["decision"] for row, _ in annotation}
        if new := [row for row, is_known in annotation if not is_known]:
            before = of_each.setdefault((new[0]["instance"], new[0]["reviewer"]), {})
            gone = [name for name in before if before[name] == TRUE and name not in words]
            found += [*new, *(new[0] | {"label": name, "decision": NONE} for name in gone)]
            before |= words | dict.fromkeys(gone, NONE)
    return found


def _said_of_task(task: dict[str, Any]) -> list[dict[str, str]]:
    """The decisions of all annotations of a task, in the one form or the other."""
    if "data" not in task:  # JSON-MIN: an annotation with the cells of the task's data beside it
        said = [task] if task.get("annotation_id") is not None else []
        return [
            row for each in said for row in _said(task, each, "annotator", [each.get("labels")])
        ]
    rows = []
    for each in task.get("annotations", []):
        if not each.get("was_cancelled"):
            chosen = [one["value"] for one in each["result"] if one["from_name"] == "labels"]
            rows += _said(task["data"], each, "completed_by", chosen)
    return rows


def _said(
    data: dict[str, Any], annotation: dict[str, Any], who: str, chosen: list[Any]
) -> list[dict[str, str]]:
    """A row for each tag of an instance, and for each other label that is chosen."""
    instance, tags = data["instance"], data["tags"]
    labels = [label for each in chosen for label in _choices(each)]
    if not all(isinstance(name, str) for name in (instance, *tags, *labels)):
        raise TypeError("names are text")
    reviewer = annotation.get(who)
    if isinstance(reviewer, dict):
        reviewer = reviewer.get("email") or reviewer.get("id")
    time = annotation.get("updated_at") or annotation.get("created_at")
    return [
        {
            "instance": instance,
            "label": label,
            "decision": TRUE if label in labels else FALSE,
            "reviewer": "" if reviewer is None else str(reviewer),
            "time": time or "",
            "note": "",
        }
        for label in dict.fromkeys([*tags, *labels])
    ]


def _choices(value: Any) -> list[str]:
    """Chosen labels as Label Studio writes them: a list in a dictionary, or just the only one."""
    if isinstance(value, list):
        return [label for each in value for label in _choices(each)]
    if isinstance(value, dict):
        return list(value["choices"])
    return [] if value is None else [value]


def _object(column: "pd.Series[Any]") -> str:
    """The object of Label Studio that shows a column: by what all of its cells are, if filled."""
    kinds = {medium(cell) for cell in column if cell}
    return OBJECTS[kinds.pop() if len(kinds) == 1 else None]
