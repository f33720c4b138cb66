"""Gradients against differences of values: along a random direction for each part of x."""

import math
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import NamedTuple

import torch

from fedcso.checks.finding import Finding
from fedcso.checks.specimen import Specimen, difference, doubled, tolerance
from fedcso.core.oracle import Oracle
from fedcso.core.problem import Batch
from fedcso.core.streams import stream
from fedcso.core.tree import Tree, add_scaled, leaves, named_leaves, unflatten_like
from fedcso.estimators.plain import plain

Value = Callable[[Tree], torch.Tensor]

STEPS = tuple(10.0**-k for k in range(1, 9))
"""Steps of the differences, relative to the direction: small ones are rounded off, and large ones may pass kinks, of
which the adapted weights of a deep network have very many."""

MANY = 6
"""More leaves of x than this move together."""

NEAR = 0.02
"""The largest difference, relative to the slope, for the best of these steps."""


DERIVED = replace(plain, is_plain=False)
"""The plain estimator by automatic differentiation, even if the problem has a formula for its gradient."""


class Slope(NamedTuple):
    """The slope of a function along a direction within one part of x."""

    leaf: str
    by_gradient: float
    by_differences: float
    """The quotient of differences that is nearest to the slope by the gradient."""
    apart: float
    """The distance of the two, relative to the larger."""


def find_in_gradient(specimen: Specimen) -> Iterator[Finding]:
    """Compare automatic differentiation of outer(inner(x)) with differences."""
    x, batch = _precise(specimen)
    oracle = Oracle(specimen.problem, DERIVED)
    gradient = oracle.grad(x, batch)
    if not all(torch.isfinite(leaf).all() for leaf in leaves(gradient)):
        yield Finding(
            "the gradient is not finite, although the losses are: look for sqrt or a norm at 0, or torch.where"
        )
        return
    slopes = compare_slopes(lambda x: oracle.value(x, batch), x, gradient)
    # `ascend` turns the gradient of a dual variable round; that of all of x would be a mistake.
    turned = [one for one in slopes if one.apart > NEAR and is_turned(one)]
    turned = turned if len(turned) < len(slopes) else []
    for one in slopes:
        at = f" with respect to {one.leaf!r}" if one.leaf else ""
        if one.apart <= NEAR or one in turned:
            continue
        if one.by_gradient == 0:
            yield Finding(
                f"the gradient{at} is 0, but the loss changes with it: look for .detach(), .item(), .data, "
                "torch.no_grad or a new torch.tensor(…) on the way from x to the loss"
            )
        else:
            yield Finding(
                f"the gradient{at} differs from differences of the loss: a slope is {one.by_gradient:.3g}, by "
                f"differences {one.by_differences:.3g}, so look for .detach(), rounding or your own backward between x "
                "and the loss"
            )


def _precise(specimen: Specimen) -> tuple[Tree, Batch]:
    """Return the point and the samples in double precision, if the problem accepts it."""
    x, batch = doubled(specimen.x), doubled(specimen.batch)
    try:
        specimen.losses(x, batch)
    except RuntimeError:  # tensors of the problem itself have another precision
        return specimen.x, specimen.batch
    return x, batch


def find_in_closed_form(specimen: Specimen) -> Iterator[Finding]:
    """Compare a problem's formula for the gradient with automatic differentiation."""
    problem, batch, x = specimen.problem, specimen.batch, specimen.x
    assert problem.closed_form is not None  # otherwise the check does not apply
    value, gradient = problem.closed_form(x, batch.xi, batch.eta)
    derived = Oracle(problem, DERIVED).value_and_grad(x, batch)
    if (apart := difference((value, gradient), derived)) > tolerance(x):
        yield Finding(
            f"closed_form differs by {apart:.1%} from automatic differentiation of outer and inner, mean over the "
            "batch's ξ: correct the formula, or leave it out"
        )


def find_in_exact(specimen: Specimen) -> Iterator[Finding]:
    """Compare the gradient that `exact` returns with differences of its F."""
    exact = specimen.problem.exact
    assert exact is not None  # otherwise the check does not apply
    clients = list(specimen.task.seen)
    weights = [1.0] * len(clients)
    _, gradient = exact(specimen.x, clients, weights)
    for one in compare_slopes(lambda x: torch.as_tensor(exact(x, clients, weights)[0]), specimen.x, gradient):
        if one.apart > NEAR:
            yield Finding(
                f"the gradient that exact returns does not belong to its F: a slope is {one.by_gradient:.3g}, by "
                f"differences of F {one.by_differences:.3g}, so correct one of the two"
            )
            return


def compare_slopes(value: Value, x: Tree, gradient: Tree) -> list[Slope]:
    """Return the slopes along random directions by a gradient and by differences, one within each leaf of x.

    Of a network with many leaves, all move together first, and one by one only if these slopes differ.
    """
    names = [name for name, _ in named_leaves(x)]
    if len(names) > MANY:
        together = _slope(value, x, gradient, range(len(names)), "x")
        if together.apart <= NEAR:
            return [together]
    return [_slope(value, x, gradient, [number], name) for number, name in enumerate(names)]


def _slope(value: Value, x: Tree, gradient: Tree, moving: Collection[int], name: str) -> Slope:
    rng, parts = stream(0, 0, 2), leaves(x)
    chosen = [torch.randn(part.shape, generator=rng).to(part) * (k in moving) for k, part in enumerate(parts)]
    direction = unflatten_like(x, chosen)
    slopes = [(one.double() * two.double()).sum() for one, two in zip(leaves(gradient), chosen, strict=True)]
    expected = float(torch.stack(slopes).sum())
    nearest, apart = math.nan, math.inf
    with torch.no_grad():
        rounding = 10 * tolerance(x) ** 2 * max(abs(float(value(x))), 1e-3) / STEPS[1]
        for step in STEPS:
            ends = [float(value(add_scaled(x, direction, sign * step))) for sign in (1.0, -1.0)]
            quotient = (ends[0] - ends[1]) / (2 * step)
            distance = _relative(expected, quotient, rounding)
            if distance < apart:
                nearest, apart = quotient, distance
            if apart <= NEAR:
                break
    return Slope(name, expected, nearest, apart)


def _relative(one: float, two: float, rounding: float) -> float:
    """Return the relative distance of two slopes; 0 if it is due to rounding."""
    return 0.0 if abs(one - two) <= rounding else abs(one - two) / max(abs(one), abs(two))


def is_turned(slope: Slope) -> bool:
    """Return whether the slope by the gradient has the other sign, and the same size."""
    largest = max(abs(slope.by_gradient), abs(slope.by_differences))
    return abs(slope.by_gradient + slope.by_differences) <= NEAR * largest
