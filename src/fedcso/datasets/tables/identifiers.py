"""Detect columns that identify rows, such as patient_id: a network would memorise them."""

import re

import numpy as np
import pandas as pd

from fedcso.datasets.tables.columns import CATEGORIES, NUMBERS, numbers, texts

MANY = 50
"""With fewer values, all of them can be different by chance."""

NEARLY_ALL = 0.9
"""A column with at least this share of distinct values counts as nearly unique."""

WORDS = frozenset({"id", "ids", "uid", "uuid", "guid", "identifier", "mrn", "nr", "no", "num", "number"}) | {
    *("index", "idx", "row", "record", "key")
}
"""Words in the names of columns that identify rows."""


def identifies(column: pd.Series, kind: str, sites: np.ndarray) -> bool:
    """Return whether a column identifies rows; `sites` has the number of each row's site.

    Text identifies rows if it is nearly unique. Text or whole numbers that are nearly unique, at least within each
    large site, also do if the column's name says so, or if they number the rows, with few gaps between the least
    and the largest. Other whole numbers can be unique and still be measurements.
    """
    if kind == CATEGORIES:
        values, places = _names(column, sites)
        if _different(values) == len(values) > 2 or _nearly_unique(values, np.zeros_like(places)):
            return True
    elif kind == NUMBERS:
        values, places = _whole_numbers(column, sites)
    else:
        return False
    large = np.bincount(places, minlength=1)[places] > MANY
    named = named_like_one(str(column.name))
    return any(
        _nearly_unique(some, where) and (named or (kind == NUMBERS and _number_the_rows(some, where)))
        for some, where in ((values, np.zeros_like(places)), (values[large], places[large]))
    )


def may_identify(column: pd.Series, kind: str) -> bool:
    """Return whether a column holds whole numbers that are all different; these may or may not identify rows."""
    if kind != NUMBERS:
        return False
    values, _ = _whole_numbers(column, np.zeros(len(column), dtype=np.int64))
    return len(values) > MANY and _different(values) == len(values)


def named_like_one(name: str) -> bool:
    """Return whether a name contains a usual word for identifiers: patient_id, PatientID, row-nr."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return not WORDS.isdisjoint(re.split(r"[^a-z]+", words.lower()))


def _names(column: pd.Series, sites: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the texts of a column and their sites."""
    names = texts(column)
    given = np.array([name is not None for name in names], dtype=bool)
    return np.array(names, dtype=object)[given], sites[given]


def _whole_numbers(column: pd.Series, sites: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the values of a column and their sites; nothing unless all values are whole numbers."""
    values = numbers(column)
    given = ~np.isnan(values)
    if (np.rint(values[given]) != values[given]).any():
        given[:] = False
    return values[given], sites[given]


def _different(values: np.ndarray) -> int:
    return len(pd.unique(values))


def _nearly_unique(values: np.ndarray, places: np.ndarray) -> bool:
    """Return whether nearly all values are different; equal values at different sites count as different."""
    if len(values) <= MANY:
        return False
    return _different(pd.util.hash_array(values) ^ pd.util.hash_array(places)) >= NEARLY_ALL * len(values)


def _number_the_rows(values: np.ndarray, places: np.ndarray) -> bool:
    ranges = pd.Series(values).groupby(places).agg(["min", "max"])
    return bool((ranges["max"] - ranges["min"] + 1).sum() <= 2 * len(values))
