import datetime

import numpy as np
import pandas as pd
import pytest

from wscpml.datasets import own
from wscpml.datasets.columns import recognise
from wscpml.errors import UserError

N = 60


def roles(table, **given):
    found = recognise(pd.DataFrame(table), given, "x.csv", own.on_command_line)
    return {each.name: each.role for each in found}


def refusal(cells, **given):
    with pytest.raises(UserError) as raised:
        recognise(pd.DataFrame({"c": cells}), given, "x.csv", own.on_command_line)
    assert "\n" not in str(raised.value)
    return str(raised.value)


@pytest.mark.parametrize(
    ("cells", "role"),
    [
        ([1.5, None] * 30, "number"),
        ([True, False] * 30, "number"),
        ([True, None] * 30, "number"),
        (["1", "2.5", "NA", None] * 15, "number"),
        (["pop", "folk", None] * 20, "category"),
        (pd.Categorical([1, 2] * 30), "category"),
        (["2024-01-31", "2023-02-01", "n/a"] * 20, "date"),
        (["31.1.2024", "1.2.2023"] * 30, "date"),
        (["2024-01-31T10:00:00Z", "2023-02-01T00:30:00+02:00"] * 30, "date"),
        ([datetime.date(2024, 1, 31), None] * 30, "date"),
        (pd.to_datetime(["2024-01-31", None] * 30), "date"),
        (["31-Jan-2024", "1-Feb-2023"] * 30, "date"),
        (["31.01.24", "01.02.23"] * 30, "date"),
        (["01/31/2024 03:15 PM", "2/1/2023 11:00 am"] * 30, "date"),
        (["31.1.2024 10:30", "1.2.2023 00:00"] * 30, "date"),
        (["1.2.10", "2.3.11", "1.0.12"] * 20, "category"),
        ([f"song number {i} of them" for i in range(N)], "text"),
        ([f"artist{i % 50}" for i in range(N)], "text"),
        ([f"u{i}" for i in range(N)], "ignore"),
        (["same"] * N, "ignore"),
        ([None] * N, "ignore"),
        ([[1.0, 2.0], None] * 30, "vector"),
        ([np.arange(3.0)] * N, "vector"),
        (["[0.5, -1e-3]", "[2, 3]", None] * 20, "vector"),
        ([str(np.array([0.5, -1.0]))] * N, "vector"),
        ([f"[Verse {i}] la la [end]" for i in range(N)], "text"),
    ],
)
def test_what_a_column_is_is_told_by_its_cells(cells, role):
    assert roles({"c": cells}) == {"c": role}


def test_what_a_person_says_goes_first():
    table = {"code": [1, 2] * 30, "name": [f"u{i}" for i in range(N)], "x": range(N)}
    assert roles(table, code="category", name="text", x="ignore") == {
        "code": "category",
        "name": "text",
        "x": "ignore",
    }


def test_what_is_left_out_says_why():
    table = pd.DataFrame({"a": [None] * N, "b": [f"u{i}" for i in range(N)], "c": range(N)})
    table["d"] = [f"song {i}" for i in range(N)]
    found = recognise(table, {"c": "ignore"}, "x", own.in_python)
    assert [each.why for each in found] == [
        "is empty in every row",
        "is one word, another in nearly every row, as ids are",
        "as you say",
        "is 'song' and another number in nearly every row",
    ]


@pytest.mark.parametrize(
    ("cells", "like"),
    [
        ([f"{i % 50}%" for i in range(N)], "'0%'"),
        ([f"€ {i},50" for i in range(N)], "'€ 0,50'"),
        ([f"{i + 1},500" for i in range(N)], "'1,500'"),
    ],
)
def test_numbers_with_signs_are_told(cells, like):
    (found,) = recognise(pd.DataFrame({"c": cells}), {}, "x", own.in_python)
    assert found.role != "number"
    assert found.odd == (
        f"has signs beside its numbers, such as {like}; write them plain to have them taken for "
        "numbers"
    )


WAY_OUT = "mend that value, or say what the column is by --text, --category or --ignore"


@pytest.mark.parametrize(
    ("cells", "line"),
    [
        (
            ["1", "2", "fast", "4"],
            "row 3, column 'c': 'fast' is not a number such as '1', as most of the column; ",
        ),
        (
            ["2024-01-31", "2024-02-01", "3/2/2024"],
            "row 3, column 'c': '3/2/2024' is not a date such as '2024-01-31', as most of the "
            "column; ",
        ),
        ([1, 2, "fast"], "row 3, column 'c': is text, most of the column is a number; "),
        ([[1.0], [2.0], "x"], "row 3, column 'c': is text, most of the column is a list; "),
    ],
)
def test_a_cell_that_is_not_what_its_column_is_is_told_with_its_row(cells, line):
    assert refusal(cells) == f"x.csv: {line}{WAY_OUT}"


def test_other_columns_that_cannot_be_taken_are_told():
    assert "holds records" in refusal([{"a": 1}, {"a": 2}])
    assert "holds timedelta64" in refusal(pd.to_timedelta([1, 2], "s"))
    assert refusal([1, 2], body="text") == (
        "x.csv: --text: has no column 'body'; its columns are c"
    )
