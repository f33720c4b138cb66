"""Sample average approximation: draw all samples once, and minimise their objective to the end.

    F̂_{nm}(x) = (1/N) Σ_c (1/n) Σ_i f_{ξ_i}( (1/m) Σ_j g_{η_ij}(x, ξ_i) ) + r(x)       n outer samples at each client c

This is a reference point and not a federated method: it needs all data in one place. Its minimiser x̂ has no
optimisation error, only that of the samples: noise, which falls with n, and bias, which falls with m alone. What a
stochastic method with the same m reaches in the long run can be compared with it.

The minimum is found by L-BFGS with exact gradients of F̂_{nm}.

Reference: Hu, Chen, He, Sample Complexity of Sample Average Approximation for Conditional Stochastic Optimization, SIAM
Journal on Optimization 2020. Its sample complexities could not be verified and are not used.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from fedcso.core.costs import Costs
from fedcso.core.errors import FedcsoError, require_count, require_positive
from fedcso.core.estimator import Estimator
from fedcso.core.oracle import Oracle
from fedcso.core.plan import Plan
from fedcso.core.problem import Batch, Problem, split_steps
from fedcso.core.streams import AVERAGE, START, stream
from fedcso.core.task import Task
from fedcso.core.tree import Tree, add_scaled, is_finite, leaves, map_leaves, unflatten_like, zeros_like
from fedcso.estimators.plain import plain


class Solution(NamedTuple):
    """The minimiser of a sample average, and how well it was found."""

    x: Tree
    value: float
    """F̂_{nm}(x)."""
    gradient_norm: float
    """The largest entry of |∇F̂_{nm}(x)|."""
    converged: bool
    """True if that is within the tolerance."""
    costs: Costs


def solve_saa(
    task: Task,
    outer: int,
    inner: int,
    seed: int = 0,
    estimator: Estimator = plain,
    tolerance: float = 1e-9,
    iterations: int = 1000,
) -> Solution:
    """Minimise the average over `outer` samples (n) at each client, with `inner` samples (m) for each of them.

    Clients have the task's weights. The start is that of a run with this seed; the samples are not. Raise
    `FedcsoError` for problems on a set X or with a dual variable, which L-BFGS can't solve.
    """
    require_count("outer", outer)
    require_count("inner", inner)
    require_positive("tolerance", tolerance)
    require_count("iterations", iterations)
    estimator.check(inner)
    problem, start = task.problem, task.starting_point(stream(seed, START, 0))
    _require_minimisation(problem, start)
    batches, shares, costs = [], [], Costs()
    for number, data in enumerate(task.clients):
        if problem.trains(data):
            drawn = estimator.draw(problem, data, stream(seed, AVERAGE, number), 1, outer, inner)
            batches += split_steps(drawn.batch, 1)
            shares.append(Plan(weights=task.weights).weight(problem, data))
            costs += drawn.costs
    return _minimise(Oracle(problem, estimator), start, batches, shares, tolerance, iterations, costs)


def _require_minimisation(problem: Problem, x: Tree) -> None:
    name = type(problem).__name__
    if problem.project is not None:
        raise FedcsoError(f"the sample average of {name} can't be solved: L-BFGS knows no set X to project onto")
    if isinstance(x, dict) and "dual" in x:
        raise FedcsoError(f"the sample average of {name} can't be solved: it is a min-max problem, not a minimisation")


def _minimise(
    oracle: Oracle,
    start: Tree,
    batches: Sequence[Batch],
    shares: Sequence[float],
    tolerance: float,
    iterations: int,
    costs: Costs,
) -> Solution:
    x = map_leaves(lambda leaf: leaf.clone().requires_grad_(), start)

    def evaluate() -> torch.Tensor:
        """Set the gradient of x, and return the value."""
        point = map_leaves(torch.Tensor.detach, x)
        value, gradient = torch.zeros((), dtype=torch.float64), zeros_like(point)
        for batch, share in zip(batches, shares, strict=True):
            part, slope = oracle.value_and_grad(point, batch)
            value = value + share / sum(shares) * part
            gradient = add_scaled(gradient, slope, share / sum(shares))
        if not (torch.isfinite(value) and is_finite(gradient)):
            raise FedcsoError("the sample average is not finite at a point that L-BFGS tried: start from another x_0")
        for variable, slope in zip(leaves(x), leaves(gradient), strict=True):
            variable.grad = slope
        return value

    search: Any = torch.optim.LBFGS(
        leaves(x),
        max_iter=iterations,
        max_eval=10 * iterations,
        tolerance_grad=tolerance,
        tolerance_change=0.0,
        line_search_fn="strong_wolfe",
    )
    search.step(evaluate)
    value = float(evaluate())
    steepest = max(float(leaf.grad.abs().max()) for leaf in leaves(x) if leaf.grad is not None)
    found = unflatten_like(x, (leaf.detach() for leaf in leaves(x)))
    return Solution(found, value, steepest, steepest <= tolerance, costs + oracle.costs)
