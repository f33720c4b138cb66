"""The estimate from two halves of the inner samples, to compare with the estimate from all of them.

    F̂(x; ξ, B) − ½ [ F̂(x; ξ, first half of B) + F̂(x; ξ, second half of B) ]

has the expectation E F̂_m − E F̂_{m/2}: the part of the bias that disappears when m/2 samples become m. All three terms
use the same ξ and the same η, so most of their noise cancels. MLMC sums such differences over levels, extrapolation
adds one to F̂_m, and the diagnosis estimates the bias from them.
"""

from typing import Any

import torch

from fedcso.core.errors import FedcsoError
from fedcso.core.estimator import Drawn, draw_fixed_size
from fedcso.core.problem import Batch, Problem
from fedcso.core.tree import Tree, leaves, map_leaves
from fedcso.estimators.plain import plain


def halves(batch: Batch) -> tuple[Batch, Batch]:
    """Split the inner samples of each ξ in two; of a single sample, both halves are the same."""
    first, second = (Batch(batch.xi, map_leaves(lambda leaf, i=i: leaf.chunk(2, 1)[i], batch.eta)) for i in (0, -1))
    return first, second


def mean_of_halves(problem: Problem, x: Tree, batch: Batch) -> torch.Tensor:
    """Return ½ [ F̂(first half) + F̂(second half) ] for each ξ."""
    first, second = halves(batch)
    return 0.5 * (plain(problem, x, first) + plain(problem, x, second))


def draw_all_samples(problem: Problem, data: Any, rng: torch.Generator, steps: int, b: int, m: int) -> Drawn:
    """Draw m inner samples for every ξ; raise `FedcsoError` if the problem draws fewer."""
    drawn = draw_fixed_size(problem, data, rng, steps, b, m)
    require_all_samples(drawn.batch.eta, m, axis=2)
    return drawn


def require_all_samples(eta: Tree, m: int, axis: int) -> None:
    """Raise `FedcsoError` unless all m inner samples are there; a problem may have drawn only their mean."""
    if any(leaf.shape[axis] != m for leaf in leaves(eta)):
        raise FedcsoError(
            f"this estimator splits the {m} inner samples of each outer sample, but the problem draws fewer; "
            "if it draws only their mean, set draw_mean to false"
        )
