"""How ∇F is estimated from samples: what is drawn, and one loss for each ξ whose gradient is taken.

The estimators themselves are in `fedcso.estimators`; the paper's own, equation (4), is `plain` there.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from fedcso.core.costs import Costs
from fedcso.core.problem import Batch, Problem
from fedcso.core.tree import Tree, leaves, map_leaves


def sample(problem: Problem, data: Any, rng: torch.Generator, steps: int, b: int, m: int) -> Batch:
    """Samples for `steps` local steps of b outer and, for each of these, m inner samples."""
    xi = problem.sample_outer(data, rng, (steps, b))
    return Batch(xi, problem.sample_inner(data, rng, xi, m))


class Drawn(NamedTuple):
    """Samples for several local steps (the leading axis of all leaves), and how many there are."""

    batch: Batch
    costs: Costs


def draw_fixed_size(problem: Problem, data: Any, rng: torch.Generator, steps: int, b: int, m: int) -> Drawn:
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
    draw: Callable[[Problem, Any, torch.Generator, int, int, int], Drawn] = draw_fixed_size
    check: Callable[[int], None] = _any_size
    is_plain: bool = False
    """True for F̂ of equation (4) itself: a problem's closed form, broadcasting and tracking apply to it alone."""

    def __call__(self, problem: Problem, x: Tree, batch: Batch) -> torch.Tensor:
        """The losses."""
        return self.losses(problem, x, batch)


def blocks(batch: Batch, size: int) -> Batch:
    """The inner samples of each ξ cut into blocks of that size, each block with a copy of its ξ, in order."""
    b = leaves(batch.xi)[0].shape[0]
    inner = leaves(batch.eta)
    count = inner[0].shape[1] // size if inner else 1
    xi = map_leaves(lambda leaf: leaf.repeat_interleave(count, 0), batch.xi)
    eta = map_leaves(lambda leaf: leaf.expand(b, *leaf.shape[1:]).reshape(b * count, size, *leaf.shape[2:]), batch.eta)
    return Batch(xi, eta)
