"""Is ĝ the mean over the inner samples, and does each ξ stand for itself?"""

from collections.abc import Iterator

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from fedcso.checks.finding import Finding, remark
from fedcso.checks.specimen import INNER, OUTER, Specimen, difference, tolerance
from fedcso.core.problem import Adapting, Batch
from fedcso.core.tree import Tree, leaves, map_leaves

MANY = 256
"""So many inner samples, of so many ξ, show whether a difference disappears."""
SEVERAL = 16
DISAPPEARS = 1 / 12
"""What falls like 1/m is 64 times smaller with MANY inner samples; what falls like 1/√m only 8 times."""


def find_mean_elsewhere(specimen: Specimen) -> Iterator[Finding]:
    """Compare ĝ of m inner samples with the mean of ĝ of their two halves, which is the same for a mean."""
    problem, eta = specimen.problem, specimen.batch.eta
    if any(leaf.shape[1] != INNER for leaf in leaves(eta)) or not leaves(eta):
        return  # the problem draws the mean at once, or no inner samples
    if isinstance(problem, Adapting) and problem.inner_steps:
        return  # g is steps with all m samples, which may be normalised together
    if _apart_from_halves(specimen, specimen.batch) <= tolerance(specimen.x):
        return
    few, many = (_apart_from_halves(specimen, specimen.draw(m, SEVERAL)) for m in (INNER, MANY))
    differs = f"ĝ of {INNER} inner samples differs by {few:.0%} from the mean over their two halves"
    if many > DISAPPEARS * few:
        yield Finding(
            f"inner is not a mean over the inner samples: {differs}, and of {MANY} still by {many:.0%}, so return "
            "(1/m) Σ_j g(x, ξ, η_j)"
        )
    else:
        yield remark(
            f"{differs}, which disappears with more of them: if it is no constant term but something that is not "
            "linear, put it into outer, because methods that track ĝ need a mean"
        )


def _apart_from_halves(specimen: Specimen, batch: Batch) -> float:
    """Return how far ĝ is from the mean over the two halves of the inner samples, relative to its size."""
    halves = [map_leaves(lambda leaf, part=part: leaf.chunk(2, 1)[part], batch.eta) for part in (0, 1)]
    with torch.no_grad():
        whole, first, second = (specimen.problem.inner(specimen.x, batch.xi, eta) for eta in (batch.eta, *halves))
    mean = map_leaves(lambda a, b: (a + b) / 2, first, second)
    apart = map_leaves(lambda a, b: (a - b).abs().mean(), whole, mean)
    return float(sum(leaves(apart)) / max(sum(float(leaf.abs().mean()) for leaf in leaves(whole)), 1e-12))


def find_mixed(specimen: Specimen) -> Iterator[Finding]:
    """Compare ĝ and the loss of each ξ in a batch with those of this ξ alone."""
    problem, batch = specimen.problem, specimen.batch
    y = problem.inner(specimen.x, batch.xi, batch.eta)
    losses = problem.outer(y, batch.xi)
    for number in range(OUTER):
        xi, eta = (_one(tree, number) for tree in batch)
        alone = problem.inner(specimen.x, xi, eta)
        pairs = {
            "inner": (alone, _one(y, number)),
            "outer": (problem.outer(alone, xi), losses[number : number + 1]),
        }
        for function, (one, among_others) in pairs.items():
            if (apart := difference(one, among_others)) > tolerance(one):
                yield _mixed(function, apart, has_batch_norm(problem))
                return


def _mixed(function: str, apart: float, is_normalised: bool) -> Finding:
    says = (
        f"{function} mixes outer samples: what it returns for one ξ differs by {apart:.0%} if the others are left out"
    )
    if is_normalised:
        return remark(f"{says}, as batch norm does: use GroupNorm or LayerNorm if it should not")
    return Finding(f"{says}, so use no mean, sum or normalisation over the first axis")


def has_batch_norm(thing: object, depth: int = 3) -> bool:
    """Return whether a network in an object, or in one of its attributes, normalises over the batch."""
    if isinstance(thing, nn.Module):
        return any(isinstance(part, _BatchNorm) for part in thing.modules())
    parts = getattr(thing, "__dict__", {}).values() if depth else ()
    return any(has_batch_norm(part, depth - 1) for part in parts)


def _one(tree: Tree, number: int) -> Tree:
    """Return the part of a batch that belongs to one ξ; what all of them share stays."""
    return map_leaves(lambda leaf: leaf[number : number + 1] if leaf.shape[0] == OUTER else leaf, tree)
