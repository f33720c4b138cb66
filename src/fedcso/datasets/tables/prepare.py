"""Choose how to encode a table's columns as numbers for a network, by what the training rows hold."""

from collections import Counter
from collections.abc import Collection, Mapping

import numpy as np
import pandas as pd

from fedcso.core.errors import FedcsoError
from fedcso.datasets.tables.columns import CATEGORIES, DATES, NUMBERS, numbers, texts
from fedcso.datasets.tables.dates import PARTS, ambiguous, dates, day_first, part_of
from fedcso.datasets.tables.encoders import OTHER, Categorical, DatePart, Encoder, Missing, Numeric, Preparation
from fedcso.datasets.tables.identifiers import identifies, may_identify

MOST_CATEGORIES = 50

STEADY = 1e-12
TINY = 1e-150
"""A column with a smaller standard deviation, relative to its largest number or absolute, counts as constant."""


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
    ranked = sorted(counts.keys() - {OTHER}, key=lambda value: (-counts[value], value))
    if len(ranked) > MOST_CATEGORIES:
        notes.append(f"of {len(counts)} categories the {MOST_CATEGORIES} most frequent are kept, the rest is {OTHER!r}")
    return [Categorical(str(column.name), tuple(sorted(ranked[:MOST_CATEGORIES])))], notes


LEARN = {NUMBERS: _numeric, DATES: _dates, CATEGORIES: _categorical}
"""The function that chooses the encoders for a column of each kind."""
