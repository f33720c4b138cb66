"""Nested halves: what the same inner samples say in two portions instead of one.

    F̂(x; ξ, B) − ½ [ F̂(x; ξ, first half of B) + F̂(x; ξ, second half of B) ]

has the expectation F̂_m − F̂_{m/2}: how much of the bias goes away when m/2 becomes m. All three use the
same ξ and the same η, so most of their noise cancels. MLMC adds such differences up, extrapolation
subtracts one too many, the diagnosis measures them.
"""

import torch

from fedcso.core.errors import FedcsoError
from fedcso.core.problem import Batch, Problem
from fedcso.core.tree import Tree, leaves, map_leaves
from fedcso.estimators.plain import plain


def in_halves(problem: Problem, x: Tree, batch: Batch) -> torch.Tensor:
    """½ [ F̂(first half) + F̂(second half) ] for each ξ."""
    first, second = (Batch(batch.xi, map_leaves(lambda leaf, i=i: leaf.chunk(2, 1)[i], batch.eta)) for i in (0, -1))
    return 0.5 * (plain(problem, x, first) + plain(problem, x, second))


def require_every(eta: Tree, m: int, axis: int) -> None:
    """Refuse inner samples that can't be divided, because the problem draws only their mean."""
    if any(leaf.shape[axis] != m for leaf in leaves(eta)):
        raise FedcsoError(
            f"this estimator divides the {m} inner samples of an outer one, but the problem draws fewer "
            "(only their mean, perhaps: set draw_mean to false)"
        )
