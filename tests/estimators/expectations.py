"""Expectations of estimators without sampling error: all that an estimator can draw, with the probability of each.

Estimators split the m inner samples of a ξ into halves and quarters, so only what each quarter contains matters: with
two equally likely values, the number of the first one among m/4.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations_with_replacement, product
from typing import NamedTuple

import torch

from fedcso.core.estimator import Estimator
from fedcso.core.problem import Batch, Problem
from fedcso.core.tree import Tree, leaves, map_leaves
from fedcso.estimators.mlmc import OuterWithLevel, probabilities, top_level


class Block(NamedTuple):
    """All that a block of inner samples of each ξ can be."""

    eta: Tree
    """Leaves (ξ, patterns, samples, …)."""
    weights: torch.Tensor
    """The probability of each pattern."""


@dataclass(frozen=True)
class Known:
    """A problem at a point, with all of its ξ and a way to list all blocks of inner samples."""

    problem: Problem
    x: Tree
    xi: Tree
    """All outer samples, leaves (ξ, …)."""
    outer_weights: torch.Tensor
    """Their probabilities."""
    block: Callable[[int], Block]
    """Lists all blocks of some number of inner samples."""
    exact: Tree
    """∇F by the problem's own formula."""
    agrees_to: float = 1e-12
    """How well the listed samples represent those of the problem: the error of ∇F in proportion to its norm."""
    of: type[Problem] | None = None
    """The problem that this one is a form of, if it is not `problem` itself."""


def finite(eta: Tree, weights: torch.Tensor) -> Callable[[int], Block]:
    """Return the blocks of inner samples that have finitely many values, (ξ, values, …), with these probabilities."""

    def block(size: int) -> Block:
        patterns = list(combinations_with_replacement(range(len(weights)), size))
        counts = torch.tensor([[pattern.count(k) for k in range(len(weights))] for pattern in patterns])
        orders = [math.factorial(size) / math.prod(math.factorial(k) for k in some) for some in counts.tolist()]
        chance = torch.tensor(orders, dtype=torch.float64) * (weights**counts).prod(1)
        return Block(map_leaves(lambda leaf: leaf[:, torch.tensor(patterns)], eta), chance)

    return block


def expected_gradient(name: str, estimator: Estimator, known: Known, m: int) -> torch.Tensor:
    """Return E∇F̂ with m inner samples, as a vector."""
    batch, weights = _DRAWN.get(name, _by_quarters)(known, m)
    return _gradient(known, lambda x: (weights * estimator(known.problem, x, batch)).sum())


def true_gradient(known: Known) -> torch.Tensor:
    """Return ∇F, with the mean over all inner samples inside f."""
    eta, weights = known.block(1)

    def value(x: Tree) -> torch.Tensor:
        each = [
            known.problem.inner(x, known.xi, map_leaves(lambda leaf, k=k: leaf[:, k], eta)) for k in range(len(weights))
        ]
        mean = map_leaves(lambda *some: sum(w * one for w, one in zip(weights, some, strict=True)), *each)
        return (known.outer_weights * known.problem.outer(mean, known.xi)).sum()

    return _gradient(known, value)


def vector(tree: Tree) -> torch.Tensor:
    """Return all leaves in one vector."""
    return torch.cat([leaf.detach().reshape(-1) for leaf in leaves(tree)])


def _gradient(known: Known, value: Callable[[Tree], torch.Tensor]) -> torch.Tensor:
    point = map_leaves(lambda leaf: leaf.clone().requires_grad_(), known.x)
    total = value(point)
    if known.problem.regulariser is not None:
        total = total + known.problem.regulariser(point)
    return torch.cat([part.reshape(-1) for part in torch.autograd.grad(total, leaves(point))])


Drawn = tuple[Batch, torch.Tensor]
"""A batch of all that can be drawn, and the probabilities of its rows."""


def _of_blocks(known: Known, number: int, size: int) -> Drawn:
    """Return all that so many independent blocks of each ξ can be, in one batch."""
    eta, weights = known.block(size)
    choices = torch.tensor(list(product(range(len(weights)), repeat=number)))
    rows = len(choices)
    xi = map_leaves(lambda leaf: leaf.repeat_interleave(rows, 0), known.xi)
    joined = map_leaves(lambda leaf: leaf[:, choices].flatten(2, 3).flatten(0, 1), eta)
    return Batch(xi, joined), torch.outer(known.outer_weights, weights[choices].prod(1)).flatten()


def _by_quarters(known: Known, m: int) -> Drawn:
    return _of_blocks(known, 4, m // 4)


def _level(known: Known, level: int) -> Drawn:
    return _of_blocks(known, 2, 2 ** (level - 1)) if level else _of_blocks(known, 1, 1)


def _all_levels(known: Known, m: int) -> Drawn:
    """V-MLMC weights the levels so that the mean over all rows is the sum of the levels' means."""
    levels = [_level(known, level) for level in range(top_level(m) + 1)]
    total = sum(len(weights) for _, weights in levels)
    batch = Batch(tuple(part.xi for part, _ in levels), tuple(part.eta for part, _ in levels))
    return batch, torch.cat([weights * len(weights) / total for _, weights in levels])


def _one_level(known: Known, m: int) -> Drawn:
    """RT-MLMC draws level l with probability p_l, and repeats its samples."""
    chances = probabilities(m)
    batches, weights = [], []
    for level, chance in enumerate(chances):
        part, own = _level(known, level)
        rows = len(own)
        eta = map_leaves(lambda leaf: leaf.repeat_interleave(m // leaf.shape[1], 1), part.eta)
        outer = OuterWithLevel(part.xi, (1 / chance).expand(rows), torch.full((rows,), float(level > 0)))
        batches.append(Batch(outer, eta))
        weights.append(own * chance)
    return map_leaves(lambda *some: torch.cat(some), *batches), torch.cat(weights)


def _each_alone(known: Known, m: int) -> Drawn:
    """The mean outside f depends on one sample at a time, so all m may as well be the same one."""
    batch, weights = _of_blocks(known, 1, 1)
    return Batch(batch.xi, map_leaves(lambda leaf: leaf.repeat_interleave(m, 1), batch.eta)), weights


_DRAWN: dict[str, Callable[[Known, int], Drawn]] = {
    "v_mlmc": _all_levels,
    "rt_mlmc": _one_level,
    "mean_outside": _each_alone,
}
"""Estimators that draw something else than m samples of which the quarters matter."""
