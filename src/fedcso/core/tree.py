"""Arithmetic on pytrees of tensors: nested dicts, tuples and lists with tensors at the leaves.

Models, gradients, states and batches are such trees. Leaves may have extra leading axes (grid point, client, step),
which all functions accept.

`torch.utils._pytree` is not used: it is private and, on a model of ten numbers, slower than the arithmetic.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

Tree = Any
"""A pytree of tensors; an alias, because type checkers handle the recursive type badly."""

Weight = float | torch.Tensor

LARGEST = torch.finfo(torch.float32).max


def map_leaves(fn: Callable[..., Any], tree: Tree, *rest: Tree) -> Tree:
    """Apply `fn` to corresponding leaves of one or several trees of the same structure."""
    if isinstance(tree, torch.Tensor):
        return fn(tree, *rest)
    if isinstance(tree, dict):
        return {key: map_leaves(fn, child, *(other[key] for other in rest)) for key, child in tree.items()}
    children = [map_leaves(fn, *parts) for parts in zip(tree, *rest, strict=True)]
    # The constructor of a named tuple takes its fields one by one, that of a list or tuple an iterable.
    return type(tree)(*children) if hasattr(tree, "_fields") else type(tree)(children)


def named_leaves(tree: Tree, prefix: str = "") -> list[tuple[str, torch.Tensor]]:
    """Return the leaves with their paths (`x.0.weight`), in a fixed order; the path of a bare tensor is empty."""
    if isinstance(tree, torch.Tensor):
        return [(prefix, tree)]
    keys = tree if isinstance(tree, dict) else getattr(tree, "_fields", range(len(tree)))
    children = tree.values() if isinstance(tree, dict) else tree
    paths = (f"{prefix}.{key}" if prefix else f"{key}" for key in keys)
    return [pair for path, child in zip(paths, children, strict=True) for pair in named_leaves(child, path)]


def leaves(tree: Tree) -> list[torch.Tensor]:
    """Return the leaves, in the order of `named_leaves`."""
    if isinstance(tree, torch.Tensor):
        return [tree]
    children = tree.values() if isinstance(tree, dict) else tree
    return [leaf for child in children for leaf in leaves(child)]


def unflatten_like(tree: Tree, new_leaves: Iterable[Any]) -> Tree:
    """Return a tree with the structure of `tree` and new leaves."""
    supply = iter(new_leaves)
    return map_leaves(lambda _: next(supply), tree)


def change_at(path: str, fn: Callable[..., Tree], tree: Tree, *rest: Tree) -> Tree:
    """Return the tree with the part at a path (`primal.w`; all of it if empty) replaced by `fn` of these parts."""
    if not path:
        return fn(tree, *rest)
    key, _, below = path.partition(".")
    return tree | {key: change_at(below, fn, tree[key], *(other[key] for other in rest))}


def stack(trees: Sequence[Tree], axis: int = 0) -> Tree:
    """Stack trees of the same shapes along a new axis."""
    return map_leaves(lambda *parts: torch.stack(parts, axis), *trees)


def index(tree: Tree, where: Any) -> Tree:
    """Return the tree with `leaf[where]` for every leaf."""
    return map_leaves(lambda leaf: leaf[where], tree)


def split(tree: Tree, shape: tuple[int, ...]) -> list[Tree]:
    """Split a stacked tree into one tree for each index of its leading axes, in order."""
    if not shape or not leaves(tree):
        return [tree] * math.prod(shape)
    flat = [leaf.flatten(0, len(shape) - 1).unbind() for leaf in leaves(tree)]
    return [unflatten_like(tree, parts) for parts in zip(*flat, strict=True)]


def without(tree: dict[str, Tree], name: str) -> dict[str, Tree]:
    """Return the tree without one of its keys."""
    return {key: part for key, part in tree.items() if key != name}


def zeros_like(tree: Tree) -> Tree:
    """Return zeros of the same shapes."""
    return map_leaves(torch.zeros_like, tree)


def to_device(tree: Tree, device: torch.device | str) -> Tree:
    """Return the tree with every leaf on `device`."""
    return map_leaves(lambda leaf: leaf.to(device), tree)


def nbytes(tree: Tree) -> int:
    """Return the size of all leaves in bytes: what it costs to send the tree once."""
    return sum(leaf.numel() * leaf.element_size() for leaf in leaves(tree))


def numel(tree: Tree) -> int:
    """Return the number of entries in all leaves."""
    return sum(leaf.numel() for leaf in leaves(tree))


def norm(tree: Tree, lead: int = 0) -> torch.Tensor:
    """Return the Euclidean norm of all leaves together, for each index of the first `lead` axes."""
    squares = [leaf.flatten(lead).square().sum(-1) if leaf.ndim > lead else leaf.square() for leaf in leaves(tree)]
    return torch.stack(squares).sum(0).sqrt()


def align(weight: Weight, leaf: torch.Tensor) -> Weight:
    """Reshape a grid of weights to broadcast along the FIRST axes of a leaf instead of its last."""
    if isinstance(weight, torch.Tensor):
        return weight.to(leaf).reshape(weight.shape + (1,) * (leaf.ndim - weight.ndim))
    return weight


def subtract(a: Tree, b: Tree) -> Tree:
    """Return a − b."""
    return map_leaves(torch.sub, a, b)


def add_scaled(a: Tree, b: Tree, weight: Weight) -> Tree:
    """Return a + weight·b, where the weight is a number or, for a grid, a tensor with one number per leading index."""
    if isinstance(weight, torch.Tensor):
        return map_leaves(lambda p, q: torch.addcmul(p, q, align(weight, p)), a, b)  # type: ignore[arg-type]
    if abs(weight) > LARGEST:
        weight = math.copysign(math.inf, weight)  # torch raises for numbers beyond float32
    return map_leaves(lambda p, q: torch.add(p, q, alpha=weight), a, b)


def mix(old: Tree, new: Tree, weight: Weight) -> Tree:
    """Return (1 − weight)·old + weight·new, which is exactly `new` for weight 1."""
    return map_leaves(lambda p, q: torch.lerp(p, q, align(weight, p)), old, new)


def log_mix(old: Tree, new: Tree, weight: Weight) -> Tree:
    """Return log((1 − weight)·e^old + weight·e^new) without overflow, which is exactly `new` for weight 1."""

    def blend(p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
        share = torch.as_tensor(align(weight, p), dtype=p.dtype, device=p.device)
        return torch.logaddexp(p + torch.log1p(-share), q + torch.log(share))

    return map_leaves(blend, old, new)


def average(trees: Sequence[Tree], weights: Sequence[float]) -> Tree:
    """Return the weighted mean, accumulated in float64 in the given order; weights need not be normalised."""
    total = sum(weights)

    def mean(*parts: torch.Tensor) -> torch.Tensor:
        result = torch.zeros_like(parts[0], dtype=torch.float64)
        for weight, part in zip(weights, parts, strict=True):
            result.add_(part.to(torch.float64), alpha=weight / total)
        return result.to(parts[0].dtype)

    return map_leaves(mean, *trees)


def is_finite(tree: Tree) -> bool:
    """Return whether no leaf holds an infinity or a NaN, judged by the sum of each leaf, which is fast."""
    return all(math.isfinite(float(leaf.sum())) for leaf in leaves(tree))
