"""Inner samples for ∇g that are independent of those in ∇f, which is extrapolated (E-BSGD, E-BSpiderBoost).

    δ₁, δ₂ = means of g over the first and second m/4 samples,      J = mean of ∇g over the other m/2
    ∇F ≈ Jᵀ ( 2 ∇f((δ₁ + δ₂)/2) − ½ [ ∇f(δ₁) + ∇f(δ₂) ] )

Because J is independent of the rest, E Jᵀ∇f(ĝ) = E[∇g]ᵀ E ∇f(ĝ), and only ∇f is biased. If f is smooth enough, the
extrapolation leaves a bias of order 1/m²; if f is quadratic, ∇f is linear and no bias remains. The price is variance:
each factor sees half of the samples. With BSGD this is E-BSGD, with BSpiderBoost E-BSpiderBoost.

The gradient is that of ⟨D, ĝ(x)⟩ with D, the slope in brackets, held constant, and ĝ from the samples of J.

Reference: He, Kasiviswanathan, Debiasing Conditional Stochastic Optimization, NeurIPS 2023. The rule is written from
memory, and the division of the m samples is our own; orders of bias are tested.
"""

from collections.abc import Callable

import torch
from torch.func import grad

from fedcso.core.errors import require
from fedcso.core.estimator import Estimator
from fedcso.core.problem import Batch, Problem
from fedcso.core.tree import Tree, leaves, map_leaves
from fedcso.estimators.halves import draw_all_samples, halves


def _losses(problem: Problem, x: Tree, batch: Batch) -> torch.Tensor:
    """Return losses whose gradient takes ∇g on other samples than ∇f, which is extrapolated: a bias of order 1/m²."""
    for_slope, for_jacobian = halves(batch)
    fixed = map_leaves(torch.Tensor.detach, x)
    first, second = (
        map_leaves(torch.Tensor.detach, problem.inner(fixed, part.xi, part.eta)) for part in halves(for_slope)
    )
    middle = map_leaves(lambda p, q: 0.5 * (p + q), first, second)

    def extrapolate(function: Callable[[Tree], Tree]) -> Tree:
        found = [function(y) for y in (middle, first, second)]
        return map_leaves(_extrapolated, *found)

    slope = extrapolate(grad(lambda y: problem.outer(y, batch.xi).sum()))
    values: torch.Tensor = extrapolate(lambda y: problem.outer(y, batch.xi)).detach()
    g_hat = problem.inner(x, for_jacobian.xi, for_jacobian.eta)
    pairs = zip(leaves(slope), leaves(g_hat), strict=True)
    products = torch.stack([(d.detach() * value).reshape(len(d), -1).sum(1) for d, value in pairs]).sum(0)
    # A ĝ that all ξ share has one row, whose slope is the sum over ξ.
    share = len(products) / len(values)
    return values + share * (products - products.detach())


def _extrapolated(middle: torch.Tensor, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    return 2 * middle - 0.5 * (first + second)


def _check(m: int) -> None:
    require(
        "inner_batch",
        m,
        lambda value: value % 4 == 0,
        "a multiple of 4: the independent_jacobian estimator splits it into halves, and one of them again",
    )


independent_jacobian = Estimator(_losses, draw_all_samples, _check, bias_order=2)
