"""Dates as numbers: the year, month, weekday and hour of a date, and the days since the year 2000 began."""

import datetime
import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pandas as pd

from fedcso.core.errors import FedcsoError, shown

DATE = re.compile(
    r"(?:(?P<year>\d{4})(?P<sign>[-/.])(?P<month>\d{1,2})(?P=sign)(?P<day>\d{1,2})"
    r"|(?P<first>\d{1,2})(?P<mark>[-/.])(?P<second>\d{1,2})(?P=mark)(?P<last>\d{4}|\d{2}))"
    r"(?:[T ]\s*(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<seconds>\d{2})(?:[.,]\d+)?)?"
    r"\s*(?P<half>[AaPp][Mm])?\s*(?:Z|[+-]\d{2}:?\d{2})?)?",
    re.ASCII,
)
"""2020-01-31, 31.1.2020, 31/01/20 or 1/31/2020, also with a time; time zones are ignored."""

EPOCH = np.datetime64("2000-01-01")
NOT_A_DATE = np.datetime64("NaT", "s")

PARTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "year": lambda dates: dates.astype("datetime64[Y]").astype(np.float64) + 1970,
    "month": lambda dates: dates.astype("datetime64[M]").astype(np.int64) % 12 + 1,
    "weekday": lambda dates: (dates.astype("datetime64[D]").astype(np.int64) + 3) % 7 + 1,
    "hour": lambda dates: dates.astype("datetime64[h]").astype(np.int64) % 24,
    "days since 2000-01-01": lambda dates: (dates - EPOCH) / np.timedelta64(1, "D"),
}
"""Functions that compute the parts of dates, none of which may be missing; Monday is weekday 1."""


def part_of(dates: np.ndarray, part: str) -> np.ndarray:
    """Return a part of each date as float64, NaN for missing dates."""
    given = ~np.isnat(dates)
    values = np.full(len(dates), np.nan)
    values[given] = PARTS[part](dates[given])
    return values


def are_dates(names: Iterable[str]) -> bool:
    """Return whether all these texts look like dates."""
    return all(DATE.fullmatch(name) for name in names)


def day_first(column: pd.Series) -> bool | None:
    """Return whether dates such as 3/4/2020 begin with the day, judging by the whole column; None if it is unclear."""
    found = [match for value in _different(column) if (match := DATE.fullmatch(str(value).strip())) and match["first"]]
    if any(int(match["first"]) > 12 for match in found):
        return True
    if any(int(match["second"]) > 12 for match in found):
        return False
    return True if any(match["mark"] == "." for match in found) else None


def ambiguous(column: pd.Series) -> bool:
    """Return whether dates of a column can be read in two ways, and no date of the column shows which is meant."""
    written = (DATE.fullmatch(str(value).strip()) for value in _different(column))
    return day_first(column) is None and any(match and match["first"] != match["second"] for match in written)


def dates(column: pd.Series, otherwise_day_first: bool = True, where: str = "") -> np.ndarray:
    """Return a column as datetime64[s], NaT for missing values.

    `otherwise_day_first` decides how to read 3/4/2020 if no date of the column does. Error messages name the source of
    the rows, `where`.
    """
    if isinstance(column.dtype, pd.PeriodDtype):
        column = column.dt.to_timestamp()
    if column.dtype.kind == "M":
        local = column.dt.tz_localize(None) if isinstance(column.dtype, pd.DatetimeTZDtype) else column
        return local.to_numpy("datetime64[s]")
    known = day_first(column)
    by_day = otherwise_day_first if known is None else known
    codes, values = pd.factorize(column.astype(object))
    read = np.array([*(_date(value, by_day) for value in values), NOT_A_DATE], dtype="datetime64[s]")
    blank = np.array([*(not str(value).strip() for value in values), True])
    wrong = np.flatnonzero((np.isnat(read) & ~blank)[codes])
    if len(wrong):
        said = f"column {shown(column.name)} holds {shown(str(column.iloc[wrong[0]]))} in row {wrong[0] + 1}{where}"
        raise FedcsoError(f"{said}, which is not a date; correct it")
    return read[codes]  # a missing value has the code −1


def _different(column: pd.Series) -> Any:
    return [] if column.dtype.kind == "M" else pd.unique(column.dropna().astype(object))


def _date(value: Any, by_day: bool) -> np.datetime64:
    """Return a date, or NaT if it is not one."""
    if isinstance(value, pd.Period):
        value = value.to_timestamp()
    if isinstance(value, datetime.datetime):
        return np.datetime64(value.replace(tzinfo=None), "s")
    if isinstance(value, datetime.date):
        return np.datetime64(value, "s")
    match = DATE.fullmatch(str(value).strip())
    if not match:
        return NOT_A_DATE
    if match["year"]:
        year, month, day = match["year"], match["month"], match["day"]
    else:
        day, month = (match["first"], match["second"]) if by_day else (match["second"], match["first"])
        year = match["last"] if len(match["last"]) == 4 else f"{20 if int(match['last']) < 69 else 19}{match['last']}"
    hour = int(match["hour"] or 0)
    if match["half"]:
        hour = hour % 12 + 12 * (match["half"].lower() == "pm")
    try:
        read = datetime.datetime(int(year), int(month), int(day), hour, int(match["minute"] or 0))
        return np.datetime64(read, "s") + np.timedelta64(int(match["seconds"] or 0), "s")
    except ValueError:
        return NOT_A_DATE
