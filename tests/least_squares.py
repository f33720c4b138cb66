"""Least squares at three clients, whose loss is quadratic: for transcriptions with gradients written out."""

from dataclasses import dataclass

import torch

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
