"""Measure the expectation and the variance of an estimator from many independent draws, made in one pass."""

from typing import NamedTuple

import torch

from fedcso.core.estimator import Estimator
from fedcso.core.oracle import Cohort
from fedcso.core.problem import Problem
from fedcso.core.streams import stream
from tests.helpers import nested_quadratic, standard_error

CASE = nested_quadratic()
X = torch.tensor([2.0, -1.0, 3.0], dtype=torch.float64)
TRUTH = CASE.problem.exact(X, CASE.clients[:1], [1.0])[1]


class Found(NamedTuple):
    """Mean of the estimates, its standard error, their total variance, and inner samples per step."""

    mean: torch.Tensor
    error: torch.Tensor
    variance: float
    samples: float

    def agrees_with(self, expected: torch.Tensor) -> bool:
        """Return whether every coordinate is within four standard errors of the expected value."""
        return bool(((self.mean - expected).abs() < 4 * self.error).all())


def estimates(
    estimator: Estimator, b: int, m: int, draws: int = 40_000, problem: Problem = CASE.problem, data=None, x=X
) -> Found:
    """Draw many estimates; each draw is one client of a cohort, with one step."""
    data = CASE.clients[0] if data is None else data
    drawn = estimator.draw(problem, data, stream(3, b, m), draws, b, m)
    gradients = Cohort(problem, 1, estimator).grad(x.expand(1, draws, *x.shape), drawn.batch)[0]
    spread = float((gradients - gradients.mean(0)).square().sum(-1).mean())
    return Found(gradients.mean(0), standard_error(gradients), spread, drawn.costs.inner_samples / draws)
