"""Dates become the same numbers in all notations, and day and month are not confused."""

import datetime

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcso.core.errors import FedcsoError
from fedcso.datasets.tables.columns import check
from fedcso.datasets.tables.dates import PARTS, ambiguous, are_dates, dates, day_first, part_of

DAYS = "days since 2000-01-01"


def parts(value):
    read = dates(pd.Series([value]))
    return {part: part_of(read, part)[0] for part in PARTS}


@pytest.mark.parametrize(
    "value",
    [
        "2020-01-31 18:30:00",
        "2020-01-31T18:30",
        "2020-01-31T18:30:00.125Z",
        "2020-01-31 18:30:00+02:00",
        "2020/1/31 18:30",
        "31.01.2020 18:30",
        "31.1.20 18:30",
        "31/01/2020 6:30 PM",
        "1/31/2020 06:30 pm",
        "1-31-2020 18:30",
        datetime.datetime(2020, 1, 31, 18, 30),
        pd.Timestamp("2020-01-31 18:30"),
        pd.Timestamp("2020-01-31 18:30", tz="Europe/Berlin"),
    ],
)
def test_parts_of_a_date(value):
    assert parts(value) == {"year": 2020, "month": 1, "weekday": 5, "hour": 18, DAYS: pytest.approx(7335 + 18.5 / 24)}


@pytest.mark.parametrize("value", ["2020-01-31", "31.1.2020", datetime.date(2020, 1, 31), pd.Period("2020-01-31", "D")])
def test_a_date_without_a_time_has_hour_zero(value):
    assert parts(value) == {"year": 2020, "month": 1, "weekday": 5, "hour": 0, DAYS: 7335}


def test_all_types_of_date_columns_give_the_same_dates():
    days = pd.Series(pd.to_datetime(["2020-01-31", None, "2021-12-01"]))
    expected = np.array(["2020-01-31", "NaT", "2021-12-01"], dtype="datetime64[s]")
    variants = [
        days,
        days.dt.tz_localize("Europe/Berlin"),
        days.dt.to_period("D"),
        days.astype("category"),
        days.dt.date,
        pd.Series(["2020-01-31", " ", "2021-12-01"]),
        pd.Series(["2020-01-31", None, "2021-12-01"], dtype="string"),
        pd.Series([datetime.date(2020, 1, 31), None, "1.12.2021"], dtype=object),
    ]
    for column in variants:
        np.testing.assert_array_equal(dates(column), expected)


@given(st.datetimes(datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31)))
def test_any_date_is_read_as_by_python(when):
    column = pd.Series([when.strftime("%d/%m/").lstrip() + f"{when.year:04}", "25/12/2020"])
    read = dates(column)[:1]
    midnight = datetime.datetime(when.year, when.month, when.day)
    days = (midnight - datetime.datetime(2000, 1, 1)).days
    expected = {"year": when.year, "month": when.month, "weekday": when.isoweekday(), "hour": 0, DAYS: days}
    assert {part: part_of(read, part)[0] for part in PARTS} == expected


@pytest.mark.parametrize(
    ("values", "first", "unclear"),
    [
        (["3/4/2020", "25/4/2020"], True, False),
        (["3/4/2020", "3/25/2020"], False, False),
        (["3.4.2020"], True, False),
        (["3/4/2020"], None, True),
        (["3/3/2020"], None, False),
        (["2020-03-04"], None, False),
        ([pd.Timestamp("2020-03-04")], None, False),
    ],
)
def test_the_order_of_day_and_month_is_determined_from_the_column(values, first, unclear):
    column = pd.Series(values)
    assert day_first(column) is first
    assert ambiguous(column) is unclear


def test_ambiguous_dates_are_read_in_the_order_of_training():
    column = pd.Series(["3/4/2020"])
    assert dates(column)[0] == np.datetime64("2020-04-03")
    assert dates(column, otherwise_day_first=False)[0] == np.datetime64("2020-03-04")
    assert dates(pd.Series(["25/4/2020"]), otherwise_day_first=False)[0] == np.datetime64("2020-04-25")


@pytest.mark.parametrize("value", ["2020-02-30", "0000-00-00", "2020-01-01 25:00", "soon", "31/31/2020"])
def test_an_invalid_date_is_reported_with_its_row(value):
    with pytest.raises(FedcsoError, match=rf"column 'day' holds '{value}' in row 2 of t\.csv, which is not a date"):
        dates(pd.Series(["2020-01-01", value], name="day"), where=" of t.csv")


def test_in_training_the_option_that_leaves_a_column_out_is_named():
    with pytest.raises(FedcsoError, match="which is not a date; correct it, or leave the column out with --drop day"):
        check(pd.Series(["2020-01-01", "2020-02-30"], name="day"), " of t.csv")


@pytest.mark.parametrize("value", ["2020-01", "12:30", "1.2", "1.2.3.4", "2020-01-01 noon", "01.01.202", "20200131"])
def test_other_text_is_not_a_date(value):
    assert not are_dates([value])
