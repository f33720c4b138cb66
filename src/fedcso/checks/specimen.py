"""A task under examination: samples of one client, and points at which the problem is evaluated."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from fedcso.core.estimator import sample
from fedcso.core.problem import Batch, Problem, split_steps
from fedcso.core.streams import START, stream
from fedcso.core.task import Task
from fedcso.core.tree import Tree, leaves, map_leaves

STEPS, OUTER, INNER = 2, 3, 4
"""Sizes that differ from each other, so that no axis is taken for another."""


@dataclass(frozen=True)
class Specimen:
    """A task, and how it was made."""

    make: Callable[[], Task]

    @cached_property
    def task(self) -> Task:
        """The task, made once."""
        return self.make()

    @property
    def problem(self) -> Problem:
        """The problem of the task."""
        return self.task.problem

    @cached_property
    def data(self) -> Any:
        """The data of the first client that trains."""
        return self.task.clients[self.task.able[0]]

    @cached_property
    def x(self) -> Tree:
        """A point near x_0 with different numbers in all places, because x_0 may be special: zero, for example."""
        rng = stream(0, START, 1)
        x = self.task.starting_point(stream(0, START, 0))
        moved = map_leaves(lambda leaf: leaf + 0.1 * torch.randn(leaf.shape, generator=rng).to(leaf), x)
        return moved if self.problem.project is None else self.problem.project(moved)

    def draw(self, inner: int = INNER, outer: int = OUTER) -> Batch:
        """Draw the samples of one step."""
        drawn = sample(self.problem, self.data, stream(0, 0, 0), STEPS, outer, inner)
        return split_steps(drawn, STEPS)[0]

    @cached_property
    def batch(self) -> Batch:
        """The samples of one step."""
        return self.draw()

    def losses(self, x: Tree, batch: Batch) -> torch.Tensor:
        """Return f of the mean over η, for each ξ."""
        return self.problem.outer(self.problem.inner(x, batch.xi, batch.eta), batch.xi)


def tolerance(*trees: Tree) -> float:
    """Return how far two values that should be equal may be apart, relative to their size: half of the digits."""
    kinds = [leaf.dtype for tree in trees for leaf in leaves(tree) if leaf.is_floating_point()]
    return float(max((torch.finfo(kind).eps for kind in kinds), default=0.0) ** 0.5)


def difference(one: Tree, two: Tree) -> float:
    """Return the largest difference of two trees of the same shapes, relative to their largest entry; nan counts 0."""
    first, second = (
        torch.cat([leaf.detach().double().nan_to_num().flatten() for leaf in leaves(tree)]) for tree in (one, two)
    )
    largest = torch.maximum(first.abs(), second.abs()).amax() if len(first) else torch.zeros(())
    return float((first - second).abs().amax() / largest) if largest else 0.0


def doubled(tree: Tree) -> Tree:
    """Return a tree with its real numbers in double precision."""
    return map_leaves(lambda leaf: leaf.double() if leaf.is_floating_point() else leaf, tree)


def is_tree(value: Any) -> bool:
    """Return whether a value is a tensor, or a dict, list or tuple of such."""
    if isinstance(value, torch.Tensor):
        return True
    children = value.values() if isinstance(value, dict) else value
    return isinstance(value, dict | list | tuple) and all(map(is_tree, children))
