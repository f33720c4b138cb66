"""Describe a site's table for the coordinator: counts, means and standard deviations of columns, never a row.

Categories that occur fewer than five times, and means of fewer than five values, are left out. The mean of a column
with two values, such as 0 and 1, would tell how often each of them occurs: if one occurs fewer than five times, the
column is described as if it had the other one everywhere.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from fedcso.core.errors import FedcsoError, is_number
from fedcso.datasets.tables.columns import CATEGORIES, DATES, NUMBERS, kind, numbers, texts, truth
from fedcso.datasets.tables.dates import PARTS, dates, day_first, part_of
from fedcso.datasets.tables.identifiers import MANY, identifies
from fedcso.datasets.tables.labels import labels_at_site
from fedcso.datasets.tables.leakage import copies_across_parts, picture_prints, row_prints, telling_columns
from fedcso.datasets.tables.read import TableRows, read_one
from fedcso.datasets.tables.roles import Roles, names_of
from fedcso.datasets.tables.table import split_rows

FEWEST = 5
"""Fewer values than this are not described, because their mean would reveal too much about single rows."""

IDENTIFIERS = "identifiers"
"""The kind of columns that identify rows; their values are not described."""


@dataclass(frozen=True)
class Column:
    """The description of a column that a site sends; mean and deviation are 0 for fewer than five values."""

    kind: str
    given: int
    """The number of rows with a value."""
    missing: int
    mean: float = 0.0
    deviation: float = 0.0
    categories: dict[str, int] = field(default_factory=dict)
    """The number of rows of each category (or word for yes and no) that occurs at least five times."""
    parts: dict[str, "Column"] = field(default_factory=dict)
    """For dates: year, month and so on, each as a column of numbers."""
    day_first: bool | None = None
    """For dates: whether 3/4/2020 begins with the day; None if it is unclear."""

    @classmethod
    def read(cls, written: Mapping[str, Any]) -> "Column":
        """Parse a column received from a site; raise if it is malformed."""
        parts = {str(part): cls.read(column) for part, column in written.get("parts", {}).items()}
        column = cls(**{**written, "parts": parts})
        counts = [column.given, column.missing, *column.categories.values()]
        if not all(map(_is_count, counts)) or not all(map(_is_moment, (column.mean, column.deviation))):
            raise ValueError("not a number")
        if not all(map(_is_name, (column.kind, *column.categories, *parts))) or column.day_first not in (
            None,
            True,
            False,
        ):
            raise ValueError("not a name")
        return column


@dataclass(frozen=True)
class Description:
    """The description of a site's training rows."""

    rows: int
    positives: int
    columns: dict[str, Column]
    pictures: tuple[int, ...] | None = None
    """Channels, height and width of the pictures, if there are pictures instead of columns."""

    @classmethod
    def read(cls, site: str, written: Any) -> "Description":
        """Parse a description received from a site; raise if it is malformed."""
        try:
            columns = {str(name): Column.read(column) for name, column in written["columns"].items()}
            pictures = tuple(map(int, written["pictures"])) if written.get("pictures") else None
            if not all(_is_count(written[name]) for name in ("rows", "positives")):
                raise ValueError("not a number")
            if not all(map(_is_name, columns)) or not all(map(_is_count, pictures or ())):
                raise ValueError("not a name")
            return cls(written["rows"], written["positives"], columns, pictures)
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
            raise FedcsoError(f"site {site} describes its table in a way that can't be read ({error})") from error

    def as_json(self) -> dict[str, Any]:
        """Return the description in the form in which it is sent."""
        return asdict(self)


MOST_ROWS = 10**9
LONGEST_NAME = 1000
LARGEST = 1e100
"""Larger means are a mistake or a lie: their squares are added up."""


def _is_count(number: Any) -> bool:
    return type(number) is int and 0 <= number <= MOST_ROWS


def _is_moment(number: Any) -> bool:
    return is_number(number) and abs(number) <= LARGEST


def _is_name(name: Any) -> bool:
    return isinstance(name, str) and len(name) <= LONGEST_NAME


class OwnRows(NamedTuple):
    """A site's table: rows, labels (0 or 1), and the indices of the rows for training, validation and test."""

    rows: TableRows
    labels: np.ndarray
    parts: dict[str, np.ndarray]


class Described(NamedTuple):
    """The description that a site would send, the number of rows of each part, and notes for the site's staff."""

    description: Description
    parts: dict[str, int]
    notes: list[str]


def own_rows(data: str, label: str, positive: str, drop: str, columns: str, seed: int, place: int) -> OwnRows:
    """Read the table of the site with the number `place`."""
    rows = read_one(data, Roles(label, "", names_of(drop), names_of(columns)))
    labels = labels_at_site(rows.labels, label, positive)
    return OwnRows(rows, labels, split_rows(np.arange(len(labels)), labels, (seed, 3, place)))


def describe_table(
    data: str,
    label: str = "",
    positive: str = "",
    drop: str = "",
    columns: str = "",
    seed: int = 0,
    place: int = 0,
    fewest: int = FEWEST,
) -> Described:
    """Describe the training rows of a site's own table; of fewer rows than `fewest` nothing is said."""
    rows, labels, parts = own_rows(data, label, positive, drop, columns, seed, place)
    train, positives = parts["train"], int(labels[parts["train"]].sum())
    sizes = {part: len(chosen) for part, chosen in parts.items()}
    if rows.pictures is not None:
        prints = picture_prints(rows.pictures, labels)
        described = Description(len(train), positives, {}, tuple(rows.pictures.shape[1:]))
        return Described(described, sizes, rows.notes + copies_across_parts(prints, parts))
    keep = names_of(columns)
    kinds = {name: kind(rows.features[name]) for name in rows.features.columns}
    told = {name: _column(rows.features[name].iloc[train], kinds[name], name in keep, fewest) for name in kinds}
    used = {name: kinds[name] for name, column in told.items() if column.kind != IDENTIFIERS}
    notes = [
        *rows.notes,
        *(
            f"{name}: looks like an identifier; --columns keeps the columns it names"
            for name in kinds
            if name not in used
        ),
        *telling_columns(rows.features.iloc[train], used, labels[train]),
        *copies_across_parts(row_prints(rows.features[list(used)], labels), parts),
    ]
    return Described(Description(len(train), positives, told), sizes, notes)


def _column(column: pd.Series, kind: str, keep: bool, fewest: int) -> Column:
    described = DESCRIBE[kind](column, max(fewest, FEWEST))
    if not keep and described.given > MANY and identifies(column, kind, np.zeros(len(column), dtype=np.int64)):
        return Column(IDENTIFIERS, described.given, described.missing)
    return described


def _numbers(column: pd.Series, fewest: int) -> Column:
    """Describe numbers, and words for yes and no also as categories, which they may be at other sites."""
    words = {} if column.dtype.kind in "biuf" else _common(column, fewest)
    return _moments(numbers(column), words if truth(words) else {}, fewest)


def _moments(values: np.ndarray, categories: dict[str, int], fewest: int) -> Column:
    given = values[~np.isnan(values)]
    if len(given) < fewest:
        return Column(NUMBERS, 0, len(values))
    counted = len(given), len(values) - len(given)
    distinct, counts = np.unique(given, return_counts=True)
    if len(distinct) == 2 and counts.min() < fewest:
        return Column(NUMBERS, *counted, float(distinct[counts.argmax()]), 0.0, categories)
    return Column(NUMBERS, *counted, float(given.mean()), float(given.std()), categories)


def _dates(column: pd.Series, fewest: int) -> Column:
    read = dates(column)
    gone = int(np.isnat(read).sum())
    parts = {part: _moments(part_of(read, part), {}, fewest) for part in PARTS}
    return Column(DATES, len(read) - gone, gone, parts=parts, day_first=day_first(column))


def _categories(column: pd.Series, fewest: int) -> Column:
    given = sum(value is not None for value in texts(column))
    return Column(CATEGORIES, given, len(column) - given, categories=_common(column, fewest))


def _common(column: pd.Series, fewest: int) -> dict[str, int]:
    counts = Counter(value for value in texts(column) if value is not None)
    return {value: count for value, count in sorted(counts.items()) if count >= fewest}


DESCRIBE = {NUMBERS: _numbers, DATES: _dates, CATEGORIES: _categories}
"""The function that describes a column of each kind."""
