"""Decide whether a column of a user's table holds numbers, categories or dates; raise for anything else."""

import math
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from fedcso.core.errors import LONGEST_NAME, FedcsoError, shorten, shown
from fedcso.datasets.tables.dates import are_dates, dates

Value = TypeVar("Value")

NUMBERS, CATEGORIES, DATES = "numbers", "categories", "dates"

KINDS = {
    **dict.fromkeys(("integer", "floating", "mixed-integer-float", "decimal", "boolean", "empty"), NUMBERS),
    **dict.fromkeys(("string", "categorical", "mixed-integer", "mixed"), CATEGORIES),
    **dict.fromkeys(("datetime64", "datetime", "date", "period"), DATES),
}
"""The kind for each result of `pandas.api.types.infer_dtype`, which also calls lists and other objects `mixed`."""

LETTERS = ({"n": 0, "y": 1}, {"f": 0, "t": 1})
"""Letters for no and yes. A column uses one pair only: beside n and y, f may mean something else."""

MEANING = {"0": 0, "1": 1, "no": 0, "yes": 1, "false": 0, "true": 1}
"""Words for no and yes. A column may mix them, because sites may use different ones."""

LARGEST = 1e30
"""Larger numbers are refused: they must be mistakes, and their squares would overflow in float32."""


def kind(column: pd.Series) -> str:
    """Return the kind of a column, ignoring missing values; words for yes and no count as the numbers 1 and 0."""
    inferred = pd.api.types.infer_dtype(column, skipna=True)
    found = KINDS.get(inferred)
    given = column.dropna()
    if found is None or (inferred == "mixed" and not all(map(pd.api.types.is_scalar, given))):
        raise FedcsoError(
            f"column {shown(column.name)} holds {inferred} values; it must be numbers, text, truth values or dates: "
            f"leave it out with --drop {shorten(str(column.name), LONGEST_NAME)}"
        )
    if found != CATEGORIES:
        return found
    names = {name for value in pd.unique(given) if (name := text(value)) is not None}
    if not names:
        return CATEGORIES
    if truth(names):
        return NUMBERS
    return DATES if are_dates(names) else CATEGORIES


def truth(names: Iterable[str]) -> dict[str, int]:
    """Return 0 or 1 for each of these words for no and yes; nothing if there are other words among them."""
    lower = {name: name.lower() for name in names}
    for letters in LETTERS:
        if set(lower.values()) <= (known := MEANING | letters).keys():
            return {name: known[word] for name, word in lower.items()}
    return {}


def numbers(column: pd.Series, where: str = "") -> np.ndarray:
    """Return the column as float64 with NaN for missing values; error messages name the source of the rows, `where`."""
    given = ~missing(column)
    values = np.full(len(column), np.nan)
    if column.dtype.kind in "biuf":
        values[given] = column.to_numpy(dtype=np.float64, na_value=np.nan)[given]
    else:
        values[given] = _each(_number, column[given])
    wrong = np.flatnonzero(given & ~(np.abs(values) <= LARGEST))
    if len(wrong):
        raise FedcsoError(
            f"column {shown(column.name)} holds {shown(str(column.iloc[wrong[0]]))} in row {wrong[0] + 1}{where}; it "
            f"must be a number, finite and not beyond {LARGEST:g}: correct it"
        )
    return values


def check(column: pd.Series, where: str) -> None:
    """Raise if a value does not match the kind of its column; the message names the source of the rows, `where`."""
    found = kind(column)
    try:
        if found == NUMBERS:
            numbers(column, where)
        elif found == DATES:
            dates(column, where=where)
    except FedcsoError as error:
        name = shorten(str(column.name), LONGEST_NAME)
        raise FedcsoError(f"{error}, or leave the column out with --drop {name}") from error


def words_among_numbers(column: pd.Series, where: str) -> list[str]:
    """Return a note on the first word in a column of text whose values are mostly numbers; none for other columns."""
    if kind(column) != CATEGORIES:
        return []
    different = {name for value in pd.unique(column.dropna()) if (name := text(value)) is not None}
    words = {name for name in different if math.isnan(_number(name))}
    if not 0 < len(words) < len(different) / 2:
        return []
    row, word = next((row, name) for row, name in enumerate(texts(column), start=1) if name in words)
    return [
        f"column {column.name!r} is taken for categories although most values are numbers, because row {row}{where} "
        f"holds {word!r}: correct it, or leave it empty, if the column should be numbers"
    ]


def _number(value: Any) -> float:
    if isinstance(value, str) and (meaning := truth([value.strip()])):
        return next(iter(meaning.values()))
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def missing(column: pd.Series) -> np.ndarray:
    """Return a mask of the values that are missing or blank."""
    gone: np.ndarray = column.isna().to_numpy()
    if column.dtype.kind in "biufmM":
        return gone
    if isinstance(column.dtype, pd.StringDtype):
        blank = (column.str.strip() == "").to_numpy(dtype=bool, na_value=False)
    else:
        blank = np.array([isinstance(value, str) and not value.strip() for value in column], dtype=bool)
    return np.asarray(gone | blank)


def texts(column: pd.Series) -> list[str | None]:
    """Return the values as text, None for missing or blank ones."""
    names: list[str | None] = [None] * len(column)
    given = np.flatnonzero(column.notna())
    for place, name in zip(given, _each(text, column.iloc[given]), strict=True):
        names[place] = name
    return names


def _each(function: Callable[[Any], Value], column: pd.Series) -> list[Value]:
    """Apply a function to each value; of text, which often repeats, to each distinct value once."""
    if not isinstance(column.dtype, pd.StringDtype):
        return [function(value) for value in column.astype(object)]
    codes, different = pd.factorize(column)
    made = [function(value) for value in different]
    return [made[code] for code in codes]


def text(value: Any) -> str | None:
    """Return a value as text without surrounding blanks, 1.0 like 1; None if nothing is left."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip() or None
