"""Shapes of what a problem returns: x_0, ξ and η, ĝ, and the losses."""

from collections.abc import Iterator
from typing import Any

import torch

from fedcso.checks.finding import Finding
from fedcso.checks.specimen import INNER, OUTER, STEPS, Specimen, is_tree
from fedcso.core.streams import START, stream
from fedcso.core.tree import Tree, leaves, named_leaves
from fedcso.core.user_errors import describe_shapes

TREE = "a tensor, or a dict, list or tuple of tensors"


def find_in_start(specimen: Specimen) -> Iterator[Finding]:
    """Check x_0: a finite point of real numbers."""
    x = specimen.problem.init(stream(0, START, 0))
    if not is_tree(x):
        yield Finding(f"init returns a {type(x).__name__} where {TREE} is needed: return tensors")
        return
    for name, leaf in named_leaves(x):
        at = f" at {name!r}" if name else ""
        if not leaf.is_floating_point():
            yield Finding(
                f"init returns {leaf.dtype}{at}, which has no gradient: return real numbers, as in torch.zeros(2)"
            )
        elif not torch.isfinite(leaf).all():
            yield Finding(f"init returns numbers that are not finite{at}: start from a finite x_0")


def find_in_samples(specimen: Specimen) -> Iterator[Finding]:
    """Check the leading axes of ξ and η."""
    problem, data, shape = specimen.problem, specimen.data, (STEPS, OUTER)
    xi = problem.sample_outer(data, stream(0, 0, 0), shape)
    yield from _not_tree("sample_outer", xi)
    if not is_tree(xi):
        return
    for leaf in leaves(xi):
        if leaf.shape[:2] != shape:
            yield Finding(
                f"sample_outer returns shape {tuple(leaf.shape)} for shape = {shape}: its first axes must be {shape}"
            )
            return
    sizes = (2, INNER)
    drawn = {m: problem.sample_inner(data, stream(0, 0, 1), xi, m) for m in sizes}
    yield from _not_tree("sample_inner", drawn[INNER])
    if not all(map(is_tree, drawn.values())):
        return
    for few, many in zip(*(leaves(eta) for eta in drawn.values()), strict=True):
        if many.ndim < 3 or many.shape[:2] not in ((STEPS, OUTER), (STEPS, 1)):
            yield Finding(
                f"sample_inner returns shape {tuple(many.shape)} for ξ with axes {shape} and m = {INNER}: its first "
                f"axes must be {(*shape, INNER)}, or {(STEPS, 1, INNER)} if all ξ share their inner samples"
            )
            return
        counts = [few.shape[2], many.shape[2]]
        if counts != [min(m, counts[1]) for m in sizes]:  # fewer than m only if the data have no more
            yield Finding(
                f"sample_inner returns {counts[1]} inner samples of each ξ for m = {INNER}, and {counts[0]} for m = "
                f"{sizes[0]}: return exactly m, on the axis after that of ξ"
            )
            return


def find_in_inner(specimen: Specimen) -> Iterator[Finding]:
    """Check that ĝ has one value for each ξ, whatever m is."""
    batch, few = specimen.batch, specimen.draw(inner=2)
    y, y_few = (specimen.problem.inner(specimen.x, one.xi, one.eta) for one in (batch, few))
    yield from _not_tree("inner", y)
    if not is_tree(y):
        return
    remedy = "take the mean over the inner samples, the second axis of eta, as in eta.mean(1)"
    for leaf in leaves(y):
        if not leaf.ndim or leaf.shape[0] not in (OUTER, 1):
            yield Finding(
                f"inner returns shape {tuple(leaf.shape)} for {OUTER} outer and {INNER} inner samples, where the first "
                f"axis must be {OUTER} (or 1, if it is the same for all ξ): {remedy}"
            )
            return
    if describe_shapes(y) != describe_shapes(y_few):
        yield Finding(
            f"the shape that inner returns depends on m, {describe_shapes(y)} for m = {INNER} and "
            f"{describe_shapes(y_few)} for m = 2: {remedy}"
        )


def find_in_outer(specimen: Specimen) -> Iterator[Finding]:
    """Check that there is one loss for each ξ."""
    losses: Any = specimen.losses(specimen.x, specimen.batch)  # whatever a user's function returns
    if not isinstance(losses, torch.Tensor):
        yield Finding(f"outer returns a {type(losses).__name__} where a tensor with one loss for each ξ is needed")
    elif not losses.ndim:
        yield Finding(
            f"outer returns a single number for {OUTER} outer samples: return one loss for each ξ, without taking "
            "their mean or sum"
        )
    elif losses.shape != (OUTER,):
        yield Finding(
            f"outer returns shape {tuple(losses.shape)} for {OUTER} outer samples: return one loss for each ξ, shape "
            f"({OUTER},)"
        )


def find_non_finite(specimen: Specimen) -> Iterator[Finding]:
    """Check that losses are finite, at x_0 and near it."""
    for where, x in {"x_0": specimen.task.starting_point(stream(0, START, 0)), "a point near x_0": specimen.x}.items():
        y = specimen.problem.inner(x, specimen.batch.xi, specimen.batch.eta)
        values = {"inner": leaves(y), "outer": [specimen.problem.outer(y, specimen.batch.xi)]}
        for function, found in values.items():
            if not all(torch.isfinite(leaf).all() for leaf in found):
                yield Finding(
                    f"{function} returns numbers that are not finite at {where}: look for a division by 0 or a log of 0"
                )
                return


def _not_tree(function: str, value: Tree) -> Iterator[Finding]:
    if not is_tree(value):
        yield Finding(f"{function} returns a {type(value).__name__} where {TREE} is needed: return tensors")
