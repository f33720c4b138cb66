"""Ordinary federated learning: g is the identity, f_ξ the loss of a model on one labelled example.

    F(x) = (1/N) Σ_n E_{(input, label) ~ D_n} cross-entropy( model(x, input), label )

There are no inner samples. Every nested method works here too, and becomes its ordinary relative.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import nn

from fedcso.models.functional import Functional
from fedcso.problem import Problem
from fedcso.tree import Tree, map_leaves


class Examples(NamedTuple):
    """A client's data, or a batch of it: inputs and integer labels, along the first axis."""

    inputs: torch.Tensor
    labels: torch.Tensor


@dataclass(frozen=True)
class Classification(Problem):
    """Cross-entropy of a network; a client's data are `Examples`, drawn with replacement."""

    model: nn.Module

    def __post_init__(self) -> None:
        object.__setattr__(self, "network", Functional(self.model))

    network: Functional = None  # type: ignore[assignment]

    def init(self, rng: torch.Generator) -> Tree:
        """The network's own initialisation."""
        return self.network.init(rng)

    def sample_outer(self, data: Examples, rng: torch.Generator, shape: tuple[int, ...]) -> Examples:
        """Labelled examples."""
        chosen = torch.randint(len(data.labels), shape, generator=rng)
        return Examples(data.inputs[chosen], data.labels[chosen])

    def sample_inner(self, data: Examples, rng: torch.Generator, xi: Examples, m: int) -> tuple[()]:
        """None are needed."""
        return ()

    def inner(self, x: Tree, xi: Examples, eta: tuple[()]) -> Tree:
        """x itself, the same for all ξ: a leading axis of 1."""
        return map_leaves(lambda leaf: leaf.unsqueeze(0), x)

    def outer(self, y: Tree, xi: Examples) -> torch.Tensor:
        """Cross-entropy of each example."""
        logits = self.network.apply(map_leaves(lambda leaf: leaf.squeeze(0), y), xi.inputs)
        return F.cross_entropy(logits, xi.labels, reduction="none")

    def inner_samples(self, b: int, m: int) -> int:
        """None."""
        return 0

    def size(self, data: Examples) -> float:
        """The number of examples."""
        return len(data.labels)

    def evaluate(self, x: Tree, test: Examples | None) -> dict[str, torch.Tensor]:
        """Accuracy and mean loss on test examples."""
        if test is None:
            return {}
        logits = torch.cat([self.network.apply(x, part) for part in torch.split(test.inputs, 1024)])
        return {
            "loss": F.cross_entropy(logits, test.labels),
            "accuracy": (logits.argmax(-1) == test.labels).double().mean(),
        }


def pool(clients: Sequence[Examples]) -> Examples:
    """All clients' data in one place, for methods of a single machine and as a ceiling."""
    return Examples(*(torch.cat(column) for column in zip(*clients, strict=True)))
