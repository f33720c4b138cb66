"""The oracle through which algorithms see a problem: gradient estimates on samples that were drawn before."""

from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch.func import vmap

from fedcso.core.costs import Costs
from fedcso.core.estimator import Estimator
from fedcso.core.problem import Batch, Problem
from fedcso.core.tree import Tree, Weight, add_scaled, leaves, map_leaves, norm, unflatten_like

Watch = Callable[[torch.Tensor, Tree], None]
"""Shown every loss and gradient that an oracle computes."""


def _nothing(losses: torch.Tensor, gradient: Tree) -> None:
    pass


class Oracle:
    """What an algorithm may ask: the gradient estimate at a point, on samples that were drawn before.

    Drawing is separate from evaluating, because variance reduction needs ONE batch at TWO points.
    An oracle answers for a single client, a `Cohort` for many at once; an algorithm can't tell the difference.
    """

    lead: ClassVar[int] = 0
    """How many axes stand before those of a single client's x."""

    def __init__(
        self,
        problem: Problem,
        estimator: Estimator,
        watch: Watch = _nothing,
        clip: float = 0.0,
        outer_count: int | None = None,
    ):
        self.problem = problem
        self.estimator = estimator
        self.watch = watch
        self.clip = clip
        self.outer_count = outer_count
        """How many different ξ there are where the samples come from, for methods with a state for each."""
        self._gradients = 0
        self._formula = estimator.is_plain and problem.closed_form is not None

    @property
    def costs(self) -> Costs:
        """What was asked so far, counted for ONE client also in a cohort."""
        return Costs(gradients=self._gradients)

    def count(self, gradients: int) -> None:
        """Count what was asked elsewhere, of an oracle like this one."""
        self._gradients += gradients

    def value(self, x: Tree, batch: Batch) -> torch.Tensor:
        """F̂ averaged over the batch's ξ, plus r(x)."""
        return self._each(x, batch).mean(-1)

    def value_and_grad(self, x: Tree, batch: Batch) -> tuple[torch.Tensor, Tree]:
        """F̂ + r and its gradient, averaged over the batch's ξ."""
        if self._formula:
            losses, gradient = self._lift(self._closed_form)(x, batch)
            count = self._size(batch)
        else:
            point = _variable(x)
            each = self._each(point, batch)
            losses, count = each.mean(-1), each.shape[-1]
            gradient = _gradient(losses, point)
            losses = losses.detach()
        return losses, self._accounted(losses, gradient, count)

    def grad(self, x: Tree, batch: Batch) -> Tree:
        """∇F̂(x; ξ, B) + ∇r(x), averaged over the batch's ξ."""
        return self.value_and_grad(x, batch)[1]

    def inner(self, x: Tree, batch: Batch, each: bool = False) -> tuple[Tree, Callable[[Tree], Tree]]:
        """ĝ(x) averaged over the batch's ξ, and the chain rule y ↦ ∇ĝ(x)ᵀ∇f(y) + ∇r(x) at a y to choose.

        For methods that track the inner value (SCGD): the Jacobian of g is taken at x, the gradient of
        f at the tracked y, paired for each ξ. With `each`, both ĝ and y have a value for each ξ (SOX).
        """
        point = _variable(x)
        g_hat = self._lift(lambda x, batch: self.problem.inner(x, batch.xi, batch.eta))(point, batch)

        def chain(y: Tree) -> Tree:
            y = y if each else map_leaves(lambda value, like: value.unsqueeze(self.lead).expand_as(like), y, g_hat)
            tracked = _variable(y)
            losses = self._lift(lambda y, batch: self.problem.outer(y, batch.xi).mean(-1))(tracked, batch)
            downstream = _gradient(losses, tracked)
            pairs = zip(leaves(g_hat), leaves(downstream), strict=True)
            pulled_back = torch.stack([(value * slope).sum() for value, slope in pairs]).sum()
            if self.problem.regulariser is not None:
                regular = self._lift(self.problem.regulariser, takes_batch=False)(point)
                losses, pulled_back = losses + regular, pulled_back + regular.sum()
            gradient = _gradient(pulled_back, point)
            return self._accounted(losses.detach(), gradient, self._size(batch))

        found = map_leaves(torch.Tensor.detach, g_hat)
        return found if each else map_leaves(lambda leaf: leaf.mean(self.lead), found), chain

    def move(self, x: Tree, direction: Tree, step_size: Weight) -> Tree:
        """Π_X(x − α u)."""
        moved = add_scaled(x, direction, -step_size)
        if self.problem.project is None:
            return moved
        return self._lift(self.problem.project, takes_batch=False)(moved)

    def _each(self, x: Tree, batch: Batch) -> torch.Tensor:
        """F̂ + r for each ξ."""
        losses: torch.Tensor = self._lift(self._penalised)(x, batch)
        return losses

    def _penalised(self, x: Tree, batch: Batch) -> torch.Tensor:
        losses = self.estimator(self.problem, x, batch)
        return losses if self.problem.regulariser is None else losses + self.problem.regulariser(x).unsqueeze(-1)

    def _closed_form(self, x: Tree, batch: Batch) -> tuple[torch.Tensor, Tree]:
        assert self.problem.closed_form is not None
        return self.problem.closed_form(x, batch.xi, batch.eta)

    def _size(self, batch: Batch) -> int:
        """How many ξ each client has in a batch."""
        return int(leaves(batch.xi)[0].shape[0])

    def _lift(self, fn: Callable[..., Any], takes_batch: bool = True) -> Callable[..., Any]:
        """A function of one client's x (and batch) as one of what this oracle is asked about."""
        return fn

    def _accounted(self, losses: torch.Tensor, gradient: Tree, count: int) -> Tree:
        self.count(count)
        self.watch(losses, gradient)
        return shortened(gradient, self.clip, self.lead) if self.clip else gradient


class Cohort(Oracle):
    """An oracle for many clients at once, each with an x of its own, for every setting of a grid.

    Every leaf of x has leading axes (grid point, client), every leaf of a batch the axis (client): all grid points see
    the same samples. All answers come from one automatic differentiation of the summed losses, each of which depends
    on its own x alone.
    """

    lead: ClassVar[int] = 2

    def __init__(self, problem: Problem, grid: int, estimator: Estimator, watch: Watch = _nothing, clip: float = 0.0):
        super().__init__(problem, estimator, watch, clip)
        self.grid = grid
        self._broadcasts = problem.broadcasts and estimator.is_plain

    def _size(self, batch: Batch) -> int:
        return int(leaves(batch.xi)[0].shape[1])

    def _lift(self, fn: Callable[..., Any], takes_batch: bool = True) -> Callable[..., Any]:
        if self._broadcasts:
            return fn
        return _vmap_over_one_grid_point(fn) if self.grid == 1 else _vmap_over_grid(fn, takes_batch)


def shortened(gradient: Tree, longest: float, lead: int = 0) -> Tree:
    """The same direction, no longer than that, for each index of the leading axes."""
    # In float64, whose squares don't overflow. A gradient that is not finite has been seen and stays what it is.
    length = norm(map_leaves(torch.Tensor.double, gradient), lead)
    factor = torch.where(torch.isfinite(length), (longest / length).clamp_max(1.0), 1.0)
    return map_leaves(lambda leaf: leaf * factor.reshape(factor.shape + (1,) * (leaf.ndim - lead)).to(leaf), gradient)


def _variable(x: Tree) -> Tree:
    """A copy of x that remembers what is computed from it."""
    return map_leaves(lambda leaf: leaf.detach().requires_grad_(), x)


def _gradient(values: torch.Tensor, point: Tree) -> Tree:
    """The gradient of the sum of some numbers; zero for leaves that it does not depend on."""
    ones = torch.ones_like(values)
    return unflatten_like(point, torch.autograd.grad(values, leaves(point), ones, materialize_grads=True))


def _vmap_over_grid(fn: Callable[..., Any], takes_batch: bool) -> Callable[..., Any]:
    return vmap(vmap(fn), in_dims=(0, None) if takes_batch else 0)


def _vmap_over_one_grid_point(fn: Callable[..., Any]) -> Callable[..., Any]:
    over_clients = vmap(fn)

    def lifted(x: Tree, *batch: Batch) -> Tree:
        result = over_clients(map_leaves(lambda leaf: leaf.squeeze(0), x), *batch)
        return map_leaves(lambda leaf: leaf.unsqueeze(0), result)

    return lifted
