"""Multilevel Monte Carlo: the bias of m = 2^L inner samples at a fraction of their cost.

    H⁰ = ∇F̂ with one inner sample
    Hˡ = ∇F̂(2ˡ samples) − ½ [ ∇F̂(first half) + ∇F̂(second half) ],   the same ξ and η in all three

E H⁰ + E H¹ + … + E Hᴸ = E∇F̂ with 2ᴸ samples. The variance of Hˡ falls with l (like 2⁻²ˡ for a smooth f), so the high
levels need few samples:

- V-MLMC sums all levels and draws separate outer samples for each: ⌈b 2^(−3l/2)⌉ on level l. It pays off for b > 1.
- RT-MLMC draws ONE level for each ξ, with probability p_l ∝ 2^(−3l/2), and divides by p_l. It needs about two inner
  samples for each ξ, whatever L is, and has more variance because the level is random. The level is drawn from the
  client's stream and is part of the batch, so one batch can be evaluated at two points.

RT-MLMC repeats its samples until there are m, so that the batches of many clients can be stacked; this does not change
any mean. It therefore saves samples but no computation, whereas V-MLMC saves both.

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
from fedcso.estimators.halves import mean_of_halves, require_all_samples
from fedcso.estimators.plain import plain

DECAY = 1.5
"""Level l gets a share of 2^(−DECAY·l), in proportion to √(variance / cost): variance is 2^(−2l), cost is 2^l."""


def check(m: int) -> None:
    """Raise `InvalidValue` unless m is a power of 2: each level has twice the samples of the one before."""
    require("inner_batch", m, lambda value: value & (value - 1) == 0, "a power of 2 for multilevel estimators")


def top_level(m: int) -> int:
    """Return L, where m = 2^L."""
    return m.bit_length() - 1


# ------------------------------------------------------------------------------------------------ V-MLMC


def level_sizes(b: int, m: int) -> list[int]:
    """Return the number of outer samples of each level, at least one."""
    return [math.ceil(b * 2 ** (-DECAY * level)) for level in range(top_level(m) + 1)]


def _draw_all_levels(problem: Problem, data: Any, rng: torch.Generator, steps: int, b: int, m: int) -> Drawn:
    sizes = level_sizes(b, m)
    parts = [sample(problem, data, rng, steps, size, 2**level) for level, size in enumerate(sizes)]
    for level, part in enumerate(parts):
        require_all_samples(part.eta, 2**level, axis=2)
    inner = sum(problem.inner_samples(size, 2**level) for level, size in enumerate(sizes))
    batch = Batch(tuple(part.xi for part in parts), tuple(part.eta for part in parts))
    return Drawn(batch, Costs(outer_samples=steps * sum(sizes), inner_samples=steps * inner))


def _sum_of_levels(problem: Problem, x: Tree, batch: Batch) -> torch.Tensor:
    """Return Σ_l Hˡ, high levels from few outer samples (V-MLMC): the bias of m inner samples at a lower cost."""
    levels = []
    for level, (xi, eta) in enumerate(zip(batch.xi, batch.eta, strict=True)):
        part = Batch(xi, eta)
        losses = plain(problem, x, part)
        levels.append(losses - mean_of_halves(problem, x, part) if level else losses)
    total = sum(len(losses) for losses in levels)
    # Scaled so that the mean over all outer samples is the sum of the levels' means.
    return torch.cat([losses * (total / len(losses)) for losses in levels])


v_mlmc = Estimator(_sum_of_levels, _draw_all_levels, check)


# ----------------------------------------------------------------------------------------------- RT-MLMC


class OuterWithLevel(NamedTuple):
    """Outer samples ξ, with the level l that was drawn for each."""

    xi: Tree
    weight: torch.Tensor
    """1 / p_l."""
    coupled: torch.Tensor
    """1 if l > 0, where the mean of the halves is subtracted, else 0."""


def probabilities(m: int) -> torch.Tensor:
    """Return p_0, …, p_L."""
    shares = 2.0 ** (-DECAY * torch.arange(top_level(m) + 1, dtype=torch.float64))
    return shares / shares.sum()


def _draw_one_level(problem: Problem, data: Any, rng: torch.Generator, steps: int, b: int, m: int) -> Drawn:
    p = probabilities(m)
    level = torch.multinomial(p, steps * b, replacement=True, generator=rng)
    xi = problem.sample_outer(data, rng, (steps, b))
    # Shape (steps · b, 1), as batches of one outer sample, so that no two outer samples share their inner samples.
    single = map_leaves(lambda leaf: leaf.flatten(0, 1).unsqueeze(1), xi)
    positions = [(level == k).nonzero().squeeze(1) for k in range(len(p))]
    parts, inner = [], 0
    for k, where in enumerate(positions):
        if len(where):
            eta = problem.sample_inner(data, rng, index(single, where), 2**k)
            require_all_samples(eta, 2**k, axis=2)
            parts.append(map_leaves(lambda leaf: _repeat(leaf.squeeze(1), m), eta))
            inner += len(where) * problem.inner_samples(1, 2**k)
    original_order = torch.cat(positions).argsort()
    eta = map_leaves(lambda *some: torch.cat(some)[original_order].reshape(steps, b, *some[0].shape[1:]), *parts)
    outer = OuterWithLevel(xi, (1 / p)[level].reshape(steps, b), (level > 0).double().reshape(steps, b))
    return Drawn(Batch(outer, eta), Costs(outer_samples=steps * b, inner_samples=inner))


def _repeat(leaf: torch.Tensor, m: int) -> torch.Tensor:
    """Repeat (k, 2ˡ, …) to (k, m, …); each half of the samples fills one half of the result."""
    halves = leaf.chunk(2, 1)
    return torch.cat([half.repeat(1, m // len(halves) // half.shape[1], *[1] * (half.ndim - 2)) for half in halves], 1)


def _one_level(problem: Problem, x: Tree, batch: Batch) -> torch.Tensor:
    """Return Hˡ / p_l with a random level l for each ξ (RT-MLMC): the bias of m inner samples for about two."""
    outer: OuterWithLevel = batch.xi
    samples = Batch(outer.xi, batch.eta)
    losses = plain(problem, x, samples)
    subtracted = outer.coupled.to(losses) * mean_of_halves(problem, x, samples)
    return outer.weight.to(losses) * (losses - subtracted)


rt_mlmc = Estimator(_one_level, _draw_one_level, check)
