"""Messages of many clients stacked along an axis, and the means of stacked trees."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch

from fedcso.core.codec import Message, concatenate
from fedcso.core.errors import FedcsoError
from fedcso.core.tree import Tree, map_leaves, split, stack


class AlongAxis(NamedTuple):
    """Messages stacked along the clients' axis, the last axis of the weights."""

    messages: Message
    weights: torch.Tensor

    def mean(self, read: Callable[[Message], Tree], weights: Sequence[float] | None = None) -> Tree:
        """Return the weighted mean of each run."""
        given = self.weights if weights is None else self.weights.new_tensor(weights).expand_as(self.weights)
        return mean(read(self.messages), given)

    def concatenate(self, read: Callable[[Message], Tree]) -> Tree:
        """Return the entries of all clients of each run; raise if runs differ in who is dropped."""
        if not bool((self.weights > 0).all()):
            raise FedcsoError(
                "a client was dropped, and pools of different sizes can't be stacked: use --engine threads"
            )
        runs, clients = self.weights.shape[:-1], self.weights.shape[-1:]
        by_run = zip(split(read(self.messages), runs), self.weights.reshape(-1, *clients), strict=True)
        pools = stack([concatenate(split(part, clients), weights.tolist()) for part, weights in by_run])
        return map_leaves(lambda leaf: leaf.unflatten(0, runs), pools)


def mean(tree: Tree, weights: torch.Tensor) -> Tree:
    """Return the weighted mean over the clients' axis in float64; entries with weight 0 are ignored, even NaN."""
    share = weights / weights.sum(-1, keepdim=True)
    all_count = bool((share > 0).all())

    def mean_of(leaf: torch.Tensor) -> torch.Tensor:
        aligned = share.reshape(share.shape + (1,) * (leaf.ndim - share.ndim))
        visible = leaf if all_count else torch.where(aligned > 0, leaf, torch.zeros_like(leaf))
        return (visible.to(torch.float64) * aligned).sum(share.ndim - 1).to(leaf.dtype)

    return map_leaves(mean_of, tree)
