"""Least squares at three clients, whose loss is quadratic: for transcriptions with gradients written out."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from fedcso.core.problem import Problem
from fedcso.datasets import Examples
from fedcso.problems.ordinary import Ordinary


@dataclass(frozen=True)
class LeastSquares(Ordinary):
    """ℓ = ½ (aᵀx − b)², whose second derivatives a aᵀ do not depend on x."""

    dimension: int = 3

    def init(self, rng):
        return torch.randn(self.dimension, generator=rng, dtype=torch.float64)

    def losses(self, x, xi):
        return 0.5 * (xi.inputs @ x - xi.labels).square()


def random_examples(number: int, seed: int) -> Examples:
    rng = torch.Generator().manual_seed(seed)
    return Examples(*(torch.randn(*shape, generator=rng, dtype=torch.float64) for shape in [(number, 3), (number,)]))


CLIENTS = [random_examples(number, seed) for seed, number in enumerate((6, 9, 5))]


def value(x: torch.Tensor, part: Examples) -> torch.Tensor:
    """Return the mean loss of some examples."""
    return 0.5 * (part.inputs @ x - part.labels).square().mean()


def slope(x: torch.Tensor, part: Examples) -> torch.Tensor:
    """Return its gradient."""
    return part.inputs.T @ (part.inputs @ x - part.labels) / len(part.labels)


def hessian(part: Examples) -> torch.Tensor:
    """Return its second derivatives."""
    return part.inputs.T @ part.inputs / len(part.labels)


@dataclass(frozen=True)
class LogMeanExp(Problem):
    """λ log E exp((ℓ − c)/λ) + c in each of two groups of a client's examples: ξ is the group, η an example of it."""

    base: Ordinary = LeastSquares()
    temperature: float = 2.0
    level: ClassVar[float] = 0.5

    def init(self, rng):
        return self.base.init(rng)

    def sample_outer(self, data, rng, shape):
        return torch.randint(2, shape, generator=rng)

    def sample_inner(self, data, rng, xi, m):
        half = len(data.labels) // 2
        which = xi.unsqueeze(-1) * half + torch.randint(half, (*xi.shape, m), generator=rng)
        return Examples(data.inputs[which], data.labels[which])

    def inner(self, x, xi, eta):
        return torch.exp((self.base.losses(x, eta) - self.level) / self.temperature).mean(-1)

    def outer(self, y, xi):
        return self.temperature * torch.log(y) + self.level

    def outer_count(self, data):
        return 2

    def which(self, xi):
        return xi

    def size(self, data):
        return len(data.labels)
