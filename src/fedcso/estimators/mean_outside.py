"""The mean over η taken OUTSIDE f: a wrong objective, included to show what this mistake costs.

    (1/m) Σ_j f_ξ( g_{η_j}(x, ξ) )

Its bias does not fall with m, because every η_j is used alone, as if m were 1.
"""

import torch

from fedcso.core.estimator import Estimator, split_into_blocks
from fedcso.core.problem import Batch, Problem
from fedcso.core.tree import Tree, leaves
from fedcso.estimators.plain import plain


def _losses(problem: Problem, x: Tree, batch: Batch) -> torch.Tensor:
    """Return the mean over η of f, for each ξ: a wrong objective, to show what this mistake costs."""
    singles = split_into_blocks(batch, 1)
    return plain(problem, x, singles).reshape(leaves(batch.xi)[0].shape[0], -1).mean(1)


mean_outside = Estimator(_losses, bias_order=0)
