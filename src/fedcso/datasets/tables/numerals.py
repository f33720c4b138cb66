"""Numbers as people write them: 1234.5, 1,234.5, 1.234,5, 1 234,5 and 1'234.5 are the same number.

A column of text is one of numbers if all its values are written in one of two styles, with a decimal point or with a
decimal comma. Where a column fits both (1,234), other columns of the same file decide.
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

BETWEEN_GROUPS = "'’ \u00a0\u202f"
"""Signs between groups of three digits that go with either decimal sign; the last two are spaces of Unicode."""

FIRST = 100
"""Most columns of text are seen not to be numbers by this many rows."""


@dataclass(frozen=True)
class Style:
    """A way to write numbers, by its decimal sign and by the sign that is the decimal one in the other style."""

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
        """Return True if all values are numbers in this style; a code with leading zeros, such as 007, is not."""
        return all(self._number.fullmatch(value) for value in values)

    def parse(self, words: pd.Series) -> np.ndarray:
        """Return numbers in this style as float64."""
        plain = words.str.replace(self._group, "", regex=True).str.replace(self.decimal, ".", regex=False)
        return plain.astype(np.float64).to_numpy()


POINT, COMMA = Style(".", ","), Style(",", ".")


def read_numbers(frame: pd.DataFrame, usual: Style = POINT) -> tuple[pd.DataFrame, Style | None, list[str]]:
    """Turn columns of text that are numbers into numbers.

    Returns the table, the style that it certainly has (None if no column tells) and notes on columns that could be
    read either way; these are read as the others are, or in the usual style.
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
    """Return the styles in which all texts of a column are numbers; none if it has no text, or other things too."""
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
    """Return a column with its texts as numbers; numbers stay what they are, and blank texts are missing."""
    text, words = _is_text(column), _words(column)
    values = pd.Series(np.nan, index=column.index, name=column.name)
    values[~text] = pd.to_numeric(column[~text], errors="coerce").astype(np.float64)
    values[words.index] = style.parse(words)
    return values


def example(column: pd.Series, numbers: pd.Series) -> list[str]:
    """Return a note on how a number with a comma or a point is read that could mean another number."""
    words = _words(column)
    signed = words[words.str.contains("[.,]", regex=True)]
    return [f"{column.name}: {signed.iloc[0]!r} is read as {numbers[signed.index[0]]:.12g}"] if len(signed) else []


def _is_text(column: pd.Series) -> np.ndarray:
    if isinstance(column.dtype, pd.StringDtype):
        return column.notna().to_numpy()
    return np.array([isinstance(value, str) for value in column], dtype=bool)


def _words(column: pd.Series) -> pd.Series:
    """Return the texts of a column without blanks around them; blank ones are left out."""
    words = column[_is_text(column)].astype(object).str.strip()
    return words[words != ""]
