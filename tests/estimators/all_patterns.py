"""Expectations without sampling error: η = ±1 with equal probability, and all patterns of m samples in one batch."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from math import comb, prod

import torch

from fedcso.core.estimator import Estimator
from fedcso.core.problem import Batch, Problem

X = torch.tensor([0.7], dtype=torch.float64)
SIGMA = 0.8


@dataclass(frozen=True)
class Scalar(Problem):
    """g = (1 + ση) x, so that ∇g depends on η too, E g = x, and F(x) = f(x) for a given f."""

    f: Callable[[torch.Tensor], torch.Tensor]

    def init(self, rng):
        return X

    def sample_outer(self, data, rng, shape):
        return torch.zeros(*shape, 1)

    def sample_inner(self, data, rng, xi, m):
        return 2.0 * torch.randint(2, (*xi.shape[:-1], m, 1), generator=rng) - 1

    def inner(self, x, xi, eta):
        return (1 + SIGMA * eta.mean(1)) * x

    def outer(self, y, xi):
        return self.f(y).squeeze(-1)


def bias(estimator: Estimator, f: Callable[[torch.Tensor], torch.Tensor], m: int) -> float:
    """Return E∇F̂ − ∇F at X, exactly: only the number of +1 in each quarter of the samples matters."""
    size = m // 4
    quarters = [torch.cat([torch.ones(k), -torch.ones(size - k)]) for k in range(size + 1)]
    counts = list(product(range(size + 1), repeat=4))
    patterns = torch.stack([torch.cat([quarters[k] for k in some]) for some in counts]).double().unsqueeze(-1)
    weights = torch.tensor([prod(comb(size, k) for k in some) for some in counts], dtype=torch.float64) / 2.0**m
    x = X.clone().requires_grad_()
    losses = estimator(Scalar(f), x, Batch(torch.zeros(len(patterns), 1), patterns))
    (expected,) = torch.autograd.grad(weights @ losses, x)
    return float(expected - torch.func.grad(lambda point: f(point).sum())(X))


def order(estimator: Estimator, f: Callable[[torch.Tensor], torch.Tensor], small: int, large: int) -> float:
    """Return k of a bias that falls like m⁻ᵏ between two inner batch sizes."""
    ratio = torch.tensor(bias(estimator, f, small) / bias(estimator, f, large))
    return float(torch.log(ratio) / torch.log(torch.tensor(large / small)))


def square(y: torch.Tensor) -> torch.Tensor:
    """Return ½ (y − 3)², whose slope is linear."""
    return 0.5 * (y - 3).square()
