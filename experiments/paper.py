"""What the paper prints, as docs/paper has it."""

from functools import cache

import pandas as pd

from experiments import ROOT
from wscpml.datasets.registry import REGISTRY

PRINTED_AS = {  # our methods, and what the paper calls them
    "pml-ni": "PML-NI",
    "nlr": "NLR",
    "pml-lenfn": "PML-LENFN",
    "pamb": "PAMB",
    "pml-fp": "PML-fp",
    "fbd": "FBD-PML",
}


@cache
def printed(table: str) -> pd.DataFrame:
    """A table of docs/paper by benchmark."""
    figures = pd.read_csv(ROOT / f"docs/paper/{table}.csv")
    names = [
        f"{name}-{r:g}" if REGISTRY[name].levels else name
        for name, r in zip(figures.dataset, figures.avg_candidates, strict=True)
    ]
    return figures.set_index(pd.Index(names, name="benchmark"))


def in_print(quantity: str) -> float:
    """A figure of docs/paper/statistics.csv."""
    table = pd.read_csv(ROOT / "docs/paper/statistics.csv", index_col="quantity")
    return float(table.printed[quantity])
