"""Sites with tables of their own agree on how columns become numbers, without showing each other any row.

Each describes its training rows by counts, means and deviations of its columns and the categories that occur at least
five times; these descriptions are all that the agreement is made of. It differs from what one would do with all rows in
one place (`preparation.prepare`) in that missing numbers become the mean, for medians can't be put together.
"""

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fedcso.core.errors import FedcsoError, InvalidValue
from fedcso.datasets.examples import Examples
from fedcso.datasets.tables.columns import NUMBERS, kind, numbers, texts
from fedcso.datasets.tables.prepare import (
    MOST_CATEGORIES,
    OTHER,
    STEADY,
    TINY,
    Categorical,
    Encoder,
    Missing,
    Numeric,
    Preparation,
)
from fedcso.datasets.tables.read import Rows, read_one
from fedcso.datasets.tables.sites import Sites
from fedcso.datasets.tables.table import TRUTH, split_rows

FEWEST = 5
"""Fewer rows than this are never described: a mean over four is too near to a row."""

ELSEWHERE = "sites"
"""What `data` is called where the tables are at the sites."""


@dataclass(frozen=True)
class Column:
    """A column by what may leave a site; a mean and a deviation only of five values or more."""

    kind: str
    given: int
    """Rows with a value."""
    missing: int
    mean: float = 0.0
    deviation: float = 0.0
    categories: dict[str, int] = field(default_factory=dict)
    """Rows of each category that occurs five times or more."""


@dataclass(frozen=True)
class Description:
    """A site's training rows, described."""

    rows: int
    positives: int
    columns: dict[str, Column]

    @classmethod
    def read(cls, site: str, written: Any) -> "Description":
        """As it came from a site, which may have sent anything."""
        try:
            columns = {str(name): Column(**column) for name, column in written["columns"].items()}
            numbers = [n for c in columns.values() for n in (c.given, c.missing, c.mean, c.deviation)]
            counts = [n for c in columns.values() for n in c.categories.values()]
            if not all(math.isfinite(n) for n in [*numbers, *counts, written["rows"], written["positives"]]):
                raise ValueError("not a number")
            return cls(int(written["rows"]), int(written["positives"]), columns)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise FedcsoError(f"site {site} describes its table in a way that can't be read ({error})") from error


def describe_table(
    data: str, label: str = "", positive: str = "", seed: int = 0, place: int = 0
) -> tuple[Description, dict[str, int]]:
    """What would leave a site, and how many rows it has for each purpose."""
    rows, labels, parts = _own_rows(data, label, positive, seed, place)
    train = rows.features.iloc[parts["train"]]
    columns = {}
    for name in train.columns:
        column, given = train[name], int(train[name].notna().sum())
        missing = len(column) - given
        if kind(rows.features[name]) == NUMBERS:
            values = numbers(column)
            values = values[~np.isnan(values)]
            enough = given >= FEWEST
            mean, deviation = (float(values.mean()), float(values.std())) if enough else (0.0, 0.0)
            columns[name] = Column(NUMBERS, given if enough else 0, missing if enough else len(column), mean, deviation)
        else:
            counts = Counter(value for value in texts(column) if value is not None)
            common = {value: count for value, count in sorted(counts.items()) if count >= FEWEST}
            columns[name] = Column(kind(rows.features[name]), given, missing, categories=common)
    described = Description(len(train), int(labels[parts["train"]].sum()), columns)
    return described, {part: len(chosen) for part, chosen in parts.items()}


def agree(described: Mapping[str, Description]) -> dict[str, Any]:
    """The sites' descriptions (by name) put together: how columns become numbers, and the share of positives."""
    tables = list(described.values())
    shared = [name for name in tables[0].columns if all(name in table.columns for table in tables)]
    every = dict.fromkeys(name for table in tables for name in table.columns)
    notes = [f"{name}: left out, not all sites have it" for name in every if name not in shared]
    encoders: list[Encoder] = []
    for name in shared:
        columns = [table.columns[name] for table in tables]
        numeric = all(column.kind == NUMBERS for column in columns)
        found, note = (_numeric if numeric else _categorical)(name, columns)
        encoders += found
        notes += [f"{name}: {note}"] if note else []
    if not encoders:
        raise FedcsoError(f"the sites have no column in common to learn from ({'; '.join(notes)})")
    rows, positives = sum(table.rows for table in tables), sum(table.positives for table in tables)
    if not 0 < positives < rows:
        raise FedcsoError(f"of the sites' {rows} training rows {positives} are positive: there is nothing to learn")
    preparation = json.loads(Preparation(tuple(encoders)).to_json())
    return {"preparation": preparation, "rows": rows, "positives": positives, "notes": notes}


def _numeric(name: str, columns: Sequence[Column]) -> tuple[list[Encoder], str]:
    given = sum(column.given for column in columns)
    total = given + sum(column.missing for column in columns)
    if not given:
        return [], f"left out, no site has {FEWEST} values"
    mean = sum(column.given * column.mean for column in columns) / given
    squares = sum(column.given * (column.deviation**2 + (column.mean - mean) ** 2) for column in columns)
    deviation = math.sqrt(squares / total)  # of all rows, where missing ones have become the mean
    missing: list[Encoder] = [Missing(name)] if given < total else []
    if deviation <= max(STEADY * abs(mean), TINY):
        return missing, f"always {mean:g}, left out"
    return [Numeric(name, mean, mean, deviation), *missing], ""


def _categorical(name: str, columns: Sequence[Column]) -> tuple[list[Encoder], str]:
    counts: Counter[str] = Counter()
    for column in columns:
        counts.update(column.categories)
    ranked = sorted(counts.keys() - {OTHER}, key=lambda value: (-counts[value], value))[:MOST_CATEGORIES]
    if not ranked:
        return [], f"left out, no category occurs {FEWEST} times at a site"
    return [Categorical(name, tuple(sorted(ranked)))], ""


def agreed_sites(data: str, label: str, positive: str, agreement: str, seed: int) -> Sites:
    """One site's own table prepared as agreed; at the coordinator, who has none, only its form."""
    try:
        agreed = json.loads(Path(agreement).read_text())
        preparation = Preparation.from_json(json.dumps(agreed["preparation"]))
        rate = agreed["positives"] / agreed["rows"]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise FedcsoError(f"agreement: {agreement} can't be read ({error})") from error
    if data == ELSEWHERE:
        parts = {part: _examples(np.zeros((0, len(preparation.names)), np.float32)) for part in PARTS}
    else:
        rows, labels, chosen = _own_rows(data, label, positive, seed, int(agreed.get("place", 0)))
        parts = {
            part: Examples(preparation.apply(rows.features.iloc[own]), torch.from_numpy(labels[own]))
            for part, own in chosen.items()
        }
    notes = list(agreed.get("notes", []))
    return Sites(["own"], [parts["train"]], [parts["validation"]], [parts["test"]], notes, preparation, rate)


PARTS = ("train", "validation", "test")


def _examples(inputs: np.ndarray) -> Examples:
    return Examples(torch.from_numpy(inputs), torch.zeros(len(inputs), dtype=torch.int64))


def _own_rows(
    data: str, label: str, positive: str, seed: int, place: int
) -> tuple[Rows, np.ndarray, dict[str, np.ndarray]]:
    """A site's table, its labels as 0 and 1, and which rows train, validate and test."""
    if not label:
        raise InvalidValue("label", label, "the name of the column that says which rows are positive")
    rows = read_one(data, label)
    labels = _labels(rows.labels, label, positive)
    return rows, labels, split_rows(np.arange(len(labels)), labels, (seed, 3, place))


def _labels(values: Sequence[str], label: str, positive: str) -> np.ndarray:
    """A site may have only one of the labels, so what is positive must be said, or be plain from 0 and 1."""
    chosen = {part.strip() for part in positive.split(",")} if positive else {"1", "true"}
    plain = any({value.lower() for value in values} <= truth for truth in TRUTH)
    if not positive and not plain:
        some = ", ".join(repr(value) for value in sorted(set(values))[:5])
        raise InvalidValue("positive", positive, f"said, for column {label!r} holds other labels than 0 and 1: {some}")
    given = values if positive else [value.lower() for value in values]
    return np.array([value in chosen for value in given], dtype=np.int64)


def as_json(described: Description) -> dict[str, Any]:
    """A description as it travels."""
    return asdict(described)
