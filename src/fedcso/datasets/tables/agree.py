"""Sites with tables of their own agree on how columns become numbers, without showing each other any row.

The sites' descriptions (see `describe`) are all that the agreement is made of. It differs from what one would do with
all rows in one place (`prepare`) in that missing numbers become the mean, for medians can't be put together.
"""

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from fedcso.core.errors import FedcsoError
from fedcso.datasets.examples import Examples
from fedcso.datasets.tables.columns import DATES, NUMBERS
from fedcso.datasets.tables.dates import PARTS
from fedcso.datasets.tables.describe import FEWEST, IDENTIFIERS, Column, Description, own_rows
from fedcso.datasets.tables.encoders import OTHER, Categorical, DatePart, Encoder, Missing, Numeric, Preparation
from fedcso.datasets.tables.inputs import ColumnInputs, Inputs, PictureInputs
from fedcso.datasets.tables.prepare import MOST_CATEGORIES, STEADY, TINY
from fedcso.datasets.tables.roles import in_common
from fedcso.datasets.tables.sites import Sites
from fedcso.datasets.tables.table import DEAL

ELSEWHERE = "sites"
"""What `data` is called where the tables are at the sites."""


def agree(described: Mapping[str, Description]) -> dict[str, Any]:
    """Put the sites' descriptions (by name) together: how rows become inputs, and the share of positives."""
    rows, positives = (sum(getattr(table, name) for table in described.values()) for name in ("rows", "positives"))
    if not 0 < positives < rows:
        raise FedcsoError(f"of the sites' {rows} training rows {positives} are positive: there is nothing to learn")
    counts = {"rows": rows, "positives": positives}
    if any(table.pictures for table in described.values()):
        return counts | {"pictures": _shape(described), "notes": []}
    preparation, notes = _preparation(described)
    return counts | {"preparation": json.loads(preparation.to_json()), "notes": notes}


def _shape(described: Mapping[str, Description]) -> list[int]:
    """Return the shape that the pictures of all sites have."""
    shapes = {name: "×".join(map(str, table.pictures or ["no pictures"])) for name, table in described.items()}
    if len(set(shapes.values())) > 1:
        said = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise FedcsoError(f"all sites must have pictures of the same shape, and they have: {said}")
    return list(next(iter(described.values())).pictures or ())


def _preparation(described: Mapping[str, Description]) -> tuple[Preparation, list[str]]:
    shared, notes = in_common([(name, table.columns) for name, table in described.items()])
    encoders: list[Encoder] = []
    for name in shared:
        columns = [table.columns.get(name) or Column("", 0, table.rows) for table in described.values()]
        found, note = _encoders(name, columns)
        encoders += found
        notes += [f"{name}: {note}"] if note else []
    if not encoders:
        raise FedcsoError(f"the sites have no column in common to learn from ({'; '.join(notes)})")
    return Preparation(tuple(encoders)), notes


def _encoders(name: str, columns: Sequence[Column]) -> tuple[list[Encoder], str]:
    """Return how a column becomes numbers, and a note; the kind of a column that a site lacks is empty."""
    named = [column for column in columns if column.kind == IDENTIFIERS]
    if 2 * sum(column.given for column in named) > _counts(columns)[0]:
        return [], "left out, because it looks like an identifier; --columns keeps the columns it names"
    columns = [Column("", 0, column.given + column.missing) if column in named else column for column in columns]
    kinds = {column.kind for column in columns if column.kind}
    if kinds == {NUMBERS}:
        return _numeric(name, columns)
    if kinds == {DATES}:
        return _dates(name, columns)
    return _categorical(name, columns)


def _numeric(name: str, columns: Sequence[Column]) -> tuple[list[Encoder], str]:
    given, total = _counts(columns)
    if not given:
        return [], f"left out, no site has {FEWEST} values"
    mean, deviation = _moments(columns)
    missing: list[Encoder] = [Missing(name)] if given < total else []
    if deviation <= max(STEADY * abs(mean), TINY):
        return missing, f"always {mean:g}, left out"
    return [Numeric(name, mean, mean, deviation), *missing], ""


def _counts(columns: Sequence[Column]) -> tuple[int, int]:
    """Return how many rows have a value, and how many there are."""
    given = sum(column.given for column in columns)
    return given, given + sum(column.missing for column in columns)


def _moments(columns: Sequence[Column]) -> tuple[float, float]:
    """Return the mean of all sites' values, and the deviation of all rows, where missing ones have become the mean."""
    given, total = _counts(columns)
    mean = sum(column.given * column.mean for column in columns) / given
    squares = sum(column.given * (column.deviation**2 + (column.mean - mean) ** 2) for column in columns)
    return mean, math.sqrt(squares / total)


def _dates(name: str, columns: Sequence[Column]) -> tuple[list[Encoder], str]:
    """A date is read as its own site writes it; what most sites do holds where a site can't tell."""
    orders = Counter(column.day_first for column in columns if column.day_first is not None)
    by_day = orders.most_common(1)[0][0] if orders else True
    encoders: list[Encoder] = []
    for part in PARTS:
        own = [column.parts.get(part) or Column(NUMBERS, 0, column.missing) for column in columns]
        if not _counts(own)[0]:
            return [], f"left out, no site has {FEWEST} values"
        mean, deviation = _moments(own)
        if deviation > max(STEADY * abs(mean), TINY):
            encoders.append(DatePart(name, part, bool(by_day), mean, mean, deviation))
    given, total = _counts(columns)
    missing: list[Encoder] = [Missing(name)] if given < total else []
    return [*encoders, *missing], "" if encoders else "always the same date, left out"


def _categorical(name: str, columns: Sequence[Column]) -> tuple[list[Encoder], str]:
    counts: Counter[str] = Counter()
    for column in columns:
        counts.update(column.categories)
    ranked = sorted(counts.keys() - {OTHER}, key=lambda value: (-counts[value], value))[:MOST_CATEGORIES]
    if not ranked:
        return [], f"left out, no category occurs {FEWEST} times at a site"
    return [Categorical(name, tuple(sorted(ranked)))], ""


def agreed_sites(
    data: str, label: str, positive: str, agreement: str, seed: int, drop: str = "", columns: str = ""
) -> Sites:
    """Return one site's own table prepared as agreed; at the coordinator, who has no table, only its form."""
    try:
        agreed = json.loads(Path(agreement).read_text())
        inputs = _inputs(agreed)
        rate = agreed["positives"] / agreed["rows"]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise FedcsoError(f"agreement: {agreement} can't be read ({error})") from error
    if data == ELSEWHERE:
        nothing = Examples(inputs.empty(), torch.zeros(0, dtype=torch.int64))
        parts = dict.fromkeys(DEAL, nothing)
    else:
        rows, labels, chosen = own_rows(data, label, positive, drop, columns, seed, int(agreed.get("place", 0)))
        parts = {part: Examples(inputs.of(rows, own), torch.from_numpy(labels[own])) for part, own in chosen.items()}
    notes = list(agreed.get("notes", []))
    held = ([parts["train"]], [parts["validation"]], [parts["test"]])
    return Sites(["own"], *held, notes, inputs.preparation, rate, weights="size")


def _inputs(agreed: Mapping[str, Any]) -> Inputs:
    if "pictures" in agreed:
        return PictureInputs(tuple(agreed["pictures"]))
    return ColumnInputs(Preparation.from_json(json.dumps(agreed["preparation"])))
