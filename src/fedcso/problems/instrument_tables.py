"""A user's table with a discrete instrument, a treatment and an outcome."""

from typing import NamedTuple

import numpy as np
import torch

from fedcso.core.errors import FedcsoError
from fedcso.problems.conditional_squares import Source
from fedcso.problems.grouped_rows import group_rows


class InstrumentTable(NamedTuple):
    """The sites of a table; the treatment is scaled to mean 0 and standard deviation 1, the outcome to deviation 1."""

    sites: list[str]
    sources: list[Source]
    unit: float
    """The effect of one unit of the treatment, in units of the outcome, is this times the slope."""
    notes: list[str]


def load_instrument_table(data: str, instrument: str, treatment: str, outcome: str, site: str) -> InstrumentTable:
    """Read a table with columns for the instrument, the treatment and the outcome; φ = (1, the scaled treatment)."""
    from fedcso.datasets.tables.by_role import read_by_role  # imported late: pandas takes long to load

    read = read_by_role(data, {"treatment": treatment, "outcome": outcome}, {"instrument": instrument}, site)
    x, y = (np.concatenate([part[role] for part in read.columns]) for role in ("treatment", "outcome"))
    for name, values in ((treatment, x), (outcome, y)):
        if not values.std() > 0:
            raise FedcsoError(
                f"column {name!r} of {data} has the same value in all rows: there is no effect to measure"
            )
    sources: list[Source] = []
    for name, part in zip(read.sites, read.columns, strict=True):
        different, rows = len(np.unique(part["instrument"])), len(part["instrument"])
        if 2 * different > rows:
            raise FedcsoError(
                f"column {instrument!r} has {different} different values in {rows} rows of site {name!r}: each value "
                "of the instrument must be in several rows; round it, or group its values"
            )
        scaled = torch.from_numpy((part["treatment"] - x.mean()) / x.std())
        features = torch.stack([torch.ones_like(scaled), scaled], 1)
        sources.append(group_rows(part["instrument"], features, torch.from_numpy(part["outcome"] / y.std())))
    return InstrumentTable(read.sites, sources, float(y.std() / x.std()), read.notes)
