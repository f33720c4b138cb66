"""The coordinator's view of a problem: it knows x and the set X, and of the data only what sites report."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from fedcso.core.judge import Judge, Network
from fedcso.core.problem import Adapting, ExponentialOuter, FiniteOuter, Pairwise, Problem
from fedcso.core.tree import Tree
from fedcso.datasets.examples import Examples

Metrics = dict[str, Any]
"""The metrics of a model at one site."""

Ask = Callable[[Tree], Sequence[Metrics]]
"""Sends a model to all sites with held-out data and returns their metrics."""


@dataclass
class SiteInfo:
    """What is known about a site's data; a site that has not answered yet is assumed to train."""

    size: int | None = None
    trains: bool = True
    tests: bool = False
    validates: bool = False


class Answer(NamedTuple):
    """The metrics of a model on a site's test and validation data."""

    test: Metrics
    validation: Metrics


class Survey:
    """Asks sites for metrics; asking twice in a row about the same model sends it only once."""

    def __init__(self, ask: Callable[[Tree], Sequence[Answer]]):
        self._ask = ask
        self._model: Tree = None
        self._answers: Sequence[Answer] = ()

    def on_test(self, x: Tree) -> Sequence[Metrics]:
        """Return the sites' metrics on test data."""
        return [answer.test for answer in self._answers_about(x)]

    def on_validation(self, x: Tree) -> Sequence[Metrics]:
        """Return the sites' metrics on validation data."""
        return [answer.validation for answer in self._answers_about(x)]

    def _answers_about(self, x: Tree) -> Sequence[Answer]:
        if x is not self._model:
            self._model, self._answers = x, self._ask(x)
        return self._answers


def remote_judge(judge: Judge, form: Any) -> Judge:
    """Return a judge that asks sites for metrics and returns their means.

    `form` has the form of a client's data; what is in it is not looked at.
    """
    metrics = [metric.over_clients() for metric in judge.metrics if metric.curve]
    select = None if judge.select is None else judge.metric(judge.select).over_clients().name

    def evaluate(x: Tree, ask: Ask) -> dict[str, Any]:
        """Return the means over sites; the deciding metric is undefined if no site has answered."""
        undefined = {} if select is None else {select: math.nan}
        return undefined | judge.mean_over_clients(ask(x))

    def network(x: Tree, ask: Ask) -> Network:
        """Return the trained network with example inputs of the right shape."""
        assert judge.network is not None
        shown = torch.zeros(2, *form.inputs.shape[1:], dtype=form.inputs.dtype)
        return judge.network(x, Examples(shown, form.labels[:0]))

    exports = judge.network is not None and isinstance(form, Examples)
    return Judge(evaluate, metrics, select, network=network if exports else None)


def _counted_by_sites(data: SiteInfo) -> int:
    """Return 0: only a site knows its outer samples, and checks that it can keep a state for each of them."""
    return 0


class RemoteProblem(Problem):
    """A problem whose data are at sites; a client's data is a `SiteInfo`."""

    def __init__(self, problem: Problem):
        self.problem, self.project, self.weights_at = problem, problem.project, problem.weights_at
        if isinstance(problem, FiniteOuter):
            self.outer_count, self.which = _counted_by_sites, problem.which
        if isinstance(problem, Pairwise):
            self.score, self.compare = problem.score, problem.compare
        if isinstance(problem, Adapting):
            self.inner_steps, self.task_lasts = problem.inner_steps, problem.task_lasts
        if isinstance(problem, ExponentialOuter):
            self.temperature, self.log_weight = problem.temperature, problem.log_weight

    def init(self, rng: torch.Generator) -> Tree:
        """Return x_0."""
        return self.problem.init(rng)

    def trains(self, data: SiteInfo) -> bool:
        """Return what the site reported."""
        return data.trains

    def size(self, data: SiteInfo) -> int | None:
        """Return what the site reported."""
        return data.size

    def sample_outer(self, data: Any, rng: torch.Generator, shape: tuple[int, ...]) -> Tree:
        """Raise: only sites have data."""
        raise NotImplementedError

    def sample_inner(self, data: Any, rng: torch.Generator, xi: Tree, m: int) -> Tree:
        """Raise: only sites have data."""
        raise NotImplementedError

    def inner(self, x: Tree, xi: Tree, eta: Tree) -> Tree:
        """Raise: only sites have data."""
        raise NotImplementedError

    def outer(self, y: Tree, xi: Tree) -> torch.Tensor:
        """Raise: only sites have data."""
        raise NotImplementedError
