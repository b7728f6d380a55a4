"""Take what people have decided, as far as it counts: a change of anything else reruns nothing."""

import sys

from wscpml import artifacts
from wscpml.errors import readable
from wscpml.quality import decisions
from wscpml.settings import Settings

from . import run


def collect_decisions(settings: Settings) -> None:
    """Write the last word on each pair, in the order of the data; and where reviewers differ."""
    path = settings.review.decisions
    names = artifacts.read("data/prepared/names.json")
    table = decisions.read(path) if path else decisions.empty()
    for remark in decisions.remarks(table):
        print(readable(f"{path}: {remark}"), file=sys.stderr)
    decided = decisions.decided(table, names["instances"], names["labels"], str(path))
    artifacts.write("data/decided.parquet", decided.table(names["instances"], names["labels"]))
    artifacts.write("data/contradictions.csv", decisions.contradictions(table))


if __name__ == "__main__":
    run(collect_decisions)
