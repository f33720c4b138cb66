"""Encode a table's columns as numbers for a network, with constants from the training rows.

Each column becomes one or several: standardised numbers (for dates: year, month and so on), a 0/1 column for "is
missing", or a 0/1 column for each category. The constants (medians, means, categories) form a `Preparation`, which
encodes new rows in the same way and can be saved as JSON.
"""

import dataclasses
import json
import math
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch

from fedcso.core.errors import FedcsoError, InvalidValue, UnknownName
from fedcso.datasets.tables.columns import CATEGORIES, DATES, NUMBERS, missing, numbers, texts
from fedcso.datasets.tables.dates import PARTS, ambiguous, dates, day_first, part_of
from fedcso.datasets.tables.identifiers import identifies, may_identify

MOST_CATEGORIES = 50
OTHER = "other"
"""The category for rare categories and for those that do not occur in training."""

FURTHEST = 1e6
"""Standardised values are clipped here: far beyond any in training, but no new row can make a network overflow."""

STEADY = 1e-12
TINY = 1e-150
"""A column with a smaller standard deviation, relative to its largest number or absolute, counts as constant."""


@dataclass(frozen=True)
class Numeric:
    """Replaces missing values by the median, then computes (value − mean) / std."""

    name: str
    median: float
    mean: float
    std: float

    def __post_init__(self) -> None:
        if not all(map(math.isfinite, (self.median, self.mean, self.std))) or self.std <= 0:
            raise InvalidValue(self.name, (self.median, self.mean, self.std), "finite, with a positive deviation")

    @property
    def names(self) -> list[str]:
        """One column with the original name."""
        return [self.name]

    def encode(self, column: pd.Series) -> np.ndarray:
        """Standardised numbers."""
        return self.standardise(numbers(column))

    def standardise(self, values: np.ndarray) -> np.ndarray:
        """Return one column; some of the numbers may be missing."""
        filled = np.where(np.isnan(values), self.median, values)
        with np.errstate(over="ignore"):  # also clips infinite quotients
            return np.clip((filled - self.mean) / self.std, -FURTHEST, FURTHEST)[:, None]


@dataclass(frozen=True)
class DatePart:
    """A part of a date, such as its month, standardised like other numbers."""

    name: str
    part: str
    """One of `PARTS`."""
    day_first: bool
    """Whether 3/4/2020 begins with the day, if no date in the rows shows it."""
    median: float
    mean: float
    std: float

    def __post_init__(self) -> None:
        if self.part not in PARTS:
            raise UnknownName("part of a date", self.part, PARTS)
        self._numeric()

    @property
    def names(self) -> list[str]:
        """One column, named after the part."""
        return [f"{self.name} {self.part}"]

    def encode(self, column: pd.Series) -> np.ndarray:
        """Standardised numbers."""
        return self._numeric().standardise(part_of(dates(column, self.day_first), self.part))

    def _numeric(self) -> Numeric:
        return Numeric(self.names[0], self.median, self.mean, self.std)


@dataclass(frozen=True)
class Missing:
    """A column that is 1 where the value is missing."""

    name: str

    @property
    def names(self) -> list[str]:
        """One column, named as an indicator."""
        return [f"{self.name} is missing"]

    def encode(self, column: pd.Series) -> np.ndarray:
        """Return zeros and ones."""
        return missing(column).astype(np.float64)[:, None]


@dataclass(frozen=True)
class Categorical:
    """One-hot encoding: 1 in the column of the row's category, 0 in all others."""

    name: str
    categories: tuple[str, ...]

    @property
    def names(self) -> list[str]:
        """One column for each category, one for other categories, one for missing values."""
        return [f"{self.name} = {category}" for category in (*self.categories, OTHER)] + [f"{self.name} is missing"]

    def encode(self, column: pd.Series) -> np.ndarray:
        """Return zeros and ones."""
        places: dict[str | None, int] = {category: place for place, category in enumerate(self.categories)}
        other = len(places)
        places[None] = other + 1
        return np.eye(other + 2)[[places.get(value, other) for value in texts(column)]]


Encoder = Numeric | DatePart | Missing | Categorical
ENCODERS: dict[str, type[Encoder]] = {kind.__name__: kind for kind in (Numeric, DatePart, Missing, Categorical)}


@dataclass(frozen=True)
class Preparation:
    """How each column is encoded, in the order of the encoded columns; a column may occur twice."""

    encoders: tuple[Encoder, ...]

    @property
    def names(self) -> list[str]:
        """The names of the encoded columns."""
        return [name for encoder in self.encoders for name in encoder.names]

    def apply(self, frame: pd.DataFrame) -> torch.Tensor:
        """Encode rows as float32 (rows, encoded columns), without NaN; columns unknown in training are ignored."""
        for encoder in self.encoders:
            if encoder.name not in frame.columns:
                raise UnknownName("column", encoder.name, map(str, frame.columns))
        if not frame.columns.is_unique:
            raise FedcsoError(f"two columns are called {frame.columns[frame.columns.duplicated()][0]!r}")
        encoded = np.empty((len(frame), len(self.names)), dtype=np.float32)
        place = 0
        for encoder in self.encoders:  # one at a time, to avoid a float64 copy of all columns
            width = len(encoder.names)
            encoded[:, place : place + width] = encoder.encode(frame[encoder.name])
            place += width
        return torch.from_numpy(encoded)

    def to_json(self) -> str:
        """Return JSON to be saved with a model; `from_json` restores the preparation exactly."""
        encoders = [{"encoder": type(encoder).__name__, **dataclasses.asdict(encoder)} for encoder in self.encoders]
        return json.dumps({"encoders": encoders}, indent=1)

    @classmethod
    def from_json(cls, written: str) -> "Preparation":
        """Restore a preparation from the output of `to_json`."""
        try:
            return cls(tuple(_encoder(dict(fields)) for fields in json.loads(written)["encoders"]))
        except (ValueError, TypeError, LookupError, RecursionError) as error:
            raise FedcsoError(f"this is not a preparation written by fedcso ({error!r})") from error


def _encoder(fields: dict[str, Any]) -> Encoder:
    if "categories" in fields:
        fields["categories"] = tuple(map(str, fields["categories"]))
    return ENCODERS[fields.pop("encoder")](**fields)


def prepare(
    train: pd.DataFrame, kinds: Mapping[str, str], sites: np.ndarray | None = None, keep: Collection[str] = ()
) -> tuple[Preparation, list[str]]:
    """Return the preparation for these training rows, and notes on columns that were left out or look suspicious.

    `sites` has the number of each row's site. Identifiers are left out, except for the columns in `keep`.
    """
    places = np.zeros(len(train), dtype=np.int64) if sites is None else sites
    encoders: list[Encoder] = []
    notes: list[str] = []
    for name in train.columns:
        column, kind = train[name], kinds[name]
        if name not in keep and identifies(column, kind, places):
            notes.append(f"{name}: left out, because it looks like an identifier; --columns keeps the columns it names")
            continue
        found, said = LEARN[kind](column)
        if found and name not in keep and may_identify(column, kind):
            said.append(f"whole numbers that are all different; leave it out with --drop {name} if it identifies rows")
        encoders += found
        notes += [f"{name}: {note}" for note in said]
    if not encoders:
        raise FedcsoError(f"no column is left to learn from ({'; '.join(notes) or 'there was none'})")
    return Preparation(tuple(encoders)), notes


Learnt = tuple[list[Encoder], list[str]]
"""The encoders of a column, and notes about it."""


def _numeric(column: pd.Series) -> Learnt:
    values, name = numbers(column), str(column.name)
    given = values[~np.isnan(values)]
    if not len(given):
        return [], ["left out, the training rows have no value"]
    gaps: list[Encoder] = [Missing(name)] if len(given) < len(values) else []
    found = _standardised(name, values)
    if found is None:
        return gaps, [f"always {np.median(given):g}, left out" + (" but for whether it is missing" if gaps else "")]
    return [found, *gaps], []


def _standardised(name: str, values: np.ndarray) -> Numeric | None:
    """Return how to standardise numbers, or None if they are all the same."""
    gone = np.isnan(values)
    median = float(np.median(values[~gone]))
    filled = np.where(gone, median, values)
    mean, std = float(filled.mean()), float(filled.std())
    return Numeric(name, median, mean, std) if std > max(STEADY * np.abs(filled).max(), TINY) else None


def _dates(column: pd.Series) -> Learnt:
    known, name = day_first(column), str(column.name)
    by_day = True if known is None else known
    read = dates(column, by_day)
    if np.isnat(read).all():
        return [], ["left out, the training rows have no value"]
    encoders: list[Encoder] = []
    for part in PARTS:
        if found := _standardised(name, part_of(read, part)):
            encoders.append(DatePart(name, part, by_day, found.median, found.mean, found.std))
    gaps: list[Encoder] = [Missing(name)] if np.isnat(read).any() else []
    notes = ["dates such as 3/4/2020 are read with the day first"] if ambiguous(column) else []
    return [*encoders, *gaps], notes if encoders else ["always the same date, left out"]


def _categorical(column: pd.Series) -> Learnt:
    values = texts(column)
    given = [value for value in values if value is not None]
    counts = Counter(given)
    if not given:
        return [], ["left out, the training rows have no value"]
    if len(counts) == 1 and len(given) == len(values):
        return [], [f"always {given[0]!r}, left out"]
    notes = []
    numeric = [value for value in counts if _is_number(value)]
    if 0 < len(numeric) < len(counts) < 2 * len(numeric):
        odd = min(counts.keys() - set(numeric))
        notes = [f"taken for categories although most values are numbers, because some, such as {odd!r}, are not"]
    ranked = sorted(counts.keys() - {OTHER}, key=lambda value: (-counts[value], value))
    if len(ranked) > MOST_CATEGORIES:
        notes.append(f"of {len(counts)} categories the {MOST_CATEGORIES} most frequent are kept, the rest is {OTHER!r}")
    return [Categorical(str(column.name), tuple(sorted(ranked[:MOST_CATEGORIES])))], notes


LEARN = {NUMBERS: _numeric, DATES: _dates, CATEGORIES: _categorical}
"""The function that chooses the encoders for a column of each kind."""


def _is_number(value: str) -> bool:
    try:
        return math.isfinite(float(value))
    except ValueError:
        return False
