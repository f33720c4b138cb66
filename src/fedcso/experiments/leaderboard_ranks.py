"""Ranks of methods, with ties where intervals overlap, and costs to a stated accuracy.

On a problem with n methods, a method that is clearly worse than i others and clearly better than j others has a place
from i + 1 to n − j; its rank is the middle of these places. Clearly means that the 95 % interval of the differences,
taken seed by seed so that effects of the seed cancel, does not contain 0. A method that failed with a seed is clearly
worse than all that did not. Over problems, which differ in the number of methods, relative ranks are averaged: 0 is
ahead of all others and 1 behind all.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

import numpy as np

from fedcso.core.costs import Costs
from fedcso.core.intervals import mean_and_interval
from fedcso.core.metric import Metric

SHARE = 0.9
"""The stated accuracy, as the share of the baseline's way from the start to its end."""

RESAMPLES = 10_000
"""Bootstrap samples of problems."""

Row = Mapping[str, float]


@dataclass(frozen=True)
class Entry:
    """The final runs of a method on a problem."""

    problem: str
    method: str
    group: str
    metric: Metric
    """The metric that decides."""
    scores: Sequence[float]
    """Its value at the end of each run; nan if the run failed."""
    curves: Sequence[Sequence[Row]]
    """The evaluations of each run."""
    costs: Costs
    settings: Mapping[str, float]
    """What the trials chose."""
    at_edge: bool
    """True if the learning rate is the smallest or the largest of the grid."""

    @property
    def failed(self) -> bool:
        """True if a run did not end with a finite score."""
        return not all(math.isfinite(score) for score in self.scores)

    def interval(self) -> tuple[float, float]:
        """Return the mean over seeds and the half-width of its 95 % interval; both nan if a run failed."""
        return (math.nan, math.nan) if self.failed else mean_and_interval(self.scores)

    def is_clearly_better(self, other: "Entry") -> bool:
        """Return whether the interval of the differences to another method lies wholly on this method's side."""
        if self.failed or other.failed:
            return other.failed and not self.failed
        sign = 1 if self.metric.higher_is_better else -1
        lead, half = mean_and_interval([sign * (one - two) for one, two in zip(self.scores, other.scores, strict=True)])
        return lead > (half if math.isfinite(half) else 0.0)  # with a single seed its scores decide


class Place(NamedTuple):
    """The places that intervals leave open to a method, from the first to the last, among so many methods."""

    first: int
    last: int
    among: int

    @property
    def rank(self) -> float:
        """The middle of the places."""
        return (self.first + self.last) / 2

    @property
    def relative(self) -> float:
        """The rank between 0, ahead of all others, and 1; a half if there are no others."""
        return (self.rank - 1) / (self.among - 1) if self.among > 1 else 0.5


def places(entries: Sequence[Entry]) -> list[Place]:
    """Return the places of methods on one problem."""
    return [
        Place(
            1 + sum(other.is_clearly_better(entry) for other in entries),
            len(entries) - sum(entry.is_clearly_better(other) for other in entries),
            len(entries),
        )
        for entry in entries
    ]


class Standing(NamedTuple):
    """The mean of relative ranks over problems, with its interval."""

    mean: float
    low: float
    high: float
    problems: int


def standing(relative: Sequence[float], resamples: int = RESAMPLES) -> Standing:
    """Return the mean and its 95 % bootstrap interval over problems (nan for fewer than three problems)."""
    count = len(relative)
    if count < 3:
        return Standing(fmean(relative), math.nan, math.nan, count)
    drawn = np.random.default_rng(0).choice(np.asarray(relative), (resamples, count)).mean(1)
    low, high = np.quantile(drawn, (0.025, 0.975))
    return Standing(fmean(relative), float(low), float(high), count)


class Spent(NamedTuple):
    """What a run has cost up to an evaluation."""

    samples: float
    bytes: float


def target(baseline: Entry) -> float:
    """Return the stated accuracy: the baseline's mean at the start, plus a share of its way to the end."""
    curve = _mean_curve(baseline)
    return curve[0][0] + SHARE * (curve[-1][0] - curve[0][0])


def spent_until(entry: Entry, wanted: float) -> Spent | None:
    """Return the costs until the mean over seeds is at least as good as wanted; None if it never is."""
    if entry.failed:
        return None
    for value, spent in _mean_curve(entry):
        if value == wanted or entry.metric.is_better(value, wanted):
            return spent
    return None


def _mean_curve(entry: Entry) -> list[tuple[float, Spent]]:
    """Return means over seeds at every evaluation: the metric, and the costs so far."""
    return [
        (
            fmean(row[entry.metric.name] for row in rows),
            Spent(
                fmean(row["outer_samples"] + row["inner_samples"] for row in rows),
                fmean(row["bytes_up"] + row["bytes_down"] for row in rows),
            ),
        )
        for rows in zip(*entry.curves, strict=False)
    ]
