"""Numbers are read in every style, and codes remain text."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcso.datasets.tables.numerals import COMMA, POINT, read_numbers


def read(values, usual=POINT, **others):
    frame, style, notes = read_numbers(pd.DataFrame({"x": pd.Series(values, dtype=object), **others}), usual)
    return frame["x"], style, notes


@pytest.mark.parametrize(
    ("values", "numbers", "style"),
    [
        (["1234.5", "2"], [1234.5, 2], POINT),
        (["1,234.5", "2"], [1234.5, 2], POINT),
        (["1,234,567", "8"], [1234567, 8], POINT),
        (["1234,5", "2"], [1234.5, 2], COMMA),
        (["1.234,5", "1.234.567,25"], [1234.5, 1234567.25], COMMA),
        (["1.234.567", "8"], [1234567, 8], COMMA),
        (["1 234,5", "2"], [1234.5, 2], COMMA),
        (["1\u00a0234,5", "1\u202f234 567,5"], None, None),  # two signs between groups in one number
        (["1\u00a0234,5", "1\u202f234,5"], [1234.5, 1234.5], COMMA),
        (["1'234.5", "1’234.5"], [1234.5, 1234.5], POINT),
        (["0,123", "4"], [0.123, 4], COMMA),
        ([" -1,5 ", "+2"], [-1.5, 2], COMMA),
        (["1,5e3", ",5"], [1500, 0.5], COMMA),
        (["1,5", None, " ", "2"], [1.5, np.nan, np.nan, 2], COMMA),
        (["1,5", 2.5, 3, None], [1.5, 2.5, 3, np.nan], COMMA),
    ],
)
def test_a_column_in_one_style_is_numbers(values, numbers, style):
    column, found, notes = read(values)
    if numbers is None:
        assert column.tolist() == values
        return
    assert column.dtype == np.float64
    np.testing.assert_array_equal(column, numbers)
    assert found == style
    assert notes == []


@pytest.mark.parametrize(
    "values",
    [
        ["007", "123"],
        ["1.5", "1,5"],  # one with a point, one with a comma
        ["1,23,456"],
        ["12,3456.7"],
        ["1", "two"],
        ["1_000"],
        ["nan", "1"],
        ["1,5", True],
        ["", " "],
        ["٣"],  # a digit of another script
    ],
)
def test_other_text_stays_text(values):
    column, _, notes = read(values)
    assert column.tolist() == values
    assert notes == []


def test_other_columns_decide_an_ambiguous_style_with_a_note():
    column, _, notes = read(["1,234", "5,678"])
    assert column.tolist() == [1234, 5678]
    assert notes == ["x: '1,234' is read as 1234"]
    assert read(["1,234", "5,678"], usual=COMMA)[0].tolist() == [1.234, 5.678]
    assert read(["1,234", "5,678"], y=["1,5", "2,5"])[0].tolist() == [1.234, 5.678]
    assert read(["1,234", "5,678"], usual=COMMA, y=["1.5", "2.5"])[0].tolist() == [1234, 5678]


def test_whole_numbers_as_text_need_no_note():
    column, style, notes = read(["1", "2"])
    assert (column.tolist(), style, notes) == ([1, 2], None, [])


def test_column_names_and_indices_are_arbitrary():
    frame = pd.DataFrame({"self": ["1,5", "2,5"]}, index=[7, 9])
    assert read_numbers(frame)[0]["self"].to_dict() == {7: 1.5, 9: 2.5}


@given(st.lists(st.floats(-1e12, 1e12).map(lambda x: round(x, 2)), min_size=1, max_size=5))
def test_formatted_numbers_are_read_back(values):
    english = [f"{value:,.2f}" for value in values]
    german = [text.translate(str.maketrans(",.", ".,")) for text in english]
    for written in (english, german):
        np.testing.assert_array_equal(read(written)[0], values)
