"""The README's table of results, as Markdown: `python -m experiments.summary`."""

import sys

from experiments import cells, tables
from experiments.analyse import HERE
from wscpml.errors import UserError


def main() -> None:
    """Print it."""
    try:
        print(tables.summary(cells.load(HERE / "results")))
    except UserError as mistake:
        sys.exit(str(mistake))


if __name__ == "__main__":
    main()
