"""A problem as the coordinator sees it: it knows x and the set X, and of data only what sites say of theirs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from fedcso.core.delivery import Delivery
from fedcso.core.errors import FedcsoError
from fedcso.core.metrics import AT_CLIENTS, mean_over_clients
from fedcso.core.problem import Problem
from fedcso.core.tree import Tree
from fedcso.datasets.examples import Examples

Ask = Callable[[Tree], Sequence[dict[str, Any]]]
"""Sends a model to all sites that measure; their metrics."""


@dataclass
class About:
    """What is known of a site's data. Until it has said something, it is taken for one that trains."""

    size: float = 1.0
    trains: bool = True
    tests: bool = False


class Elsewhere(Problem):
    """A problem whose data are at sites: clients' data are `About`, test data is a way to ask.

    `form` has the form of a client's data; what is in it is not looked at.
    """

    def __init__(self, problem: Problem, form: Any):
        self.problem, self.form = problem, form
        self.select = AT_CLIENTS + problem.select  # type: ignore[misc]  # of this one, not of the class

    def init(self, rng: torch.Generator) -> Tree:
        """x_0."""
        return self.problem.init(rng)

    def project(self, x: Tree) -> Tree:
        """The nearest point of X."""
        return self.problem.project(x)

    def trains(self, data: About) -> bool:
        """As the site says."""
        return data.trains

    def size(self, data: About) -> float:
        """As the site says."""
        return data.size

    def outer_count(self, data: About) -> int | None:
        """Not known here, and no one else's business."""
        raise FedcsoError("methods with a state for each ξ (SOX, SOAP, MOML) can't be checked without the sites' data")

    def evaluate(self, x: Tree, test: Ask | None) -> dict[str, Any]:
        """The mean of what sites measure at home."""
        return mean_over_clients(test(x)) if test else {}

    def deliver(self, x: Tree, test: Ask | None) -> Delivery | None:
        """The trained network, shown inputs of the right form."""
        if not isinstance(self.form, Examples):
            return None
        inputs = self.form.inputs
        shown = torch.zeros(2, *inputs.shape[1:], dtype=inputs.dtype)
        return self.problem.deliver(x, Examples(shown, self.form.labels[:0]))

    def sample_outer(self, data: Any, rng: torch.Generator, shape: tuple[int, ...]) -> Tree:
        """Not here."""
        raise NotImplementedError

    def sample_inner(self, data: Any, rng: torch.Generator, xi: Tree, m: int) -> Tree:
        """Not here."""
        raise NotImplementedError

    def inner(self, x: Tree, xi: Tree, eta: Tree) -> Tree:
        """Not here."""
        raise NotImplementedError

    def outer(self, y: Tree, xi: Tree) -> torch.Tensor:
        """Not here."""
        raise NotImplementedError
