"""What a person reviews: what we think of every candidate, and the doubtful ones as tasks.

Label Studio sorts tasks by one score each: here it is the confidence of the task's least likely
tag, so that in ascending order the most suspicious come first.
"""

import re
from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np
import pandas as pd

from wscpml.arrays import EVEN_ODDS, Array
from wscpml.datasets.candidate_table import candidate_table
from wscpml.errors import UserError
from wscpml.quality.decisions import Decided

NOT_IN_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def judged_tags(
    instances: Sequence[Any],
    labels: Sequence[str],
    candidates: Array,
    label_confidence: Array,
    decided: Decided,
) -> pd.DataFrame:
    """A row per candidate, in the order of rows and labels: its confidence, and 1 to keep it.

    What a person has `decided` is `true`, `false` or nothing.
    """
    return candidate_table(
        instances,
        labels,
        candidates,
        label_confidence=label_confidence,
        keep=(label_confidence >= EVEN_ODDS).astype(np.uint8),
        decided=decided.words(candidates),
    )


def label_studio_tasks(judged: pd.DataFrame, version: str) -> list[dict[str, Any]]:
    """A task per instance that has a candidate not to keep, the most suspicious first.

    Its prediction chooses the candidates that are kept. What is decided needs no task.
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
        data = {"instance": str(instance), "tags": list(of_each), "confidence": of_each}
        tasks.append({"data": data, "predictions": [prediction]})
    return sorted(tasks, key=lambda task: task["predictions"][0]["score"])


def label_studio_config(labels: Sequence[str]) -> str:
    """The labeling interface that these tasks are made for."""
    for label in labels:
        if NOT_IN_XML.search(label):
            raise UserError(f"label {label!r}: has a character that XML cannot hold; rename it")
    choices = "\n".join(f"    <Choice value={quoteattr(label)}/>" for label in labels)
    return f"""<View>
  <Text name="instance" value="$instance"/>
  <Table name="confidence" value="$confidence"/>
  <Choices name="labels" toName="instance" choice="multiple">
{choices}
  </Choices>
</View>
"""
