"""The oracle: gradient estimates on given samples, the only access that algorithms have to a problem."""

from collections.abc import Callable
from copy import copy
from typing import Any, ClassVar

import torch
from torch.func import vmap

from fedcso.core.costs import Costs
from fedcso.core.estimator import Estimator
from fedcso.core.problem import Batch, Pairwise, Problem
from fedcso.core.tree import Tree, Weight, add_scaled, change_at, leaves, map_leaves, norm, unflatten_like

Watch = Callable[[torch.Tensor, Tree], None]
"""A function that is called with every loss and gradient that an oracle computes."""

Objective = Callable[[Tree, Tree], torch.Tensor]
"""(scores of ξ, scores of η) → a number."""


Steer = Callable[[Tree, Tree], Tree]
"""(x, direction) → the direction to move along instead."""


def _ignore(losses: torch.Tensor, gradient: Tree) -> None:
    pass


def _straight(x: Tree, direction: Tree) -> Tree:
    return direction


class Oracle:
    """What an algorithm can ask for: gradient estimates at a point, on samples that were drawn before.

    Drawing is separate from evaluating, because variance reduction needs ONE batch at TWO points.
    An `Oracle` serves a single client, a `Cohort` many at once; to an algorithm they look the same.
    """

    lead: ClassVar[int] = 0
    """The number of leading axes before those of a single client's x."""

    def __init__(
        self,
        problem: Problem,
        estimator: Estimator,
        watch: Watch = _ignore,
        clip: float = 0.0,
        outer_count: int | None = None,
        weight_decay: float = 0.0,
    ):
        self.problem = problem
        self.estimator = estimator
        self.watch = watch
        self.clip = clip
        self.outer_count = outer_count
        """The number of different ξ in the client's data, for methods with a state for each ξ."""
        self.weight_decay = weight_decay
        self._counts: list[int] = []
        self._steer: Steer = _straight
        self._formula = estimator.is_plain and problem.closed_form is not None

    @property
    def costs(self) -> Costs:
        """The gradients computed so far; a cohort counts those of ONE client."""
        return Costs(gradients=sum(self._counts))

    def count(self, gradients: int) -> None:
        """Count gradients, also those that were computed elsewhere on behalf of this oracle."""
        self._counts.append(gradients)

    def value(self, x: Tree, batch: Batch) -> torch.Tensor:
        """Return F̂(x) averaged over the batch's ξ, plus r(x)."""
        return self._losses(x, batch).mean(-1)

    def value_and_grad(self, x: Tree, batch: Batch) -> tuple[torch.Tensor, Tree]:
        """Return F̂ + r at x and its gradient, averaged over the batch's ξ."""
        if self._formula:
            losses, gradient = self._lift(self._closed_form)(x, batch)
            count = self._size(batch)
        else:
            point = _variable(x)
            for_each = self._losses(point, batch)
            losses, count = for_each.mean(-1), for_each.shape[-1]
            gradient = _gradient(losses, point)
            losses = losses.detach()
        return losses, self._finish(x, losses, gradient, count)

    def grad(self, x: Tree, batch: Batch) -> Tree:
        """Return ∇F̂(x; ξ, B) + ∇r(x), averaged over the batch's ξ."""
        return self.value_and_grad(x, batch)[1]

    def inner(self, x: Tree, batch: Batch, each: bool = False) -> tuple[Tree, Callable[[Tree], Tree]]:
        """Return ĝ(x) averaged over the batch's ξ, and the function y ↦ ∇ĝ(x)ᵀ∇f(y) + ∇r(x).

        For methods that track the inner value (SCGD): the Jacobian of g is taken at x, the gradient of f at the
        tracked y, and they are paired for each ξ. With `each`, both ĝ and y have one value for each ξ (SOX).
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
            return self._finish(x, losses.detach(), gradient, self._size(batch))

        found = map_leaves(torch.Tensor.detach, g_hat)
        return found if each else map_leaves(lambda leaf: leaf.mean(self.lead), found), chain

    def scores(self, x: Tree, batch: Batch) -> tuple[Tree, Tree, Callable[[torch.Tensor, Objective], Tree]]:
        """Return the scores of ξ and of η at x, and the function (loss, s) ↦ ∇ s(scores of ξ, of η) + ∇r(x).

        For methods that compare scores with those of other clients (FeDXL). The loss is what the round reports.
        """
        assert isinstance(self.problem, Pairwise)  # the method's `check` requires it
        point = _variable(x)
        outer, inner = self.problem.score(point, batch.xi, batch.eta)

        def chain(loss: torch.Tensor, objective: Objective) -> Tree:
            value = objective(outer, inner)
            if self.problem.regulariser is not None:
                regular = self.problem.regulariser(point)
                loss, value = loss + regular.detach(), value + regular
            return self._finish(x, loss, _gradient(value, point), self._size(batch))

        return map_leaves(torch.Tensor.detach, outer), map_leaves(torch.Tensor.detach, inner), chain

    def move(self, x: Tree, direction: Tree, step_size: Weight) -> Tree:
        """Return Π_X(x − α u)."""
        moved = add_scaled(x, self._steer(x, direction), -step_size)
        if self.problem.project is None:
            return moved
        return self._lift(self.problem.project, takes_batch=False)(moved)

    def steered(self, steer: Steer) -> "Oracle":
        """Return this oracle with moves along steer(x, u) instead of u; gradients are counted with this one's.

        For methods around others, which change how their base moves: the innermost changes the direction first.
        """
        result = copy(self)
        result._steer = lambda x, direction: self._steer(x, steer(x, direction))
        return result

    def _losses(self, x: Tree, batch: Batch) -> torch.Tensor:
        """Return F̂ + r for each ξ."""
        losses: torch.Tensor = self._lift(self._penalised)(x, batch)
        return losses

    def _penalised(self, x: Tree, batch: Batch) -> torch.Tensor:
        losses = self.estimator(self.problem, x, batch)
        return losses if self.problem.regulariser is None else losses + self.problem.regulariser(x).unsqueeze(-1)

    def _closed_form(self, x: Tree, batch: Batch) -> tuple[torch.Tensor, Tree]:
        assert self.problem.closed_form is not None
        return self.problem.closed_form(x, batch.xi, batch.eta)

    def _size(self, batch: Batch) -> int:
        """Return the number of ξ that each client has in a batch."""
        return int(leaves(batch.xi)[0].shape[0])

    def _lift(self, fn: Callable[..., Any], takes_batch: bool = True) -> Callable[..., Any]:
        """Map a function of one client's x (and batch) over the leading axes of this oracle."""
        return fn

    def _finish(self, x: Tree, losses: torch.Tensor, gradient: Tree, count: int) -> Tree:
        """Count a gradient, pass it to `watch`, and return it clipped, with the weight decay λx added.

        The decay is part of the objective, so all that methods derive from gradients (u, control variates, differences
        of two points) contains it. It is added after clipping, which is meant for noise.
        """
        self.count(count)
        self.watch(losses, gradient)
        gradient = clip_norm(gradient, self.clip, self.lead) if self.clip else gradient
        if not self.weight_decay:
            return gradient
        return change_at(self.problem.weights_at, lambda u, w: add_scaled(u, w, self.weight_decay), gradient, x)


class Cohort(Oracle):
    """An oracle for many clients, each with its own x, and for every setting of a grid.

    Every leaf of x has leading axes (grid point, client), every leaf of a batch the axis (client): all grid points see
    the same samples. One backward pass through the sum of all losses gives all gradients, because each loss depends on
    one x only.
    """

    lead: ClassVar[int] = 2

    def __init__(
        self,
        problem: Problem,
        grid: int,
        estimator: Estimator,
        watch: Watch = _ignore,
        clip: float = 0.0,
        weight_decay: float = 0.0,
    ):
        super().__init__(problem, estimator, watch, clip, weight_decay=weight_decay)
        self.grid = grid
        self._broadcasts = problem.broadcasts and estimator.is_plain

    def _size(self, batch: Batch) -> int:
        return int(leaves(batch.xi)[0].shape[1])

    def _lift(self, fn: Callable[..., Any], takes_batch: bool = True) -> Callable[..., Any]:
        if self._broadcasts:
            return fn
        return _vmap_over_one_grid_point(fn) if self.grid == 1 else _vmap_over_grid(fn, takes_batch)


def clip_norm(gradient: Tree, longest: float, lead: int = 0) -> Tree:
    """Scale a gradient to at most that norm, for each index of the leading axes."""
    # In float64, whose squares don't overflow. A gradient that is not finite is left for the caller to detect.
    length = norm(map_leaves(torch.Tensor.double, gradient), lead)
    too_long = torch.isfinite(length) & (length > longest)
    factor = torch.where(too_long, (longest / length).clamp_max(1.0), 1.0)
    return map_leaves(lambda leaf: leaf * factor.reshape(factor.shape + (1,) * (leaf.ndim - lead)).to(leaf), gradient)


def _variable(x: Tree) -> Tree:
    """Return a copy of x that requires gradients."""
    return map_leaves(lambda leaf: leaf.detach().requires_grad_(), x)


def _gradient(values: torch.Tensor, point: Tree) -> Tree:
    """Return the gradient of the sum of the values; zero for leaves that they do not depend on."""
    # A single value needs no ones. To check their shape, torch would import sympy, which takes most of a second.
    ones = torch.ones_like(values) if values.ndim else None
    return unflatten_like(point, torch.autograd.grad(values, leaves(point), ones, materialize_grads=True))


def _vmap_over_grid(fn: Callable[..., Any], takes_batch: bool) -> Callable[..., Any]:
    return vmap(vmap(fn), in_dims=(0, None) if takes_batch else 0)


def _vmap_over_one_grid_point(fn: Callable[..., Any]) -> Callable[..., Any]:
    over_clients = vmap(fn)

    def lifted(x: Tree, *batch: Batch) -> Tree:
        result = over_clients(map_leaves(lambda leaf: leaf.squeeze(0), x), *batch)
        return map_leaves(lambda leaf: leaf.unsqueeze(0), result)

    return lifted
