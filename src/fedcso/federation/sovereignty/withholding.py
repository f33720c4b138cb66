"""Withhold small numbers of rows: what a site says about its data holds no count from 1 to k − 1.

Nor does it follow from others by subtraction. In the description of a table, a category with fewer rows is left out,
and so is the mean of fewer values. A small number of missing values counts as given, one of given values as missing,
and one of rows whose category is left out with the largest category. Counts of rows by score are made of groups: the
rows of each label in the order of their scores, k neighbours at a time, at the place of the one in their middle.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from fedcso.federation.sovereignty.policy import Refused


def without_small_counts(table: Mapping[str, Any], smallest: int) -> dict[str, Any]:
    """Return the description of a table without small counts; raise `Refused` if there are too few rows to describe."""
    counts = {"rows": table["rows"], "positives": table["positives"]}
    counts["negatives"] = counts["rows"] - counts["positives"]
    for name, count in counts.items():
        if 0 < count < smallest:
            raise Refused(f"the table has {count} training {name}, fewer than smallest_count = {smallest}")
    return {**table, "columns": {name: _column(column, smallest) for name, column in table["columns"].items()}}


def _column(column: Mapping[str, Any], smallest: int) -> dict[str, Any]:
    given, missing = column["given"], column["missing"]
    if 0 < given < smallest:
        given, missing = 0, given + missing
    elif 0 < missing < smallest:
        given, missing = given + missing, 0
    told = {**column, "given": given, "missing": missing}
    told["categories"] = _categories(column["categories"], given, smallest)
    told["parts"] = {name: _column(part, smallest) for name, part in column["parts"].items()}
    return told if given else told | {"mean": 0.0, "deviation": 0.0, "categories": {}}


def _categories(counts: Mapping[str, int], given: int, smallest: int) -> dict[str, int]:
    """Return the categories that may be told; few rows with others count with the largest."""
    told = {value: count for value, count in counts.items() if count >= smallest}
    rest = given - sum(told.values())
    if told and 0 < rest < smallest:
        told[max(told, key=lambda value: told[value])] += rest
    return told


def grouped(counts: np.ndarray, smallest: int) -> np.ndarray:
    """Return counts of which each is 0 or at least `smallest`, with the same sum, which must be 0 or at least that.

    Args:
        counts: the number of rows in each bin, in the order of the bins
        smallest: the fewest rows in a group
    """
    total = int(counts.sum())
    if not total:
        return counts
    if total < smallest:
        raise Refused(f"{total} rows are fewer than smallest_count = {smallest}")
    bins = np.repeat(np.arange(len(counts)), counts)
    groups = np.array_split(bins, total // max(smallest, 1))
    places = [group[len(group) // 2] for group in groups]
    return np.bincount(places, [len(group) for group in groups], len(counts)).astype(counts.dtype)
