"""How many samples and rounds it takes to reach an accuracy ε: problems to measure on, crossings, fitted exponents."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

import torch

from fedcso.constants import Constants
from fedcso.metrics import mean_and_interval
from fedcso.problem import Problem
from fedcso.problems import InvariantLogistic, NestedQuadratic
from fedcso.results import Estimate
from fedcso.trace import Trace


class _FromOrigin:
    """x_0 = 0 for every seed: the theorems are about one start."""

    dimension: int
    dtype: torch.dtype

    def init(self, rng: torch.Generator) -> torch.Tensor:
        """0."""
        return torch.zeros(self.dimension, dtype=self.dtype)


@dataclass(frozen=True)
class Quadratic(_FromOrigin, NestedQuadratic):
    """The nested quadratic from 0."""


@dataclass(frozen=True)
class Logistic(_FromOrigin, InvariantLogistic):
    """Invariant logistic regression from 0."""


class Instance(NamedTuple):
    """A problem with exact ∇F and known constants, small enough for the theory's settings to be run."""

    problem: Problem
    clients: Sequence[Any]
    constants: Constants
    start: float
    """‖∇F(x_0)‖, by which accuracies are measured."""


def quadratic(clients: int, spread: float = 0.3, noise: float = 0.3) -> Instance:
    """One dimension, clients that differ."""
    problem = Quadratic(1, spread=spread, noise=noise)
    return _instance(problem, problem.centres(clients, heterogeneity=0.2), None)


def logistic(clients: int) -> Instance:
    """Two dimensions, measurements with half the spread of the points, ‖x‖ ≤ 3."""
    problem = Logistic(2, noise=0.5, draw_mean=True, dtype=torch.float64)
    return _instance(problem, problem.clients(clients), 3.0)


INSTANCES = {"nested quadratic": quadratic, "invariant logistic": logistic}


def _instance(problem: Problem, clients: Sequence[Any], radius: float | None) -> Instance:
    x = problem.init(torch.Generator())
    constants, truth = problem.constants(x, clients, radius), problem.exact(x, clients, [1.0] * len(clients))
    assert constants is not None  # both problems know all about themselves
    assert truth is not None
    return Instance(problem, clients, constants, float(truth[1].norm()))


# ---------------------------------------------------------------------------------------- crossings


class Reached(NamedTuple):
    """When the mean of ‖∇F(x̄)‖² over the evaluations so far first was at most ε²; infinite if never."""

    samples: float
    """Inner samples of one client."""
    rounds: float
    steps: float


NEVER = Reached(math.inf, math.inf, math.inf)


def running_means(trace: Trace) -> list[float]:
    """Of ‖∇F(x̄)‖², over the evaluations up to each."""
    squares = accumulate(value**2 for value in trace.column("gradient_norm"))
    return [total / (count + 1) for count, total in enumerate(squares)]


def reached(trace: Trace, epsilon: float, clients: int) -> Reached:
    """The first evaluation at which the running mean is at most ε²."""
    for row, mean in zip(trace.rows, running_means(trace), strict=True):
        if mean <= epsilon**2 and not trace.failure:
            return Reached(row["inner_samples"] / clients, row["round"], row["step"])
    return NEVER


# ----------------------------------------------------------------------------------------- exponents


def exponent(at: Sequence[float], by_seed: Sequence[Sequence[float]]) -> Estimate:
    """The slope of log(value) over log(at) by least squares, for each seed; its mean over seeds with interval.

    `by_seed[seed][i]` belongs to `at[i]`. What was never reached is left out.
    """
    slopes = []
    for values in by_seed:
        points = [
            (math.log(x), math.log(y)) for x, y in zip(at, values, strict=True) if 0 < y < math.inf
        ]
        if len(points) > 1:
            slopes.append(_slope(points))
    return Estimate(*mean_and_interval(slopes)) if slopes else Estimate(math.nan, math.nan)


def _slope(points: Sequence[tuple[float, float]]) -> float:
    x_mean = math.fsum(x for x, _ in points) / len(points)
    y_mean = math.fsum(y for _, y in points) / len(points)
    return math.fsum((x - x_mean) * (y - y_mean) for x, y in points) / math.fsum((x - x_mean) ** 2 for x, _ in points)
