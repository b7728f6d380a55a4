import numpy as np
import pandas as pd
import pytest

from wscpml.errors import UserError
from wscpml.serving import prediction


class Even:
    """A stand-in for a model: the first label is as likely as a says, the second as b."""

    feature_names, label_names, encoding = ["a", "b"], ["R&B; <b>", "labels"], None

    def predict_proba(self, X):
        return X


def refusal(table, first=1):
    with pytest.raises(UserError) as mistake:
        prediction.table(Even(), table, "x.csv", first)
    return str(mistake.value)


def test_columns_are_found_by_name_and_others_are_ignored():
    table = pd.DataFrame({"b": [1, 0], "extra": ["text", None], "a": [0.2, 0.5]}, index=["x", "y"])
    found = prediction.table(Even(), table, "x.csv")
    assert found.index.tolist() == ["x", "y"]
    assert found.to_dict("list") == {
        "R&B; <b>": [0.2, 0.5],
        "labels": [1.0, 0.0],
        "labels_": [["labels"], ["R&B; <b>"]],
    }


def test_numbers_may_come_as_text_and_as_switches():
    table = pd.DataFrame({"a": ["0.25", "1"], "b": [True, False]})
    found = prediction.table(Even(), table, "x.csv")
    np.testing.assert_array_equal(found[Even.label_names], [[0.25, 1], [1, 0]])


def test_what_cannot_be_taken_is_one_line_with_row_and_column():
    assert refusal(pd.DataFrame({"c": [1]})) == (
        "x.csv: has no column a, b, which the model needs; its columns are c"
    )
    for value, what in (
        (np.nan, "is empty"),
        (None, "is empty"),
        (-np.inf, "-inf is not a finite number"),
        ("fast", "'fast' is not a number"),
    ):
        table = pd.DataFrame({"a": [1.0, 2.0], "b": [1, value]})
        assert refusal(table, 8) == f"x.csv: row 9, column 'b': {what}; mend that value"
    times = pd.DataFrame({"a": pd.to_datetime(["2020-01-01"]), "b": [1]})
    assert refusal(times).startswith("x.csv: column 'a' holds datetime64")
