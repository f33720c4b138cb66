"""Multilevel Monte Carlo: the bias of m = 2^L inner samples at a fraction of their cost.

    H⁰ = ∇F̂ with one inner sample
    Hˡ = ∇F̂(2ˡ samples) − ½ [ ∇F̂(first half) + ∇F̂(second half) ],   the same ξ and η in all three

E H⁰ + E H¹ + … + E Hᴸ = E∇F̂ with 2ᴸ samples, and the higher the level the smaller its variance (2⁻²ˡ for a smooth
f), so that few samples will do there:

- V-MLMC adds up all levels, each with outer samples of its own: ⌈b 2^(−3l/2)⌉ on level l. It needs b above 1 to pay.
- RT-MLMC draws ONE level for each ξ, with p_l ∝ 2^(−3l/2), and divides by p_l: about two inner samples on average,
  whatever L; more variance, for chance decides which level is seen. The level is drawn from the client's own stream
  and is part of the batch, so that one batch can be looked at from two points.

So that batches of many clients can be stacked, RT-MLMC repeats what it has drawn until there are m: means do not
change. It saves samples; V-MLMC saves computing as well.

Reference: Hu, Chen, He, On the Bias-Variance-Cost Tradeoff of Stochastic Optimization, NeurIPS 2021.
"""

import math
from typing import Any, NamedTuple

import torch

from fedcso.core.costs import Costs
from fedcso.core.errors import require
from fedcso.core.estimator import Drawn, Estimator, sample
from fedcso.core.problem import Batch, Problem
from fedcso.core.tree import Tree, index, map_leaves
from fedcso.estimators.halves import in_halves, require_every
from fedcso.estimators.plain import plain

DECAY = 1.5
"""Level l gets a share of 2^(−DECAY·l): between the decay of its variance, 2, and the growth of its cost, −1."""


def check(m: int) -> None:
    """Levels double the number of samples."""
    require("inner_batch", m, lambda value: value & (value - 1) == 0, "a power of 2 for multilevel estimators")


def top_level(m: int) -> int:
    """L, where m = 2^L."""
    return m.bit_length() - 1


# ------------------------------------------------------------------------------------------------ V-MLMC


def level_sizes(b: int, m: int) -> list[int]:
    """Outer samples of each level, at least one."""
    return [math.ceil(b * 2 ** (-DECAY * level)) for level in range(top_level(m) + 1)]


def _draw_all_levels(problem: Problem, data: Any, rng: torch.Generator, steps: int, b: int, m: int) -> Drawn:
    sizes = level_sizes(b, m)
    parts = [sample(problem, data, rng, steps, size, 2**level) for level, size in enumerate(sizes)]
    for level, part in enumerate(parts):
        require_every(part.eta, 2**level, axis=2)
    inner = sum(problem.inner_samples(size, 2**level) for level, size in enumerate(sizes))
    batch = Batch(tuple(part.xi for part in parts), tuple(part.eta for part in parts))
    return Drawn(batch, Costs(outer_samples=steps * sum(sizes), inner_samples=steps * inner))


def _sum_of_levels(problem: Problem, x: Tree, batch: Batch) -> torch.Tensor:
    """Return Σ_l Hˡ, each level from few outer samples (V-MLMC): the bias of m inner samples for fewer."""
    levels = []
    for level, (xi, eta) in enumerate(zip(batch.xi, batch.eta, strict=True)):
        part = Batch(xi, eta)
        losses = plain(problem, x, part)
        levels.append(losses - in_halves(problem, x, part) if level else losses)
    total = sum(len(losses) for losses in levels)
    # The mean of all is then the sum of the levels' own means.
    return torch.cat([losses * (total / len(losses)) for losses in levels])


v_mlmc = Estimator(_sum_of_levels, _draw_all_levels, check)


# ----------------------------------------------------------------------------------------------- RT-MLMC


class Randomised(NamedTuple):
    """ξ with the level that was drawn for each."""

    xi: Tree
    weight: torch.Tensor
    """1 / p_l."""
    coupled: torch.Tensor
    """1 where l > 0 and the halves are to be subtracted, else 0."""


def probabilities(m: int) -> torch.Tensor:
    """p_0..p_L."""
    shares = 2.0 ** (-DECAY * torch.arange(top_level(m) + 1, dtype=torch.float64))
    return shares / shares.sum()


def _draw_one_level(problem: Problem, data: Any, rng: torch.Generator, steps: int, b: int, m: int) -> Drawn:
    p = probabilities(m)
    level = torch.multinomial(p, steps * b, replacement=True, generator=rng)
    xi = problem.sample_outer(data, rng, (steps, b))
    # As (steps · b, 1): one outer sample at a time, so that none shares its inner samples with another.
    alone = map_leaves(lambda leaf: leaf.flatten(0, 1).unsqueeze(1), xi)
    where = [(level == one).nonzero().squeeze(1) for one in range(len(p))]
    parts, inner = [], 0
    for one, places in enumerate(where):
        if len(places):
            eta = problem.sample_inner(data, rng, index(alone, places), 2**one)
            require_every(eta, 2**one, axis=2)
            parts.append(map_leaves(lambda leaf: _repeated(leaf.squeeze(1), m), eta))
            inner += len(places) * problem.inner_samples(1, 2**one)
    back = torch.cat(where).argsort()
    eta = map_leaves(lambda *some: torch.cat(some)[back].reshape(steps, b, *some[0].shape[1:]), *parts)
    drawn = Randomised(xi, (1 / p)[level].reshape(steps, b), (level > 0).double().reshape(steps, b))
    return Drawn(Batch(drawn, eta), Costs(outer_samples=steps * b, inner_samples=inner))


def _repeated(leaf: torch.Tensor, m: int) -> torch.Tensor:
    """(k, 2ˡ, …) as (k, m, …): the first half of the samples fills the first half, the second the second."""
    halves = leaf.chunk(2, 1)
    return torch.cat([half.repeat(1, m // len(halves) // half.shape[1], *[1] * (half.ndim - 2)) for half in halves], 1)


def _one_level(problem: Problem, x: Tree, batch: Batch) -> torch.Tensor:
    """Return Hˡ / p_l with a random level l for each ξ (RT-MLMC): the bias of m inner samples for about two."""
    drawn: Randomised = batch.xi
    samples = Batch(drawn.xi, batch.eta)
    losses = plain(problem, x, samples)
    difference = drawn.coupled.to(losses) * in_halves(problem, x, samples)
    return drawn.weight.to(losses) * (losses - difference)


rt_mlmc = Estimator(_one_level, _draw_one_level, check)
