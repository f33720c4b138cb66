"""What a column of a user's table holds: numbers or categories; whatever is neither is refused by name."""

import math
import re
from typing import Any

import numpy as np
import pandas as pd

from fedcso.core.errors import FedcsoError

NUMBERS, CATEGORIES = "numbers", "categories"

KINDS = {
    **dict.fromkeys(("integer", "floating", "mixed-integer-float", "decimal", "empty"), NUMBERS),
    **dict.fromkeys(("string", "boolean", "categorical", "mixed-integer", "mixed"), CATEGORIES),
    **dict.fromkeys(("datetime64", "datetime", "date", "timedelta64", "timedelta", "time", "period"), "dates"),
}
"""What the words of `pandas.api.types.infer_dtype` mean here; `mixed` is also its word for lists and the like."""

DATE = re.compile(r"(\d{4}([-/.])\d{1,2}\2\d{1,2}|\d{1,2}([-/.])\d{1,2}\3\d{2,4})([T ].*)?")
LARGEST = 1e30
"""A number beyond this is a mistake, and would become infinite in what follows."""


def kind(column: pd.Series) -> str:
    """NUMBERS or CATEGORIES (text, truth values, pandas' categories); missing values don't matter."""
    inferred = pd.api.types.infer_dtype(column, skipna=True)
    given = column.dropna()
    found = KINDS.get(inferred)
    if found is None or (inferred == "mixed" and not all(map(pd.api.types.is_scalar, given))):
        raise FedcsoError(f"column {column.name!r} holds {inferred} values; it must be numbers, text or truth values")
    if found == CATEGORIES:
        names = set(texts(given)) - {None}
        found = "dates" if names and all(DATE.fullmatch(str(name)) for name in names) else found
    if found == "dates":
        advice = "turn them into numbers, such as days since some day, or leave the column out"
        raise FedcsoError(f"column {column.name!r} holds dates or times such as {str(given.iloc[0])!r}; {advice}")
    return found


def numbers(column: pd.Series, where: str = "") -> np.ndarray:
    """The column as float64, NaN where a value is missing; `where` says in messages what the rows are rows of."""
    given = column.notna().to_numpy()
    values = np.full(len(column), np.nan)
    if column.dtype.kind in "biuf":
        values[given] = column.to_numpy(dtype=np.float64, na_value=np.nan)[given]
    else:
        values[given] = [_number(value) for value in column[given].astype(object)]
    wrong = np.flatnonzero(given & ~(np.abs(values) <= LARGEST))
    if len(wrong):
        value, must = column.iloc[wrong[0]], f"it must be a number, finite and not beyond {LARGEST:g}"
        raise FedcsoError(f"column {column.name!r} holds {str(value)!r} in row {wrong[0] + 1}{where}; {must}")
    return values


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def texts(column: pd.Series) -> list[str | None]:
    """The column as text, None where a value is missing or blank."""
    missing = column.isna()
    return [None if gone else text(value) for value, gone in zip(column.astype(object), missing, strict=True)]


def text(value: Any) -> str | None:
    """A value's name: the same for 1 and 1.0, and without blanks around it; None if nothing is left."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip() or None
