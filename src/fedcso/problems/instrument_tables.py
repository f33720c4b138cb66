"""A user's table with a discrete instrument: rows are grouped by its value, and drawn with replacement from a group."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch

from fedcso.core.errors import FedcsoError
from fedcso.problems.instruments import REAL, Moments, Observations, Source, moments_between


@dataclass(frozen=True)
class Groups(Source):
    """The rows of one site; a value of the instrument is drawn as often as it is in the rows."""

    features: torch.Tensor
    """φ of each row, sorted by the value of the instrument."""
    outcome: torch.Tensor
    counts: torch.Tensor
    """The number of rows with each value of the instrument."""
    moments: Moments = field(init=False, repr=False)

    def __post_init__(self) -> None:
        group = torch.arange(len(self.counts)).repeat_interleave(self.counts)
        both = torch.cat([self.features, self.outcome.unsqueeze(1)], 1)
        sums = torch.zeros(len(self.counts), both.shape[1], dtype=REAL).index_add_(0, group, both)
        means = sums / self.counts.unsqueeze(1)
        rest = both - means[group]
        within = rest.T @ rest / len(rest)
        between = moments_between(self.counts / self.counts.sum().to(REAL), means[:, :-1], means[:, -1])
        object.__setattr__(self, "moments", Moments(*between, within[:-1, :-1], within[:-1, -1]))

    @property
    def rows(self) -> int:  # type: ignore[override]
        """The number of rows."""
        return len(self.outcome)

    @property
    def values(self) -> int:  # type: ignore[override]
        """The number of different values of the instrument."""
        return len(self.counts)

    def draw_instruments(self, rng: torch.Generator, shape: tuple[int, ...]) -> torch.Tensor:
        """Draw numbers of groups by drawing rows."""
        group = torch.arange(self.values).repeat_interleave(self.counts)
        return group[torch.randint(self.rows, shape, generator=rng)]

    def draw(self, rng: torch.Generator, z: torch.Tensor, m: int) -> Observations:
        """Draw m rows of each group with replacement."""
        first = (self.counts.cumsum(0) - self.counts)[z].unsqueeze(-1)
        place = torch.rand(*z.shape, m, generator=rng, dtype=REAL) * self.counts[z].unsqueeze(-1)
        rows = first + place.long()
        return Observations(self.features[rows], self.outcome[rows])


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
        _, group, counts = np.unique(part["instrument"], return_inverse=True, return_counts=True)
        if 2 * len(counts) > len(group):
            raise FedcsoError(
                f"column {instrument!r} has {len(counts)} different values in {len(group)} rows of site {name!r}: each "
                "value of the instrument must be in several rows; round it, or group its values"
            )
        order = torch.from_numpy(np.argsort(group, kind="stable"))
        scaled = torch.from_numpy((part["treatment"] - x.mean()) / x.std())
        features = torch.stack([torch.ones_like(scaled), scaled], 1)
        sources.append(
            Groups(features[order], torch.from_numpy(part["outcome"] / y.std())[order], torch.from_numpy(counts))
        )
    return InstrumentTable(read.sites, sources, float(y.std() / x.std()), read.notes)
