"""Figure 1: its panels and methods, the settings of the full experiment and of the quick one, and what is compared."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

from fedcso.algorithms import FCSG, FCSGM, AccFCSGM
from fedcso.core.algorithm import Algorithm
from fedcso.core.metric import Metric
from fedcso.core.trace import Trace
from fedcso.experiments.experiment import Settings
from fedcso.problems.invariant_logistic import ACCURACY

INNER = (1, 10, 100)
RATIOS = (1.0, 1.5, 2.0)
RATES = (0.01, 0.005, 0.001)
MOMENTA = (0.001, 0.01, 0.1, 0.5, 0.9)
CHECKED_LAST = 10
"""The accuracy at the end is the mean of this many last evaluations."""


class Panel(NamedTuple):
    """A panel of the figure."""

    m: int
    ratio: float

    def __str__(self) -> str:
        return f"m={self.m} noise={self.ratio:g}"


PANELS = [Panel(m, ratio) for ratio in RATIOS for m in INNER]
METHODS = ("FCSG", "FCSG-M", "Acc-FCSG-M")
OUTSIDE = "FCSG-M, mean outside"

Cell = tuple[str, Panel]
"""A method in a panel."""


@dataclass(frozen=True, kw_only=True)
class Figure1Settings(Settings):
    """The settings of the experiment."""

    rounds: int
    local_steps: int = 50
    seeds: Sequence[int]
    tuning_seeds: Sequence[int] = (1000, 1001, 1002)
    rates: Sequence[float]
    momenta: Sequence[float]
    clients: int = 16
    test_points: int


def settings(quick: bool) -> Figure1Settings:
    """Return the settings of the full experiment; `quick` has fewer rounds, seeds and points, and no tuning."""
    return Figure1Settings(
        rounds=20 if quick else 100,
        seeds=list(range(3 if quick else 5)),
        rates=list(RATES[:1] if quick else RATES),
        momenta=[0.1] if quick else list(MOMENTA),
        test_points=10_000 if quick else 50_000,
    )


def grid(method: str, config: Figure1Settings) -> list[Algorithm]:
    """Return the settings that a method may choose from."""
    if method == "FCSG":
        return [FCSG(rate) for rate in config.rates]
    kind = FCSGM if method == "FCSG-M" else AccFCSGM
    return [kind(rate, momentum) for rate in config.rates for momentum in config.momenta]


def at_end(trace: Trace, metric: Metric = ACCURACY) -> float:
    """Return a metric at the end of a run: the mean of the last evaluations."""
    return fmean(trace.column(metric.name)[-CHECKED_LAST:])
