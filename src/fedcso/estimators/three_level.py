"""Richardson extrapolation over three levels, which subtracts the parts of the bias that fall like 1/m and 1/m².

    (8/3) F̂(m samples) − 2 · mean of F̂(each half) + (1/3) · mean of F̂(each quarter)

If f is smooth enough, E∇F̂ = ∇F + c/m + d/m² + O(1/m³). The weights add up to 1, and the terms c (8/3 − 2·2 + 4/3)/m and
d (8/3 − 2·4 + 16/3)/m² vanish: the bias is of order 1/m³. All levels use the same samples, so the cost in samples stays
the same, and the variance grows with the weights. It pays off where `extrapolated` leaves a bias that matters, for m of
8 and more.
"""

import torch

from fedcso.core.errors import require
from fedcso.core.estimator import Estimator
from fedcso.core.problem import Batch, Problem
from fedcso.core.tree import Tree
from fedcso.estimators.halves import draw_all_samples, halves, mean_of_halves
from fedcso.estimators.plain import plain


def _losses(problem: Problem, x: Tree, batch: Batch) -> torch.Tensor:
    """Return 8/3 F̂(m) − 2 F̂(m/2) + 1/3 F̂(m/4) on the same samples: a bias of order 1/m³ for a smooth f."""
    first, second = halves(batch)
    quarters = 0.5 * (mean_of_halves(problem, x, first) + mean_of_halves(problem, x, second))
    return (8 * plain(problem, x, batch) - 6 * mean_of_halves(problem, x, batch) + quarters) / 3


def _check(m: int) -> None:
    require(
        "inner_batch",
        m,
        lambda value: value % 4 == 0,
        "a multiple of 4: the three_level estimator splits it into quarters",
    )


three_level = Estimator(_losses, draw_all_samples, _check, bias_order=3)
