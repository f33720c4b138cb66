"""The biased gradient estimator of equation (4), and the oracle through which algorithms see it.

    F̂(x; ξ, B) = f_ξ( (1/m) Σ_j g_{η_j}(x, ξ) ),     ∇F̂ = ( (1/m) Σ_j ∇g )ᵀ ∇f( (1/m) Σ_j g )

The mean over η is INSIDE f. Its bias is at most L_g S_f σ_g / √m (Lemma A.2), and of order 1/m where
f is twice differentiable. Estimators with less bias for the same samples are in `fedcso.estimators`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch.func import vmap

from fedcso.core.costs import Costs
from fedcso.core.problem import Batch, Problem, has_closed_form, unbounded
from fedcso.core.tree import Tree, Weight, add_scaled, leaves, map_leaves, norm, to_device, unflatten_like

Watch = Callable[[torch.Tensor, Tree], None]
"""Shown every loss and gradient that an oracle computes."""


def sample(problem: Problem, data: Any, rng: torch.Generator, steps: int, b: int, m: int) -> Batch:
    """Samples for `steps` local steps of b outer and, for each of these, m inner samples."""
    xi = problem.sample_outer(data, rng, (steps, b))
    return Batch(xi, problem.sample_inner(data, rng, xi, m))


class Drawn(NamedTuple):
    """Samples for several local steps (the leading axis of all leaves), and how many there are."""

    batch: Batch
    costs: Costs


def draw_alike(problem: Problem, data: Any, rng: torch.Generator, steps: int, b: int, m: int) -> Drawn:
    """The same number m of inner samples for every ξ."""
    batch = sample(problem, data, rng, steps, b, m)
    return Drawn(batch, Costs(outer_samples=steps * b, inner_samples=steps * problem.inner_samples(b, m)))


def _any_size(inner_batch: int) -> None:
    pass


@dataclass(frozen=True)
class Estimator:
    """How ∇F is estimated from samples; a function alone makes one: `@Estimator`.

    - `losses(problem, x, batch)`: one loss for each ξ, whose mean estimates F and the gradient of whose
      mean estimates ∇F. Any algorithm can use any estimator, and variance reduction stays right: ONE
      batch, evaluated at TWO points.
    - `draw(problem, data, rng, steps, b, m)`: what is drawn for it, and what that costs. All randomness
      is drawn here, from the client's own stream, and becomes part of the batch; so all engines agree.
    - `check(m)` refuses inner batch sizes that it can't be made of.
    """

    losses: Callable[[Problem, Tree, Batch], torch.Tensor]
    draw: Callable[[Problem, Any, torch.Generator, int, int, int], Drawn] = draw_alike
    check: Callable[[int], None] = _any_size

    def __call__(self, problem: Problem, x: Tree, batch: Batch) -> torch.Tensor:
        """The losses."""
        return self.losses(problem, x, batch)


@Estimator
def plain(problem: Problem, x: Tree, batch: Batch) -> torch.Tensor:
    """F̂ of equation (4)."""
    return problem.outer(problem.inner(x, batch.xi, batch.eta), batch.xi)


@Estimator
def mean_outside(problem: Problem, x: Tree, batch: Batch) -> torch.Tensor:
    """(1/m) Σ_j f_ξ( g_{η_j}(x, ξ) ): the WRONG objective, kept to show what the mistake costs.

    Its bias does not fall with m. Every η_j goes with a ξ of its own, as if each were the only one.
    """
    singles = blocks(batch, 1)
    return plain(problem, x, singles).reshape(leaves(batch.xi)[0].shape[0], -1).mean(1)


def blocks(batch: Batch, size: int) -> Batch:
    """The inner samples of each ξ cut into blocks of that size, each block with a copy of its ξ, in order."""
    b = leaves(batch.xi)[0].shape[0]
    inner = leaves(batch.eta)
    count = inner[0].shape[1] // size if inner else 1
    xi = map_leaves(lambda leaf: leaf.repeat_interleave(count, 0), batch.xi)
    eta = map_leaves(lambda leaf: leaf.expand(b, *leaf.shape[1:]).reshape(b * count, size, *leaf.shape[2:]), batch.eta)
    return Batch(xi, eta)


def _nothing(losses: torch.Tensor, gradient: Tree) -> None:
    pass


class Oracle:
    """What an algorithm may ask: the gradient estimate at a point, on samples that were drawn before.

    Drawing is separate from evaluating, because variance reduction needs ONE batch at TWO points.
    An oracle answers for a single client, or, made by `Oracle.cohort`, for many at once: then every
    leaf of x has leading axes (grid point, client), every leaf of a batch the axis (client), and all
    answers come from one automatic differentiation of the summed losses, each of which depends on
    its own x alone. An algorithm can't tell the difference.
    """

    def __init__(self, problem: Problem, estimator: Estimator = plain, watch: Watch = _nothing, clip: float = 0.0):
        self.problem = problem
        self.estimator = estimator
        self.watch = watch
        self.clip = clip
        self.outer_count: int | None = None
        """How many different ξ there are where the samples come from, for methods with a state for each."""
        self._drawn, self._gradients = Costs(), 0
        self._formula = estimator is plain and has_closed_form(problem)
        self._lead = 0
        self._lift: Callable[..., Any] = lambda fn, takes_batch=True: fn

    @classmethod
    def cohort(
        cls, problem: Problem, grid: int, estimator: Estimator = plain, watch: Watch = _nothing, clip: float = 0.0
    ) -> "Oracle":
        """An oracle for leaves with leading axes (grid, clients)."""
        oracle = cls(problem, estimator, watch, clip)
        oracle._lead = 2
        if not (problem.broadcasts and estimator is plain):
            oracle._lift = _vmap_over_one_grid_point if grid == 1 else _vmap_over_grid
        return oracle

    def draw(self, data: Any, rng: torch.Generator, steps: int, b: int, m: int, device: str) -> Batch:
        """Samples for several steps of one client, counted."""
        drawn = self.estimator.draw(self.problem, data, rng, steps, b, m)
        self._drawn += drawn.costs
        self.outer_count = self.problem.outer_count(data)
        batch: Batch = to_device(drawn.batch, device)
        return batch

    @property
    def costs(self) -> Costs:
        """What was drawn and asked so far, counted for ONE client also in a cohort."""
        return self._drawn + Costs(gradients=self._gradients)

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
            y = y if each else map_leaves(lambda value, like: value.unsqueeze(self._lead).expand_as(like), y, g_hat)
            tracked = _variable(y)
            losses = self._lift(lambda y, batch: self.problem.outer(y, batch.xi).mean(-1))(tracked, batch)
            downstream = _gradient(losses, tracked)
            pulled_back = sum(
                (value * slope).sum() for value, slope in zip(leaves(g_hat), leaves(downstream), strict=True)
            )
            regular = self._lift(self.problem.regulariser, takes_batch=False)(point)
            gradient = _gradient(pulled_back + regular.sum(), point)
            return self._accounted((losses + regular).detach(), gradient, self._size(batch))

        found = map_leaves(torch.Tensor.detach, g_hat)
        return found if each else map_leaves(lambda leaf: leaf.mean(self._lead), found), chain

    def move(self, x: Tree, direction: Tree, step_size: Weight) -> Tree:
        """Π_X(x − α u)."""
        moved = add_scaled(x, direction, -step_size)
        if unbounded(self.problem):
            return moved
        return self._lift(self.problem.project, takes_batch=False)(moved)

    def _each(self, x: Tree, batch: Batch) -> torch.Tensor:
        """F̂ + r for each ξ."""
        losses: torch.Tensor = self._lift(self._penalised)(x, batch)
        return losses

    def _penalised(self, x: Tree, batch: Batch) -> torch.Tensor:
        return self.estimator(self.problem, x, batch) + self.problem.regulariser(x).unsqueeze(-1)

    def _closed_form(self, x: Tree, batch: Batch) -> tuple[torch.Tensor, Tree]:
        return self.problem.closed_form(x, batch.xi, batch.eta)

    def _size(self, batch: Batch) -> int:
        return int(leaves(batch.xi)[0].shape[1 if self._lead else 0])

    def _accounted(self, losses: torch.Tensor, gradient: Tree, count: int) -> Tree:
        self.count(count)
        self.watch(losses, gradient)
        return shortened(gradient, self.clip, self._lead) if self.clip else gradient


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


def _vmap_over_grid(fn: Callable[..., Any], takes_batch: bool = True) -> Callable[..., Any]:
    # All grid points see the same samples: the batch has no grid axis.
    return vmap(vmap(fn), in_dims=(0, None) if takes_batch else 0)


def _vmap_over_one_grid_point(fn: Callable[..., Any], takes_batch: bool = True) -> Callable[..., Any]:
    over_clients = vmap(fn)

    def lifted(x: Tree, *batch: Batch) -> Tree:
        result = over_clients(map_leaves(lambda leaf: leaf.squeeze(0), x), *batch)
        return map_leaves(lambda leaf: leaf.unsqueeze(0), result)

    return lifted
