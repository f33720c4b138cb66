"""A problem as the coordinator sees it: it knows x and the set X, and of data only what sites say of theirs."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from fedcso.core.errors import FedcsoError
from fedcso.core.judge import Judge, Network
from fedcso.core.problem import Problem
from fedcso.core.tree import Tree
from fedcso.datasets.examples import Examples

Metrics = dict[str, Any]
"""What one site measures of a model."""

Ask = Callable[[Tree], Sequence[Metrics]]
"""Sends a model to all sites that measure; their metrics."""


@dataclass
class About:
    """What is known of a site's data. Until it has said something, it is taken for one that trains."""

    size: int | None = None
    trains: bool = True
    tests: bool = False
    validates: bool = False


class Answer(NamedTuple):
    """What a site measures of a model on its test data and on its validation data."""

    test: Metrics
    validation: Metrics


class Survey:
    """Ways to ask sites for what they measure; a model that is asked about twice in a row is sent only once."""

    def __init__(self, ask: Callable[[Tree], Sequence[Answer]]):
        self._ask = ask
        self._model: Tree = None
        self._answers: Sequence[Answer] = ()

    def on_test(self, x: Tree) -> Sequence[Metrics]:
        """Return what sites measure on test data."""
        return [answer.test for answer in self._answers_about(x)]

    def on_validation(self, x: Tree) -> Sequence[Metrics]:
        """Return what sites measure on validation data."""
        return [answer.validation for answer in self._answers_about(x)]

    def _answers_about(self, x: Tree) -> Sequence[Answer]:
        if x is not self._model:
            self._model, self._answers = x, self._ask(x)
        return self._answers


def judge_elsewhere(judge: Judge, form: Any) -> Judge:
    """Return a judge whose held-out data are a way to ask sites: its metrics are the means of what they measure.

    `form` has the form of a client's data; what is in it is not looked at.
    """
    metrics = [metric.over_clients() for metric in judge.metrics if metric.curve]
    select = None if judge.select is None else judge.metric(judge.select).over_clients().name

    def evaluate(x: Tree, ask: Ask) -> dict[str, Any]:
        """Return the means; the metric that selects is undefined where no site has answered."""
        undefined = {} if select is None else {select: math.nan}
        return undefined | judge.mean_over_clients(ask(x))

    def network(x: Tree, ask: Ask) -> Network:
        """Return the trained network, shown inputs of the right form."""
        assert judge.network is not None
        shown = torch.zeros(2, *form.inputs.shape[1:], dtype=form.inputs.dtype)
        return judge.network(x, Examples(shown, form.labels[:0]))

    exports = judge.network is not None and isinstance(form, Examples)
    return Judge(evaluate, metrics, select, network=network if exports else None)


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
