"""How many samples and rounds it takes to reach an accuracy ε: problems to measure on, crossings, fitted exponents."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

import torch

from fedcso.core.constants import Constants
from fedcso.core.intervals import mean_and_interval
from fedcso.core.problem import Problem
from fedcso.core.trace import Trace
from fedcso.problems import InvariantLogistic, NestedQuadratic
from fedcso.reports.tables import Estimate

# ----------------------------------------------------------------------------------------- instances


class _FromOrigin:
    """x_0 = 0 for every seed: the theorems are about one start."""

    dimension: int
    dtype: torch.dtype

    def init(self, rng: torch.Generator) -> torch.Tensor:
        """0."""
        return torch.zeros(self.dimension, dtype=self.dtype)


@dataclass(frozen=True)
class Quadratic(_FromOrigin, NestedQuadratic):
    """The nested quadratic from 0, with a formula for its gradient: hundreds of thousands of steps are taken."""

    def closed_form(self, x: torch.Tensor, xi: torch.Tensor, eta: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """With η̄ the mean of the inner samples: η̄ ∘ (η̄ ∘ x − ξ)."""
        mean = eta.mean(-2)
        residual = mean * x.unsqueeze(-2) - xi
        return 0.5 * residual.square().sum(-1).mean(-1), (mean * residual).mean(-2)


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


def noisy_quadratic(clients: int) -> Instance:
    """The same with more noise, where tuned settings, too, are limited by it."""
    return quadratic(clients, spread=1.0, noise=1.0)


def logistic(clients: int) -> Instance:
    """Two dimensions, measurements with half the spread of the points, ‖x‖ ≤ 3."""
    problem = Logistic(2, noise=0.5, draw_mean=True, dtype=torch.float64)
    return _instance(problem, problem.clients(clients), 3.0)


def alike(clients: int) -> Instance:
    """One dimension, much noise of ξ and little bias, the same F whatever the number of clients."""
    problem = Quadratic(1, coupling=0.05, spread=4.0, noise=0.3)
    return _instance(problem, problem.centres(clients, heterogeneity=0.0), None)


INSTANCES: dict[str, Callable[[int], Instance]] = {
    "nested quadratic": quadratic,
    "noisy quadratic": noisy_quadratic,
    "invariant logistic": logistic,
}
"""By name: number of clients -> instance."""


def _instance(problem: Problem, clients: Sequence[Any], radius: float | None) -> Instance:
    x = problem.init(torch.Generator())
    assert problem.constants is not None  # both problems know all about themselves
    assert problem.exact is not None
    _, gradient = problem.exact(x, clients, [1.0] * len(clients))
    return Instance(problem, clients, problem.constants(x, clients, radius), float(gradient.norm()))


# ----------------------------------------------------------------------------------------- crossings


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
    if trace.failure:
        return NEVER
    for row, mean in zip(trace.rows, running_means(trace), strict=True):
        if mean <= epsilon**2:
            return Reached(row["inner_samples"] / clients, row["round"], row["step"])
    return NEVER


# ----------------------------------------------------------------------------------------- exponents


def exponent(at: Sequence[float], by_place: Sequence[Sequence[float]]) -> Estimate:
    """The slope of log(value) over log(at) by least squares, for each seed; its mean over seeds with interval.

    `by_place[i]` are the seeds' values at `at[i]`. Places that some seed never reached are left out, for all seeds.
    """
    there = [(x, values) for x, values in zip(at, by_place, strict=True) if all(0 < v < math.inf for v in values)]
    if len(there) < 2:
        return Estimate(math.nan, math.nan)
    places = [math.log(x) for x, _ in there]
    by_seed = zip(*(values for _, values in there), strict=True)
    return Estimate(*mean_and_interval([_slope(places, [math.log(v) for v in values]) for values in by_seed]))


def _slope(x: Sequence[float], y: Sequence[float]) -> float:
    x_mean, y_mean = math.fsum(x) / len(x), math.fsum(y) / len(y)
    across = math.fsum((a - x_mean) * (b - y_mean) for a, b in zip(x, y, strict=True))
    return across / math.fsum((a - x_mean) ** 2 for a in x)
