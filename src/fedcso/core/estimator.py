"""The interface of a gradient estimator: which samples it draws, and the loss of each ξ whose gradient is taken.

The estimators are in `fedcso.estimators`; that of the paper, equation (4), is `fedcso.estimators.plain`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from fedcso.core.costs import Costs
from fedcso.core.problem import Batch, Problem
from fedcso.core.tree import Tree, leaves, map_leaves, stack


def sample(problem: Problem, data: Any, rng: torch.Generator, steps: int, b: int, m: int) -> Batch:
    """Draw the samples of `steps` local steps: b outer samples each, and m inner samples for each of those."""
    xi = problem.sample_outer(data, rng, (steps, b))
    return Batch(xi, problem.sample_inner(data, rng, xi, m))


class Drawn(NamedTuple):
    """The samples of several local steps (the leading axis of all leaves), and what they cost."""

    batch: Batch
    costs: Costs


def draw_fixed_size(problem: Problem, data: Any, rng: torch.Generator, steps: int, b: int, m: int) -> Drawn:
    """Draw the same number m of inner samples for every ξ."""
    batch = sample(problem, data, rng, steps, b, m)
    return Drawn(batch, _costs_of_fixed_size(problem, steps, b, m))


def _costs_of_fixed_size(problem: Problem, steps: int, b: int, m: int) -> Costs:
    return Costs(outer_samples=steps * b, inner_samples=steps * problem.inner_samples(b, m))


def draw_for_all(
    estimator: "Estimator",
    problem: Problem,
    clients: Sequence[Any],
    rngs: Sequence[torch.Generator],
    steps: int,
    b: int,
    m: int,
) -> tuple[Batch, list[Costs]]:
    """Draw the samples of several clients, each from its own stream, and stack them along axis 1, behind the steps."""
    if problem.sample_together is not None and estimator.draw is draw_fixed_size:
        together = problem.sample_together(clients, rngs, (steps, b), m)
        batch = map_leaves(lambda leaf: leaf.transpose(0, 1).contiguous(), together)
        return batch, [_costs_of_fixed_size(problem, steps, b, m)] * len(clients)
    drawn = [estimator.draw(problem, data, rng, steps, b, m) for data, rng in zip(clients, rngs, strict=True)]
    return stack([one.batch for one in drawn], axis=1), [one.costs for one in drawn]


def _accept_any(inner_batch: int) -> None:
    pass


@dataclass(frozen=True)
class Estimator:
    """How ∇F is estimated from samples. Decorate a function with `@Estimator` to make one.

    - `losses(problem, x, batch)` returns one loss for each ξ; their mean estimates F, and its gradient ∇F. Any
      algorithm can use any estimator, variance reduction included, because one batch can be evaluated at two points.
    - `draw(problem, data, rng, steps, b, m)` draws the samples and counts them. All randomness is drawn here, from the
      client's stream, and becomes part of the batch, so all engines agree.
    - `check(m)` raises `InvalidValue` for inner batch sizes that the estimator can't use.
    """

    losses: Callable[[Problem, Tree, Batch], torch.Tensor]
    draw: Callable[[Problem, Any, torch.Generator, int, int, int], Drawn] = draw_fixed_size
    check: Callable[[int], None] = _accept_any
    is_plain: bool = False
    """True for F̂ of equation (4); only then can a problem's closed form, broadcasting and tracking be used."""
    bias_order: int = 1
    """r: for a smooth f the bias ‖E∇F̂ − ∇F‖ falls like m⁻ʳ; 0 if more inner samples do not reduce it."""

    def __call__(self, problem: Problem, x: Tree, batch: Batch) -> torch.Tensor:
        """Return the losses."""
        return self.losses(problem, x, batch)


def split_into_blocks(batch: Batch, size: int) -> Batch:
    """Split the inner samples of each ξ into blocks of that size; each block gets a copy of its ξ, in order."""
    b = leaves(batch.xi)[0].shape[0]
    inner = leaves(batch.eta)
    count = inner[0].shape[1] // size if inner else 1
    xi = map_leaves(lambda leaf: leaf.repeat_interleave(count, 0), batch.xi)
    eta = map_leaves(lambda leaf: leaf.expand(b, *leaf.shape[1:]).reshape(b * count, size, *leaf.shape[2:]), batch.eta)
    return Batch(xi, eta)
