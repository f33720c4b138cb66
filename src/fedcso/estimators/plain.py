"""The estimator of equation (4), used by all methods of the paper.

    F̂(x; ξ, B) = f_ξ( (1/m) Σ_j g_{η_j}(x, ξ) ),     ∇F̂ = ( (1/m) Σ_j ∇g )ᵀ ∇f( (1/m) Σ_j g )

The mean over η is INSIDE f. The bias is at most L_g S_f σ_g / √m (Lemma A.2), and of order 1/m if f is twice
differentiable.
"""

import torch

from fedcso.core.estimator import Estimator
from fedcso.core.problem import Batch, Problem
from fedcso.core.tree import Tree


def losses(problem: Problem, x: Tree, batch: Batch) -> torch.Tensor:
    """Return f of the mean over η, for each ξ: equation (4), used by the paper's methods."""
    return problem.outer(problem.inner(x, batch.xi, batch.eta), batch.xi)


plain = Estimator(losses, is_plain=True)
