"""Read numbers as people write them: 1234.5, 1,234.5, 1.234,5, 1 234,5 and 1'234.5 are the same number.

A column of text holds numbers if all its values are in one of two styles, with a decimal point or with a decimal comma.
If a column fits both (1,234), other columns of the same file decide.
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

BETWEEN_GROUPS = "'’ \u00a0\u202f"
"""Separators of thousands in both styles; the last two are Unicode spaces."""

FIRST = 100
"""The number of rows checked first: they are enough to rule out most columns of text."""


@dataclass(frozen=True)
class Style:
    """A style of writing numbers: its decimal sign, and that of the other style."""

    decimal: str
    other: str

    @cached_property
    def _group(self) -> str:
        return f"[{re.escape(self.other + BETWEEN_GROUPS)}]"

    @cached_property
    def _number(self) -> re.Pattern[str]:
        whole = rf"(?!0\d)(?:[1-9]\d{{0,2}}({self._group})\d{{3}}(?:\1\d{{3}})*|\d+)"
        sign = re.escape(self.decimal)
        return re.compile(rf"[+-]?(?:{whole}(?:{sign}\d*)?|{sign}\d+)(?:[eE][+-]?\d+)?", re.ASCII)

    def fits(self, values: Iterable[str]) -> bool:
        """Return whether all values are numbers in this style; codes with leading zeros, such as 007, are not."""
        return all(self._number.fullmatch(value) for value in values)

    def parse(self, words: pd.Series) -> np.ndarray:
        """Return numbers in this style as float64."""
        plain = words.str.replace(self._group, "", regex=True).str.replace(self.decimal, ".", regex=False)
        return plain.astype(np.float64).to_numpy()


POINT, COMMA = Style(".", ","), Style(",", ".")


def read_numbers(frame: pd.DataFrame, usual: Style = POINT) -> tuple[pd.DataFrame, Style | None, list[str]]:
    """Convert columns of text that hold numbers.

    Returns the table, its style (None if no column determines it), and notes on columns that fit both styles; these
    are read in the style of the others or, if there is none, in the usual style.
    """
    fitting = {name: styles for name in frame.columns if (styles := fitting_styles(frame[name]))}
    certain = Counter(styles[0] for styles in fitting.values() if len(styles) == 1)
    found = certain.most_common(1)[0][0] if certain else None
    read, notes = frame.copy(deep=False), []
    for name, styles in fitting.items():
        read[name] = parse(frame[name], styles[0] if len(styles) == 1 else found or usual)
        notes += example(frame[name], read[name]) if len(styles) > 1 else []
    return read, found, notes


def fitting_styles(column: pd.Series) -> list[Style]:
    """Return the styles in which all values of a column are numbers; none if it has no text, or other values."""
    if column.dtype != object and not isinstance(column.dtype, pd.StringDtype):
        return []
    if len(column) > FIRST and not any(style.fits(_words(column.iloc[:FIRST])) for style in (POINT, COMMA)):
        return []
    words = _words(column).unique()
    rest = pd.api.types.infer_dtype(column[~_is_text(column)].astype(object), skipna=True)
    if not len(words) or rest not in ("empty", "integer", "floating", "mixed-integer-float"):
        return []
    return [style for style in (POINT, COMMA) if style.fits(words)]


def parse(column: pd.Series, style: Style) -> pd.Series:
    """Convert the texts of a column to numbers; numbers are kept, and blank texts become missing."""
    text, words = _is_text(column), _words(column)
    values = pd.Series(np.nan, index=column.index, name=column.name)
    values[~text] = pd.to_numeric(column[~text], errors="coerce").astype(np.float64)
    values[words.index] = style.parse(words)
    return values


def example(column: pd.Series, numbers: pd.Series) -> list[str]:
    """Return a note that shows how an ambiguous number was read."""
    words = _words(column)
    signed = words[words.str.contains("[.,]", regex=True)]
    return [f"{column.name}: {signed.iloc[0]!r} is read as {numbers[signed.index[0]]:.12g}"] if len(signed) else []


def _is_text(column: pd.Series) -> np.ndarray:
    if isinstance(column.dtype, pd.StringDtype):
        return column.notna().to_numpy()
    return np.array([isinstance(value, str) for value in column], dtype=bool)


def _words(column: pd.Series) -> pd.Series:
    """Return the texts of a column without surrounding blanks, and without blank texts."""
    words = column[_is_text(column)].astype(object).str.strip()
    return words[words != ""]
