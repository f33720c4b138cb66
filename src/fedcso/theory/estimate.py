"""Estimate the constants of Assumptions 1–3 from samples, for problems whose constants are not known exactly.

Each estimate is a mean over random (ξ, η) and over points on a sphere around x_0, with the half-width of its 95 %
interval. The assumptions are about the worst point of the whole ball, which samples can't find. The estimates describe
a typical run instead, and settings prescribed from them are somewhat too optimistic.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from fedcso.core.constants import SYMBOLS, Constants
from fedcso.core.errors import InvalidValue, require_count, require_positive
from fedcso.core.estimator import sample, split_into_blocks
from fedcso.core.intervals import mean_and_interval
from fedcso.core.problem import Batch, Problem, split_steps
from fedcso.core.streams import ASSUMPTIONS, stream
from fedcso.core.tree import Tree, add_scaled, leaves, map_leaves, norm, subtract, unflatten_like
from fedcso.estimators.plain import plain

POWER_STEPS = 6
"""Iterations of the power method for the largest singular value of a Jacobian."""


class Estimated(NamedTuple):
    """Constants, and the half-widths of their 95 % intervals by name (0 for constants that are known exactly)."""

    constants: Constants
    half_widths: dict[str, float]


def find_constants(
    problem: Problem,
    x: Tree,
    clients: Sequence[Any],
    radius: float | None = None,
    lowest: float = 0.0,
    samples: int = 100,
    seed: int = 0,
) -> Estimated:
    """Return the exact constants if the problem provides them, else estimates.

    `radius` is that of the ball around x which the iterates do not leave, and `lowest` is F* or a lower bound of it.
    """
    if problem.constants is not None:
        return Estimated(problem.constants(x, clients, radius), dict.fromkeys(SYMBOLS, 0.0))
    return estimate(problem, x, clients, 1.0 if radius is None else radius, lowest, samples, seed)


def estimate(
    problem: Problem,
    x: Tree,
    clients: Sequence[Any],
    radius: float = 1.0,
    lowest: float = 0.0,
    samples: int = 100,
    seed: int = 0,
    inner_batch: int = 16,
) -> Estimated:
    """Estimate the constants from `samples` outer samples, taken from the clients in turn.

    Each has `inner_batch` inner samples and a random point at distance `radius` from x. Raise `InvalidValue` if
    `lowest` is not below F(x).
    """
    require_positive("radius", radius)
    require_count("samples", samples, least=2)
    require_count("inner_batch", inner_batch, least=2)
    rng = stream(seed, ASSUMPTIONS, 0)
    training = [data for data in clients if problem.trains(data)]
    seen: dict[str, list[float]] = {name: [] for name in SYMBOLS}
    for number in range(samples):
        (batch,) = split_steps(sample(problem, training[number % len(training)], rng, 1, 1, inner_batch), 1)
        other = add_scaled(x, _random_direction(x, rng), radius)
        for name, value in _estimate_from(problem, x, other, batch, rng).items():
            seen[name].append(value)
    values: dict[str, Any] = {}
    half_widths: dict[str, float] = {}
    for name, numbers in seen.items():
        values[name], half_widths[name] = mean_and_interval(numbers)
        if name in _SQUARES:
            values[name] **= 0.5
            half_widths[name] /= max(2 * values[name], torch.finfo(torch.float64).tiny)
    values["gap"] -= lowest
    if values["gap"] <= 0:
        raise InvalidValue("lowest", lowest, f"below F(x_0), which is about {values['gap'] + lowest:.4g}")
    return Estimated(Constants(**values), half_widths)


_SQUARES = frozenset({"outer_slope", "inner_slope", "inner_noise"})
"""Constants that are roots of expectations: their squares are averaged."""


def _estimate_from(problem: Problem, x: Tree, other: Tree, batch: Batch, rng: torch.Generator) -> dict[str, float]:
    """Return each constant as estimated from a single ξ; those in `_SQUARES` are squared."""
    single = Batch(batch.xi, map_leaves(lambda leaf: leaf[:, :1], batch.eta))

    def inner(point: Tree, some: Batch = single) -> Tree:
        return problem.inner(point, some.xi, some.eta)

    def outer_gradient(y: Tree) -> Tree:
        point = _variable(y)
        value = problem.outer(point, batch.xi).sum()
        return unflatten_like(point, torch.autograd.grad(value, leaves(point), materialize_grads=True))

    values = map_leaves(torch.Tensor.detach, inner(_variable(other), split_into_blocks(batch, 1)))
    variances = [leaf.var(0).sum() if len(leaf) > 1 else leaf.new_zeros(()) for leaf in leaves(values)]
    at_x, at_other = (map_leaves(torch.Tensor.detach, inner(_variable(point), batch)) for point in (x, other))
    change = float(norm(subtract(outer_gradient(at_other), outer_gradient(at_x))))
    distance = float(norm(subtract(at_other, at_x)))
    start = _variable(x)
    value = plain(problem, start, batch).sum()
    if problem.regulariser is not None:
        value = value + problem.regulariser(start)
    return {
        "outer_smoothness": change / distance if distance else 0.0,
        "outer_slope": float(norm(outer_gradient(at_other))) ** 2,
        "inner_smoothness": _largest_singular_value(inner, [other, x], rng) / float(norm(subtract(other, x))),
        "inner_slope": _largest_singular_value(inner, [other], rng) ** 2,
        "inner_noise": float(sum(variances)),
        "gap": float(value.detach()),
    }


def _largest_singular_value(g: Callable[[Tree], Tree], points: Sequence[Tree], rng: torch.Generator) -> float:
    """Return ‖∇g‖ at one point, or ‖∇g(first) − ∇g(second)‖ for two, by the power method.

    J w is computed as the derivative of v ↦ Jᵀv along w.
    """
    variables = [_variable(point) for point in points]
    outputs = [leaves(g(variable)) for variable in variables]
    v = [torch.randn(leaf.shape, generator=rng, dtype=leaf.dtype).to(leaf.device) for leaf in outputs[0]]
    size = 0.0
    for _ in range(POWER_STEPS):
        length = float(norm(v))
        if not length:
            return 0.0
        v = [(leaf / length).requires_grad_() for leaf in v]
        pulled = [
            torch.autograd.grad(output, leaves(variable), v, create_graph=True, materialize_grads=True)
            for output, variable in zip(outputs, variables, strict=True)
        ]
        transposed = list(pulled[0]) if len(pulled) == 1 else [a - b for a, b in zip(*pulled, strict=True)]
        direction = [leaf.detach() for leaf in transposed]
        size = float(norm(direction))
        if not any(leaf.requires_grad for leaf in transposed):
            return size
        v = list(torch.autograd.grad(transposed, v, direction, materialize_grads=True))
    return size


def _random_direction(x: Tree, rng: torch.Generator) -> Tree:
    """Return a random direction of norm 1, shaped like x."""
    drawn = map_leaves(lambda leaf: torch.randn(leaf.shape, generator=rng, dtype=leaf.dtype).to(leaf.device), x)
    length = norm(drawn)
    return map_leaves(lambda leaf: leaf / length, drawn)


def _variable(x: Tree) -> Tree:
    return map_leaves(lambda leaf: leaf.detach().requires_grad_(), x)
