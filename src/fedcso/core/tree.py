"""Arithmetic on pytrees of tensors: nested dicts, tuples and lists with tensors at the leaves.

A model is such a tree, so is a gradient, a state or a batch. Leaves may carry extra leading axes
(grid point, client, step); nothing here minds them.

Written out rather than taken from `torch.utils._pytree`, which is private and, on a model of ten
numbers, takes longer than the arithmetic.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

Tree = Any
"""A pytree of tensors. Python cannot spell the recursive type usefully, so it is an alias."""

Weight = float | torch.Tensor

LARGEST = torch.finfo(torch.float32).max


def map_leaves(fn: Callable[..., Any], tree: Tree, *rest: Tree) -> Tree:
    """Apply `fn` to corresponding leaves of one or several trees of the same structure."""
    if isinstance(tree, torch.Tensor):
        return fn(tree, *rest)
    if isinstance(tree, dict):
        return {key: map_leaves(fn, child, *(other[key] for other in rest)) for key, child in tree.items()}
    children = [map_leaves(fn, *parts) for parts in zip(tree, *rest, strict=True)]
    # A named tuple takes its fields one by one, a plain sequence takes them all at once.
    return type(tree)(*children) if hasattr(tree, "_fields") else type(tree)(children)


def named_leaves(tree: Tree, prefix: str = "") -> list[tuple[str, torch.Tensor]]:
    """The leaves with their paths (`x.0.weight`), in a fixed order; a bare tensor's path is empty."""
    if isinstance(tree, torch.Tensor):
        return [(prefix, tree)]
    keys = tree if isinstance(tree, dict) else getattr(tree, "_fields", range(len(tree)))
    children = tree.values() if isinstance(tree, dict) else tree
    paths = (f"{prefix}.{key}" if prefix else f"{key}" for key in keys)
    return [pair for path, child in zip(paths, children, strict=True) for pair in named_leaves(child, path)]


def leaves(tree: Tree) -> list[torch.Tensor]:
    """The leaves, in the order of `named_leaves`."""
    if isinstance(tree, torch.Tensor):
        return [tree]
    children = tree.values() if isinstance(tree, dict) else tree
    return [leaf for child in children for leaf in leaves(child)]


def unflatten_like(tree: Tree, new_leaves: Iterable[Any]) -> Tree:
    """A tree with the structure of `tree` and other leaves."""
    supply = iter(new_leaves)
    return map_leaves(lambda _: next(supply), tree)


def stack(trees: Sequence[Tree], axis: int = 0) -> Tree:
    """Many trees of the same shape as one, along a new axis."""
    return map_leaves(lambda *parts: torch.stack(parts, axis), *trees)


def index(tree: Tree, where: Any) -> Tree:
    """`leaf[where]` on every leaf."""
    return map_leaves(lambda leaf: leaf[where], tree)


def split(tree: Tree, shape: tuple[int, ...]) -> list[Tree]:
    """The trees of which a stacked one consists, for each index of its leading axes, in order."""
    if not shape or not leaves(tree):
        return [tree] * math.prod(shape)
    flat = [leaf.flatten(0, len(shape) - 1).unbind() for leaf in leaves(tree)]
    return [unflatten_like(tree, parts) for parts in zip(*flat, strict=True)]


def without(tree: dict[str, Tree], name: str) -> dict[str, Tree]:
    """The tree but for one of its parts."""
    return {key: part for key, part in tree.items() if key != name}


def zeros_like(tree: Tree) -> Tree:
    """Zeros of the same shapes."""
    return map_leaves(torch.zeros_like, tree)


def to_device(tree: Tree, device: torch.device | str) -> Tree:
    """Every leaf on `device`."""
    return map_leaves(lambda leaf: leaf.to(device), tree)


def nbytes(tree: Tree) -> int:
    """Size of all leaves: what it costs to send the tree once."""
    return sum(leaf.numel() * leaf.element_size() for leaf in leaves(tree))


def numel(tree: Tree) -> int:
    """Number of entries in all leaves."""
    return sum(leaf.numel() for leaf in leaves(tree))


def norm(tree: Tree, lead: int = 0) -> torch.Tensor:
    """Euclidean norm of all leaves together, for each index of their leading axes."""
    squares = [leaf.flatten(lead).square().sum(-1) if leaf.ndim > lead else leaf.square() for leaf in leaves(tree)]
    return torch.stack(squares).sum(0).sqrt()


def _aligned(weight: Weight, leaf: torch.Tensor) -> Weight:
    """A grid of weights, aligned with the leaf's FIRST axes instead of its last."""
    if isinstance(weight, torch.Tensor):
        return weight.to(leaf).reshape(weight.shape + (1,) * (leaf.ndim - weight.ndim))
    return weight


def subtract(a: Tree, b: Tree) -> Tree:
    """a − b."""
    return map_leaves(torch.sub, a, b)


def add_scaled(a: Tree, b: Tree, weight: Weight) -> Tree:
    """a + weight·b. The weight is a number, or one number per leading index (a grid)."""
    if isinstance(weight, torch.Tensor):
        return map_leaves(lambda p, q: torch.addcmul(p, q, _aligned(weight, p)), a, b)  # type: ignore[arg-type]
    if abs(weight) > LARGEST:
        weight = math.copysign(math.inf, weight)  # torch refuses numbers that single precision can't hold
    return map_leaves(lambda p, q: torch.add(p, q, alpha=weight), a, b)


def mix(old: Tree, new: Tree, weight: Weight) -> Tree:
    """(1 − weight)·old + weight·new, exactly `new` at weight 1."""
    return map_leaves(lambda p, q: torch.lerp(p, q, _aligned(weight, p)), old, new)


def average(trees: Sequence[Tree], weights: Sequence[float]) -> Tree:
    """Weighted mean, accumulated in float64 in the given order; the weights are normalised here."""
    total = sum(weights)

    def mean(*parts: torch.Tensor) -> torch.Tensor:
        result = torch.zeros_like(parts[0], dtype=torch.float64)
        for weight, part in zip(weights, parts, strict=True):
            result.add_(part.to(torch.float64), alpha=weight / total)
        return result.to(parts[0].dtype)

    return map_leaves(mean, *trees)


def is_finite(tree: Tree) -> bool:
    """True if no leaf holds an infinity or a NaN: a finite sum has finite summands, and is quickly made."""
    return all(math.isfinite(float(leaf.sum())) for leaf in leaves(tree))
