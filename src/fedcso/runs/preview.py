"""What a study would do, and how long it would take: measured by two short rounds of each unit, then stopped."""

import resource
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

from fedcso.engines.loop import Progress
from fedcso.runs.study import PREVIEW, Study, Unit, parts

FEW_STEPS, MORE_STEPS = 2, 32
"""Local steps of the rounds that are measured, at most."""

QUICK = 0.25
"""Seconds of a short round that allow a longer one."""


class Previewed(Exception):
    """Raised where a study would have begun, by which time it has been looked at."""

    def __init__(self, estimates: Sequence["Estimate"]):
        self.estimates = estimates
        super().__init__(f"{len(estimates)} units were looked at, and not run")


class Estimate(NamedTuple):
    """What a unit of work would take."""

    unit: Unit
    seconds: float

    @property
    def runs(self) -> int:
        """The number of runs: settings times seeds."""
        return len(self.unit.algorithms) * len(self.unit.seeds)


@contextmanager
def previewing() -> Iterator[None]:
    """Raise `Previewed` instead of executing a study; everything before it happens as usual."""
    token = PREVIEW.set(_look)
    try:
        yield
    finally:
        PREVIEW.reset(token)


def _look(study: Study) -> None:
    if not study.units:  # there is nothing to do yet
        return
    raise Previewed([Estimate(unit, estimate_seconds(unit)) for unit in study.units])


class Measured(NamedTuple):
    """The seconds of a short round."""

    steps: int
    round: float
    """Of the round without evaluation."""
    evaluation: float


def estimate_seconds(unit: Unit) -> float:
    """Estimate the time of a unit from short rounds: of two local steps, and of more if these are quick."""
    plan = unit.plan
    few = _measure(unit, min(plan.local_steps, FEW_STEPS))
    more = _measure(unit, min(plan.local_steps, MORE_STEPS)) if few.round < QUICK else few
    if more.steps > few.steps:
        step = max(more.round - few.round, 0.0) / (more.steps - few.steps)
        beside = max(few.round - few.steps * step, 0.0)
    else:
        step, beside = few.round / few.steps, 0.0
    one_round = plan.local_steps * step + beside + few.evaluation / plan.evaluate_every
    return len(parts(unit)) * plan.rounds * one_round


def _measure(unit: Unit, steps: int) -> Measured:
    """Run two rounds of a unit with so many steps, and measure the second, which has everything warmed up."""
    short = replace(unit.plan, rounds=2, local_steps=steps, evaluate_every=1, epsilon=0.0, patience=0, diagnose_every=0)
    ends: list[float] = []
    evaluations: list[float] = []

    def look(progress: Progress) -> None:
        ends.append(time.perf_counter())
        progress.rounds.evaluate([trace.last for trace in progress.traces])
        evaluations.append(time.perf_counter() - ends[-1])

    replace(parts(unit)[0], unit=replace(unit, plan=short)).run([look])
    if len(ends) < 2:  # all its runs have failed in the first round
        return Measured(steps, 0.0, 0.0)
    evaluation = min(evaluations)
    return Measured(steps, max(ends[1] - ends[0] - evaluations[0] - evaluation, 0.0), evaluation)


def peak_memory() -> float:
    """Return the most memory that this process has used so far, in megabytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)
