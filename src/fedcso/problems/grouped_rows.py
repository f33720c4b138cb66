"""Rows of a table that are grouped by a discrete z, and drawn with replacement from the group of a z."""

from dataclasses import dataclass, field

import numpy as np
import torch

from fedcso.problems.conditional_squares import REAL, Moments, Observations, Source, moments_between


@dataclass(frozen=True)
class Groups(Source):
    """The rows of one site; a value of z is drawn as often as it is in the rows."""

    features: torch.Tensor
    """φ of each row, sorted by the value of z."""
    outcome: torch.Tensor
    counts: torch.Tensor
    """The number of rows with each value of z."""
    moments: Moments = field(init=False, repr=False)

    def __post_init__(self) -> None:
        group = torch.arange(len(self.counts)).repeat_interleave(self.counts)
        both = torch.cat([self.features, self.outcome.unsqueeze(1)], 1)
        sums = torch.zeros(len(self.counts), both.shape[1], dtype=REAL).index_add_(0, group, both)
        means = sums / self.counts.unsqueeze(1)
        rest = both - means[group]
        within = rest.T @ rest / len(rest)
        between = moments_between(self.counts / self.counts.sum().to(REAL), means[:, :-1], means[:, -1])
        object.__setattr__(self, "moments", Moments(*between, within[:-1, :-1], within[:-1, -1], within[-1, -1]))

    @property
    def rows(self) -> int:  # type: ignore[override]
        """The number of rows."""
        return len(self.outcome)

    @property
    def values(self) -> int:  # type: ignore[override]
        """The number of different values of z."""
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


def group_rows(z: np.ndarray, features: torch.Tensor, outcome: torch.Tensor) -> Groups:
    """Return the groups of rows with the same z."""
    _, group, counts = np.unique(z, return_inverse=True, return_counts=True)
    order = torch.from_numpy(np.argsort(group, kind="stable"))
    return Groups(features[order], outcome[order], torch.from_numpy(counts))
