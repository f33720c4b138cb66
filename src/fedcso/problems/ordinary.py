"""Ordinary federated learning as a special case: g is the identity, and there are no inner samples.

    F(x) = (1/N) Σ_n E_{ξ~D_n} f_ξ(x)

Every nested method works on such a problem too, and becomes its ordinary relative: FCSG is FedAvg, Acc-FCSG-M is STEM.
"""

from abc import abstractmethod
from typing import Any

import torch

from fedcso.core.errors import FedcsoError
from fedcso.core.problem import Problem
from fedcso.core.tree import Tree, map_leaves
from fedcso.datasets.examples import Examples


class Ordinary(Problem):
    """A loss of labelled examples, drawn with replacement: `init` and `losses` are left to write."""

    @abstractmethod
    def losses(self, x: Tree, xi: Examples) -> torch.Tensor:
        """f_ξ(x) of each example."""

    def sample_outer(self, data: Examples, rng: torch.Generator, shape: tuple[int, ...]) -> Examples:
        """Labelled examples."""
        if not len(data.labels):
            raise FedcsoError("a client has no examples; leave it out, or give it some")
        chosen = torch.randint(len(data.labels), shape, generator=rng)
        return Examples(data.inputs[chosen], data.labels[chosen])

    def sample_inner(self, data: Examples, rng: torch.Generator, xi: Examples, m: int) -> tuple[()]:
        """None are needed."""
        return ()

    def inner(self, x: Tree, xi: Examples, eta: tuple[()]) -> Tree:
        """x itself, the same for all ξ: a leading axis of 1."""
        return map_leaves(lambda leaf: leaf.unsqueeze(0), x)

    def outer(self, y: Tree, xi: Examples) -> torch.Tensor:
        """The loss of each example."""
        return self.losses(map_leaves(lambda leaf: leaf.squeeze(0), y), xi)

    def inner_samples(self, b: int, m: int) -> int:
        """None."""
        return 0

    def trains(self, data: Examples) -> bool:
        """A client needs an example."""
        return len(data.labels) > 0

    def size(self, data: Any) -> int:
        """The number of examples."""
        return len(data.labels)
