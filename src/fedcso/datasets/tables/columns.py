"""What a column of a user's table holds: numbers, categories or dates; whatever else it holds is refused by name."""

import math
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from fedcso.core.errors import FedcsoError
from fedcso.datasets.tables.dates import are_dates, dates

Value = TypeVar("Value")

NUMBERS, CATEGORIES, DATES = "numbers", "categories", "dates"

KINDS = {
    **dict.fromkeys(("integer", "floating", "mixed-integer-float", "decimal", "boolean", "empty"), NUMBERS),
    **dict.fromkeys(("string", "categorical", "mixed-integer", "mixed"), CATEGORIES),
    **dict.fromkeys(("datetime64", "datetime", "date", "period"), DATES),
}
"""What the words of `pandas.api.types.infer_dtype` mean here; `mixed` is also its word for lists and the like."""

LETTERS = ({"n": 0, "y": 1}, {"f": 0, "t": 1})
"""Letters for no and yes, of which a column has one pair at most, because f may be something else beside n and y."""

MEANING = {"0": 0, "1": 1, "no": 0, "yes": 1, "false": 0, "true": 1}
"""Words for no and yes, which can stand beside each other: sites may have different ones."""

LARGEST = 1e30
"""A number beyond this is a mistake, and would become infinite in what follows."""


def kind(column: pd.Series) -> str:
    """Return what a column holds, whatever is missing; words for yes and no are numbers, 0 and 1."""
    inferred = pd.api.types.infer_dtype(column, skipna=True)
    found = KINDS.get(inferred)
    given = column.dropna()
    if found is None or (inferred == "mixed" and not all(map(pd.api.types.is_scalar, given))):
        raise FedcsoError(
            f"column {column.name!r} holds {inferred} values; it must be numbers, text, truth values or dates: "
            f"leave it out with --drop {column.name}"
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
    """Return which of these names mean 0 and 1; nothing if one of them means something else."""
    lower = {name: name.lower() for name in names}
    for letters in LETTERS:
        if set(lower.values()) <= (known := MEANING | letters).keys():
            return {name: known[word] for name, word in lower.items()}
    return {}


def numbers(column: pd.Series, where: str = "") -> np.ndarray:
    """Return the column as float64, NaN where a value is missing; `where` says in messages where the rows are from."""
    given = ~missing(column)
    values = np.full(len(column), np.nan)
    if column.dtype.kind in "biuf":
        values[given] = column.to_numpy(dtype=np.float64, na_value=np.nan)[given]
    else:
        values[given] = _each(_number, column[given])
    wrong = np.flatnonzero(given & ~(np.abs(values) <= LARGEST))
    if len(wrong):
        raise FedcsoError(
            f"column {column.name!r} holds {str(column.iloc[wrong[0]])!r} in row {wrong[0] + 1}{where}; it must be a "
            f"number, finite and not beyond {LARGEST:g}: correct it"
        )
    return values


def check(column: pd.Series, where: str) -> None:
    """Raise if a value is not what its column holds; `where` says where the rows are from."""
    found = kind(column)
    try:
        if found == NUMBERS:
            numbers(column, where)
        elif found == DATES:
            dates(column, where=where)
    except FedcsoError as error:
        raise FedcsoError(f"{error}, or leave the column out with --drop {column.name}") from error


def _number(value: Any) -> float:
    if isinstance(value, str) and (meaning := truth([value.strip()])):
        return next(iter(meaning.values()))
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def missing(column: pd.Series) -> np.ndarray:
    """Return where a value is missing, or is a blank text."""
    gone: np.ndarray = column.isna().to_numpy()
    if column.dtype.kind in "biufmM":
        return gone
    if isinstance(column.dtype, pd.StringDtype):
        blank = (column.str.strip() == "").to_numpy(dtype=bool, na_value=False)
    else:
        blank = np.array([isinstance(value, str) and not value.strip() for value in column], dtype=bool)
    return np.asarray(gone | blank)


def texts(column: pd.Series) -> list[str | None]:
    """Return the column as text, None where a value is missing or blank."""
    names: list[str | None] = [None] * len(column)
    given = np.flatnonzero(column.notna())
    for place, name in zip(given, _each(text, column.iloc[given]), strict=True):
        names[place] = name
    return names


def _each(function: Callable[[Any], Value], column: pd.Series) -> list[Value]:
    """Return what a function makes of each value; of text, which often has few different values, of those alone."""
    if not isinstance(column.dtype, pd.StringDtype):
        return [function(value) for value in column.astype(object)]
    codes, different = pd.factorize(column)
    made = [function(value) for value in different]
    return [made[code] for code in codes]


def text(value: Any) -> str | None:
    """Return a value's name: the same for 1 and 1.0, and without blanks around it; None if nothing is left."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip() or None
