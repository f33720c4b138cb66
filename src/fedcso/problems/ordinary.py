"""Ordinary federated learning as a special case, in which g is the identity and there are no inner samples.

    F(x) = (1/N) Σ_n E_{ξ~D_n} f_ξ(x)

Nested methods work on such problems too, and become ordinary ones: FCSG is FedAvg, Acc-FCSG-M is STEM.
"""

from abc import abstractmethod
from typing import Any

import torch

from fedcso.core.errors import FedcsoError
from fedcso.core.problem import Problem
from fedcso.core.tree import Tree, map_leaves
from fedcso.datasets.examples import Examples


class Ordinary(Problem):
    """A loss of labelled examples, drawn with replacement; subclasses define `init` and `losses`."""

    @abstractmethod
    def losses(self, x: Tree, xi: Examples) -> torch.Tensor:
        """Return f_ξ(x) of each example."""

    def sample_outer(self, data: Examples, rng: torch.Generator, shape: tuple[int, ...]) -> Examples:
        """Draw labelled examples with replacement."""
        if not len(data.labels):
            raise FedcsoError("a client has no examples: leave it out, or give it some")
        chosen = torch.randint(len(data.labels), shape, generator=rng)
        return Examples(data.inputs[chosen], data.labels[chosen])

    def sample_inner(self, data: Examples, rng: torch.Generator, xi: Examples, m: int) -> tuple[()]:
        """Return no samples."""
        return ()

    def inner(self, x: Tree, xi: Examples, eta: tuple[()]) -> Tree:
        """Return x with a leading axis of 1, because it is the same for all ξ."""
        return map_leaves(lambda leaf: leaf.unsqueeze(0), x)

    def outer(self, y: Tree, xi: Examples) -> torch.Tensor:
        """Return the loss of each example."""
        return self.losses(map_leaves(lambda leaf: leaf.squeeze(0), y), xi)

    def inner_samples(self, b: int, m: int) -> int:
        """Return 0."""
        return 0

    def trains(self, data: Examples) -> bool:
        """Return whether the client has any examples."""
        return len(data.labels) > 0

    def size(self, data: Any) -> int:
        """Return the number of examples."""
        return len(data.labels)
