"""Samples and rounds needed to reach an accuracy ε: problems to measure on, crossings, fitted exponents."""

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
    """A problem with x_0 = 0 for every seed, because the theorems are about one starting point."""

    dimension: int
    dtype: torch.dtype

    def init(self, rng: torch.Generator) -> torch.Tensor:
        """Return 0."""
        return torch.zeros(self.dimension, dtype=self.dtype)


@dataclass(frozen=True)
class Quadratic(_FromOrigin, NestedQuadratic):
    """The nested quadratic from x_0 = 0, with a formula for its gradient, because runs have very many steps."""

    def closed_form(self, x: torch.Tensor, xi: torch.Tensor, eta: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return loss and gradient; with η̄ the mean of the inner samples the gradient is η̄ ∘ (η̄ ∘ x − ξ)."""
        mean = eta.mean(-2)
        residual = mean * x.unsqueeze(-2) - xi
        return 0.5 * residual.square().sum(-1).mean(-1), (mean * residual).mean(-2)


@dataclass(frozen=True)
class Logistic(_FromOrigin, InvariantLogistic):
    """Invariant logistic regression from x_0 = 0."""


class Instance(NamedTuple):
    """A problem with exact ∇F and known constants, small enough to run the settings of the theory."""

    problem: Problem
    clients: Sequence[Any]
    constants: Constants
    start: float
    """‖∇F(x_0)‖, of which accuracies are shares."""


def quadratic(clients: int, spread: float = 0.3, noise: float = 0.3) -> Instance:
    """Return a nested quadratic in one dimension with clients that differ."""
    problem = Quadratic(1, spread=spread, noise=noise)
    return measured_from(problem, problem.centres(clients, heterogeneity=0.2), None)


def noisy_quadratic(clients: int) -> Instance:
    """Return the nested quadratic with so much noise that it limits tuned settings, too."""
    return quadratic(clients, spread=1.0, noise=1.0)


def logistic(clients: int) -> Instance:
    """Return invariant logistic regression in two dimensions, with noise of half the signal and ‖x‖ ≤ 3."""
    problem = Logistic(2, noise=0.5, draw_mean=True, dtype=torch.float64)
    return measured_from(problem, problem.clients(clients), 3.0)


def alike(clients: int) -> Instance:
    """Return a nested quadratic with much noise of ξ, little bias, and the same F for any number of clients."""
    problem = Quadratic(1, coupling=0.05, spread=4.0, noise=0.3)
    return measured_from(problem, problem.centres(clients, heterogeneity=0.0), None)


INSTANCES: dict[str, Callable[[int], Instance]] = {
    "nested quadratic": quadratic,
    "noisy quadratic": noisy_quadratic,
    "invariant logistic": logistic,
}
"""By name, functions from the number of clients to the instance."""


def measured_from(problem: Problem, clients: Sequence[Any], radius: float | None) -> Instance:
    """Return the problem with its constants on the ball of that radius, and ‖∇F(x_0)‖."""
    x = problem.init(torch.Generator())
    assert problem.constants is not None  # both problems have constants and an exact gradient
    assert problem.exact is not None
    _, gradient = problem.exact(x, clients, [1.0] * len(clients))
    return Instance(problem, clients, problem.constants(x, clients, radius), float(gradient.norm()))


# ----------------------------------------------------------------------------------------- crossings


class Reached(NamedTuple):
    """When the mean of ‖∇F(x̄)‖² over the evaluations so far was first at most ε²; infinity if it never was."""

    samples: float
    """Inner samples of one client."""
    rounds: float
    steps: float


NEVER = Reached(math.inf, math.inf, math.inf)


def running_means(trace: Trace) -> list[float]:
    """Return, at each evaluation, the mean of ‖∇F(x̄)‖² over the evaluations so far."""
    squares = accumulate(value**2 for value in trace.column("gradient_norm"))
    return [total / (count + 1) for count, total in enumerate(squares)]


def reached(trace: Trace, epsilon: float, clients: int) -> Reached:
    """Return the first evaluation at which the running mean is at most ε², or `NEVER`."""
    if trace.failure:
        return NEVER
    for row, mean in zip(trace.rows, running_means(trace), strict=True):
        if mean <= epsilon**2:
            return Reached(row["inner_samples"] / clients, row["round"], row["step"])
    return NEVER


# ----------------------------------------------------------------------------------------- exponents


def exponent(at: Sequence[float], by_place: Sequence[Sequence[float]]) -> Estimate:
    """Fit the slope of log(value) against log(at) for each seed by least squares; return the mean with its interval.

    `by_place[i]` are the values of all seeds at `at[i]`. Places that some seed never reached are left out.
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
