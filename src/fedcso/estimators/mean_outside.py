"""The WRONG objective, kept to show what the mistake costs: the mean over η is outside f.

    (1/m) Σ_j f_ξ( g_{η_j}(x, ξ) )

Its bias does not fall with m: every η_j goes with a ξ of its own, as if each were the only one.
"""

import torch

from fedcso.core.estimator import Estimator, blocks
from fedcso.core.problem import Batch, Problem
from fedcso.core.tree import Tree, leaves
from fedcso.estimators.plain import plain


@Estimator
def mean_outside(problem: Problem, x: Tree, batch: Batch) -> torch.Tensor:
    """Return the mean of f over single η, for each ξ: a wrong objective, to see what the mistake costs."""
    singles = blocks(batch, 1)
    return plain(problem, x, singles).reshape(leaves(batch.xi)[0].shape[0], -1).mean(1)
