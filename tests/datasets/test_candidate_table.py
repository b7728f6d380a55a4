import numpy as np
import pytest

from wscpml.datasets.candidate_table import candidate_table

CANDIDATES = np.array([[0, 1, 1], [0, 0, 0], [1, 0, 1]])


def test_a_row_per_candidate_in_the_order_of_rows_and_labels():
    weights = np.arange(9).reshape(3, 3) / 10
    table = candidate_table(
        ["x", "y", "z"], ["rock", "NA", "01"], CANDIDATES, B=weights, keep=[1, 0, 1, 0]
    )
    assert table.to_dict("list") == {
        "instance": ["x", "x", "z", "z"],
        "label": ["NA", "01", "rock", "01"],
        "B": [0.1, 0.2, 0.6, 0.8],
        "keep": [1, 0, 1, 0],
    }
    assert table.label.cat.categories.tolist() == ["rock", "NA", "01"]


def test_no_candidates_are_a_table_without_rows():
    table = candidate_table([7, 8, 9], ["a", "b", "c"], CANDIDATES * 0, B=CANDIDATES)
    assert table.columns.tolist() == ["instance", "label", "B"]
    assert len(table) == 0


def test_a_column_of_another_length_is_refused():
    with pytest.raises(ValueError, match="same length"):
        candidate_table([7, 8, 9], ["a", "b", "c"], CANDIDATES, B=[1, 2])
