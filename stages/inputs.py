"""What several stages read: the rows of one side of the split."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from wscpml import artifacts
from wscpml.algorithm.composition import TrainingRows
from wscpml.algorithm.features import FeatureMap
from wscpml.arrays import Array, Matrix, Rows, row_blocks, unpack, values_at
from wscpml.blocks import Engine
from wscpml.datasets.encoding import Encoding
from wscpml.errors import UserError
from wscpml.quality import decisions
from wscpml.quality.decisions import Decided

if TYPE_CHECKING:
    import pandas as pd

ROWS_AT_ONCE = 100_000  # of a table, which are compared


def given(name: str) -> Matrix | None:
    """The `truth`, the `candidates` or the `votes` that the data set brings, for all rows."""
    if name not in artifacts.read("data/prepared/names.json")["given"]:
        return None
    return artifacts.read_matrix("data/prepared", name)


def rows(side: str) -> Array:
    """Which instances are on a side, `train` or `test`, a boolean ``(n,)``."""
    test: Array = artifacts.read("data/split.npy")
    return test if side == "test" else ~test


def raw_features(side: str) -> Matrix:
    """Features of the rows as the data set has them; dense ones are read when they are used."""
    whole = artifacts.read_matrix("data/prepared", "features")
    chosen = np.flatnonzero(rows(side))
    return whole[chosen] if sparse.issparse(whole) else Rows(whole, chosen)


def encoding() -> Encoding | None:
    """How raw columns became features; None where they are the features."""
    if not Path("data/prepared", Encoding.FILES[0]).exists():
        return None
    try:
        return Encoding.from_files(artifacts.read_directory("data/prepared", Encoding.FILES))
    except ValueError as error:
        raise UserError(f"data/prepared: {error}; {artifacts.FROM_DVC}") from None


def feature_map() -> FeatureMap:
    """The map from raw features to scaled and to kernel features."""
    return FeatureMap.from_arrays(artifacts.read("data/prototypes/feature_map.npz"))


def training_rows(engine: Engine | None = None) -> TrainingRows:
    """The features of the training rows as the steps of the method take them."""
    return TrainingRows(feature_map(), scaled_features(), artifacts.scratch, engine or Engine())


def scaled_features() -> Matrix:
    """Features of the training rows as prototypes and clustering see them, mapped if dense."""
    return artifacts.read_matrix("data/scaled", "features")


def candidates(side: str) -> Matrix:
    """Candidate labels of the rows, sparse where there are very many."""
    return unpack("candidates", artifacts.read("data/candidates.npz"))[rows(side)]


def votes(side: str) -> Matrix | None:
    """What several taggers say for each candidate of the rows, if the data set has it."""
    found = given("votes")
    return None if found is None else found[rows(side)]


def truth(side: str) -> Matrix:
    """True labels of the rows; -1 where the data set has none."""
    labels = given("truth")
    return np.full(candidates(side).shape, -1) if labels is None else labels[rows(side)]


def truth_of(candidates: Matrix) -> Array:
    """Whether each candidate of the training rows is true, row by row; -1 where it is not known."""
    if given("truth") is None:
        return np.full(int(candidates.sum()), -1)
    return at_candidates(truth("train"), candidates)


def decided() -> Decided:
    """What a person has decided of the training rows."""
    names = artifacts.read("data/prepared/names.json")
    path = "data/decided.parquet"
    table = decisions.checked(artifacts.read(path), path)
    every = decisions.decided(table, names["instances"], names["labels"], path)
    return every.of_rows(rows("train"))


def pseudo_labels(path: str | Path, candidates: Array) -> "pd.DataFrame":
    """A table of pseudo-labels, a row for each candidate of the training rows, in their order."""
    table = artifacts.read(path)
    expected = candidate_table(candidates)
    if len(table) != len(expected) or not all(
        table[["instance", "label"]][some].astype(str).equals(expected[some].astype(str))
        for some in row_blocks(len(table), ROWS_AT_ONCE)
    ):
        raise UserError(
            f"{path}: its rows are not the candidates of the training rows; "
            "`dvc checkout` gets it back, `dvc repro` makes it anew"
        )
    return table


def of_candidates(values: Any, candidates: Matrix) -> Matrix:
    """Values of the candidates of the training rows, row by row, as ``(n, q)`` with 0 elsewhere.

    Of sparse candidates they are sparse too, and 0 among them is stored.
    """
    if sparse.issparse(candidates):
        whole = sparse.csr_array(candidates, dtype=np.float64)
        whole.data[:] = values
        return whole
    whole = np.zeros(candidates.shape)
    whole[candidates == 1] = values
    return whole


def at_candidates(values: Matrix, candidates: Matrix) -> Array:
    """The values ``(n, q)`` of the candidates alone, row by row."""
    return values_at(values, *np.nonzero(candidates))


def candidate_table(candidates: Matrix, **columns: Array) -> "pd.DataFrame":
    """Instance and label of each candidate of the training rows, row by row, and more of it."""
    from wscpml.datasets.candidate_table import candidate_table

    names = artifacts.read("data/prepared/names.json")["labels"]
    return candidate_table(instances("train"), names, candidates, **columns)


def shown(side: str) -> "pd.DataFrame | None":
    """What people know the rows by, if the settings name columns for that."""
    if "shown" not in artifacts.read("data/prepared/names.json"):
        return None
    table: pd.DataFrame = artifacts.read("data/prepared/shown.parquet")
    return table[rows(side)]


def instances(side: str) -> Array:
    """Ids of the rows."""
    return np.array(artifacts.read("data/prepared/names.json")["instances"])[rows(side)]
