"""A problem as the coordinator sees it: it knows x and the set X, and of data only what sites say of theirs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from fedcso.core.errors import FedcsoError
from fedcso.core.judge import Judge, Network
from fedcso.core.metrics import AT_CLIENTS, mean_over_clients
from fedcso.core.problem import Problem
from fedcso.core.tree import Tree
from fedcso.datasets.examples import Examples

Ask = Callable[[Tree], Sequence[dict[str, Any]]]
"""Sends a model to all sites that measure; their metrics."""


@dataclass
class About:
    """What is known of a site's data. Until it has said something, it is taken for one that trains."""

    size: int | None = None
    trains: bool = True
    tests: bool = False


def judge_elsewhere(judge: Judge, form: Any) -> Judge:
    """Return a judge whose test data is a way to ask sites: its metrics are the means of what they measure.

    `form` has the form of a client's data; what is in it is not looked at.
    """

    def evaluate(x: Tree, ask: Ask) -> dict[str, Any]:
        return mean_over_clients(ask(x))

    def network(x: Tree, ask: Ask) -> Network:
        """Return the trained network, shown inputs of the right form."""
        assert judge.network is not None
        shown = torch.zeros(2, *form.inputs.shape[1:], dtype=form.inputs.dtype)
        return judge.network(x, Examples(shown, form.labels[:0]))

    exports = judge.network is not None and isinstance(form, Examples)
    return Judge(evaluate, AT_CLIENTS + judge.select, network=network if exports else None)


class Elsewhere(Problem):
    """A problem whose data are at sites: clients' data are `About`."""

    def __init__(self, problem: Problem):
        self.problem, self.project = problem, problem.project

    def init(self, rng: torch.Generator) -> Tree:
        """x_0."""
        return self.problem.init(rng)

    def trains(self, data: About) -> bool:
        """As the site says."""
        return data.trains

    def size(self, data: About) -> int | None:
        """As the site says."""
        return data.size

    def outer_count(self, data: About) -> int | None:
        """Not known here, and no one else's business."""
        raise FedcsoError("methods with a state for each ξ (SOX, SOAP, MOML) can't be checked without the sites' data")

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
