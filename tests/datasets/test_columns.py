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
        (["[2020-01-31]", "[0-5]", "[0-6]"] * 20, "category"),
        (["[1, 2]", "NA", "-", None] * 15, "vector"),
        ([" 13.01.2024", "14.01.2024 ", " "] * 20, "date"),
        ([" 1", "2 ", " NA", " "] * 15, "number"),
        (["now", "today"] * 30, "category"),
        ([f"song {i}" for i in range(250)] + [f"a title of {i} words" for i in range(50)], "text"),
        ([f"{i % 12 + 1}.{i % 28 + 1}.{i // 9}" for i in range(300)], "ignore"),
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
        ([f"1'{i + 100},5 €" for i in range(N)], '"1\'100,5 €"'),
    ],
)
def test_numbers_with_signs_are_told(cells, like):
    (found,) = recognise(pd.DataFrame({"c": cells}), {}, "x", own.in_python)
    assert found.role != "number"
    assert found.odd == (
        f"has signs beside its numbers, such as {like}; write them plain to have them taken for "
        "numbers"
    )


@pytest.mark.parametrize("cells", [[f"192.168.{i}.7" for i in range(N)], ["01.05.80", "x"] * 30])
def test_what_only_looks_like_a_number_has_no_signs(cells):
    (found,) = recognise(pd.DataFrame({"c": cells}), {}, "x", own.in_python)
    assert found.odd == ""


def test_a_long_cell_of_blanks_is_looked_at_in_no_time():
    cells = pd.Series(["1" + " " * 1_000_000 + "x", *(f"{i}%" for i in range(N))])
    (found,) = recognise(pd.DataFrame({"c": cells}), {}, "x", own.in_python)
    assert found.role == "ignore"


@pytest.mark.parametrize(
    ("cells", "odd"),
    [
        (
            ["1/2/2020", "3/12/2020"],
            "is read as dates such as 31/05/2024, and may be such as 05/31",
        ),
        (
            ["1-2-2020", "3-12-2020"],
            "is read as dates such as 31-05-2024, and may be such as 05-31",
        ),
        (["1/2/20", "3/12/20"], "is read as dates such as 31/05/24, and may be such as 05/31/24; "),
        (["31.12.55", "1.2.74"], "has years of two digits, which are taken for 1969 to 2068; "),
        (["31/12/2020", "1/2/2020"], ""),
        (["2020-01-02", "2020-02-01"], ""),
    ],
)
@pytest.mark.parametrize("given", [{}, {"c": "date"}])
def test_dates_that_may_be_others_are_told(cells, odd, given):
    (found,) = recognise(pd.DataFrame({"c": cells * 30}), given, "x", own.in_python)
    assert found.role == "date"
    assert found.odd.startswith(odd)
    assert bool(found.odd) == bool(odd)


def test_a_date_that_cannot_be_is_told_where_a_person_says_that_it_is_one():
    cells = ["01.05.80"] * 19 + ["31.02.85"]
    assert "row 20, column 'c': '31.02.85' is not a date such as '01.05.80'" in refusal(
        cells, c="date"
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
        (
            ["[1]", "NA", "[2]", "[0-5]"],
            "row 4, column 'c': '[0-5]' is not a list of numbers such as '[1]', as most of the "
            "column; ",
        ),
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
