"""Small tasks that methods and estimators are tried on."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import torch
from torch import nn

from fedcso.core.algorithm import Algorithm
from fedcso.core.errors import FedcsoError
from fedcso.core.plan import Plan
from fedcso.core.problem import Problem
from fedcso.core.streams import DATA, stream
from fedcso.core.task import Task
from fedcso.datasets.examples import Examples
from fedcso.engines.job import Job
from fedcso.problems import AUPRC, AUROC, Classification, NestedQuadratic, Personalised, Robust
from fedcso.problems.scores import Scores

PLAN = Plan(rounds=3, local_steps=2, outer_batch=2, inner_batch=4, participation=2)
CLIENTS = 3


class Trial(NamedTuple):
    """A task for a method, and a plan that it accepts."""

    name: str
    task: Task
    plan: Plan


def trials_for(algorithm: Algorithm, tasks: Mapping[str, Callable[[], Task]], number: int = 2) -> list[Trial]:
    """Return the first tasks that a method accepts, the last of them with a tree of tensors as x."""
    found: list[Trial] = []
    for name, make in tasks.items():
        task = make()
        accepted = (Trial(name, *case) for case in _variants(task) if _accepts(algorithm, *case))
        found += [one for one in [next(accepted, None)] if one]
        if len(found) == number:
            break
    return found


def _variants(task: Task) -> Iterator[tuple[Task, Plan]]:
    """Yield a task with plans that ask ever less of a method; the last is for one machine."""
    yield task, PLAN
    yield task, replace(PLAN, local_steps=1)
    yield task, replace(PLAN, local_steps=1, participation=1.0)
    yield replace(task, clients=task.clients[:1]), replace(PLAN, local_steps=1, participation=1.0)


def _accepts(algorithm: Algorithm, task: Task, plan: Plan) -> bool:
    try:
        Job(algorithm, task, plan)
    except FedcsoError:
        return False
    return True


def _quadratic() -> Task:
    problem = NestedQuadratic(dimension=3)
    return Task(problem, problem.centres(CLIENTS))


def _examples(classes: int, number: int = 8) -> list[Examples]:
    rng = stream(0, DATA, 0)
    return [
        Examples(
            torch.randn(number, 4, generator=rng, dtype=torch.float64), torch.arange(number).remainder(classes).long()
        )
        for _ in range(CLIENTS)
    ]


def _classification() -> Task:
    return Task(Classification(partial(nn.Linear, 4, 3, dtype=torch.float64)), _examples(3))


def _ranking(kind: Callable[..., Problem], *options: float) -> Task:
    return Task(kind(Scores(partial(nn.Linear, 4, 1, dtype=torch.float64)), *options), _examples(2))


def _around(kind: Callable[..., Problem], *options: float) -> Task:
    task = _classification()
    return replace(task, problem=kind(task.problem, *options))


TASKS: dict[str, Callable[[], Task]] = {
    "nested_quadratic": _quadratic,
    "classification": _classification,
    "auprc": partial(_ranking, AUPRC),
    "auroc": partial(_ranking, AUROC, 0.3),
    "personalised": partial(_around, Personalised, 0.3, 1),
    "personalised after training": partial(_around, Personalised, 0.3, 0),
    "robust": partial(_around, Robust, 0.5, 1.0),
}
"""By name; a method is tried on the first that it accepts. Only the first has a single tensor as x."""


@dataclass(frozen=True)
class KnownBias(Problem):
    """F(x) = E f(η̄ x) with η ~ N(1, 1), at x = 1, where f(y) = y^p / p: E ∇F̂ is the p-th moment of the mean η̄.

    The exact gradient is 1 for every p. For p = 1 no estimator is biased; for p = 4 the plain one has the bias
    6/m + 3/m², which has terms of two orders.
    """

    degree: int
    broadcasts = True

    def init(self, rng: torch.Generator) -> torch.Tensor:
        """Return 1."""
        return torch.ones((), dtype=torch.float64)

    def sample_outer(self, data: object, rng: torch.Generator, shape: tuple[int, ...]) -> torch.Tensor:
        """Return ones: all ξ are alike."""
        return torch.ones(shape, dtype=torch.float64)

    def sample_inner(self, data: object, rng: torch.Generator, xi: torch.Tensor, m: int) -> torch.Tensor:
        """Draw η ~ N(1, 1)."""
        return 1 + torch.randn(*xi.shape, m, generator=rng, dtype=torch.float64)

    def inner(self, x: torch.Tensor, xi: torch.Tensor, eta: torch.Tensor) -> torch.Tensor:
        """Return η̄ x."""
        return eta.mean(-1) * x.unsqueeze(-1)

    def outer(self, y: torch.Tensor, xi: torch.Tensor) -> torch.Tensor:
        """Return y^p / p."""
        return y**self.degree / self.degree

    def size(self, data: object) -> None:
        """Return None: samples come from a distribution."""
        return
