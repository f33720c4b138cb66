"""Encode a table's columns as numbers for a network, in the same way for training rows and new rows.

Each column becomes one or several: standardised numbers (for dates: year, month and so on), a 0/1 column for "is
missing", or a 0/1 column for each category. The constants (medians, means, categories) form a `Preparation`, which
encodes new rows in the same way and can be saved as JSON.
"""

import dataclasses
import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fedcso.core.errors import FedcsoError, InvalidValue, UnknownName
from fedcso.datasets.tables.columns import missing, numbers, texts
from fedcso.datasets.tables.dates import PARTS, dates, part_of

if TYPE_CHECKING:
    import torch

OTHER = "other"
"""The category for rare categories and for those that do not occur in training."""

FURTHEST = 1e6
"""Standardised values are clipped here: far beyond any in training, but no new row can make a network overflow."""


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
    """How a date such as 3/4/2020 is read if no other date of the rows tells."""
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
        """Zeros and ones."""
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
        """Zeros and ones."""
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

    def apply(self, frame: pd.DataFrame) -> "torch.Tensor":
        """Encode rows as float32 (rows, encoded columns), without NaN; columns unknown in training are ignored."""
        import torch  # late: exported models prepare rows without it

        return torch.from_numpy(self.encode(frame))

    def encode(self, frame: pd.DataFrame) -> np.ndarray:
        """Rows as float32 (rows, encoded columns), without NaN; columns not seen in training are ignored."""
        for encoder in self.encoders:
            if encoder.name not in frame.columns:
                raise UnknownName("column", encoder.name, map(str, frame.columns))
        if not frame.columns.is_unique:
            raise FedcsoError(f"two columns are called {frame.columns[frame.columns.duplicated()][0]!r}")
        encoded = np.empty((len(frame), len(self.names)), dtype=np.float32)
        place = 0
        for encoder in self.encoders:  # one after the other: a float64 copy of all columns would take much memory
            width = len(encoder.names)
            encoded[:, place : place + width] = encoder.encode(frame[encoder.name])
            place += width
        return encoded

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
            raise FedcsoError(f"this is not a preparation as fedcso writes it ({error!r})") from error


def _encoder(fields: dict[str, Any]) -> Encoder:
    if "categories" in fields:
        fields["categories"] = tuple(map(str, fields["categories"]))
    return ENCODERS[fields.pop("encoder")](**fields)
