"""Invariant logistic regression whose losses are those of an estimator with levels, from a few drawn means.

    f̃_ξ(y) = Σ_l c_l 2⁻ˡ Σ_k log(1 + exp(−b y_lk)),      y_lk = xᵀ mean(k-th block of m/2ˡ samples)

g is linear in η, so the means of the smallest blocks are all that an estimator with levels needs of its m samples, and
they are Gaussian: they are drawn directly. The plain estimator of this problem is `extrapolated` or `three_level` of
the original one, with the same distribution, at a cost that does not depend on m. F and ∇F are the original ones.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from scipy.optimize import minimize

from fedcso.experiments.complexity import Logistic
from fedcso.problems.invariant_logistic import Point, Source
from fedcso.theory.bias_terms import LEVELS


@dataclass(frozen=True)
class LogisticByLevels(Logistic):
    """Invariant logistic regression from x_0 = 0 with the losses of an estimator with levels."""

    coefficients: Sequence[float] = (1.0,)
    """c_0, c_1, …: of the estimate with all samples, with halves, quarters, …"""

    def sample_inner(self, data: Source, rng: torch.Generator, xi: Point, m: int) -> torch.Tensor:
        """Draw the means of the smallest blocks; return the means of all blocks, level by level."""
        shape, blocks = xi.a.shape[:-1], self.blocks
        noise = torch.randn(*shape, blocks, self.dimension, generator=rng, dtype=self.dtype)
        means = torch.add(xi.a.unsqueeze(-2), noise, alpha=self.noise * math.sqrt(blocks / m))
        levels = range(len(self.coefficients))
        return torch.cat([means.reshape(*shape, 2**k, blocks // 2**k, self.dimension).mean(-2) for k in levels], -2)

    def inner(self, x: torch.Tensor, xi: Point, eta: torch.Tensor) -> torch.Tensor:
        """Return y, one number for each block of each level."""
        return (eta * x[..., None, None, :]).sum(-1)

    def outer(self, y: torch.Tensor, xi: Point) -> torch.Tensor:
        """Return f̃(y)."""
        return (F.softplus(-xi.label.unsqueeze(-1) * y) * self._weights()).sum(-1)

    def closed_form(self, x: torch.Tensor, xi: Point, eta: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return f̃ + r and its gradient."""
        label, weights = xi.label.unsqueeze(-1), self._weights()
        logit = label * self.inner(x, xi, eta)
        wrong = torch.sigmoid(-logit) * label * weights
        denominator = 1 + self.sharpness * x.square()
        push = (wrong.unsqueeze(-1) * eta).sum(-2).mean(-2)
        losses = (F.softplus(-logit) * weights).sum(-1).mean(-1) + self.regulariser(x)
        return losses, 2 * self.penalty * self.sharpness * x / denominator.square() - push

    @property
    def blocks(self) -> int:
        """The number of the smallest blocks."""
        return 1 << (len(self.coefficients) - 1)

    def _weights(self) -> torch.Tensor:
        return torch.tensor(
            [c / 2**level for level, c in enumerate(self.coefficients) for _ in range(2**level)], dtype=self.dtype
        )

    def extrapolated_bias(self, x: torch.Tensor, clients: Sequence[Source], m: int) -> torch.Tensor:
        """Return the bias of the estimator with m inner samples, exactly."""
        levels = enumerate(self.coefficients)
        return torch.stack([c * self.bias(x, clients, m / 2**level) for level, c in levels]).sum(0)

    def least_inner_batch(self, x: torch.Tensor, clients: Sequence[Source], most: float) -> int:
        """Return the m from which on the bias of the estimator at x is at most `most`."""

        def suffices(multiple: int) -> bool:
            return bool(self.extrapolated_bias(x, clients, multiple * self.blocks).norm() <= most)

        return self.blocks * (1 + bisect_left(range(1, 2**40), True, key=suffices))

    def minimiser(self, clients: Sequence[Source]) -> torch.Tensor:
        """Return argmin F."""

        def exact(x: np.ndarray[Any, Any]) -> tuple[float, np.ndarray[Any, Any]]:
            value, gradient = self.exact(torch.from_numpy(x), clients, [1.0] * len(clients))
            return float(value), gradient.numpy()

        return torch.from_numpy(minimize(exact, np.zeros(self.dimension), jac=True, tol=1e-12).x)


def logistic_by_levels(estimator: str, noise: float) -> LogisticByLevels:
    """Return the regression in two dimensions with the losses of an estimator."""
    return LogisticByLevels(2, noise=noise, dtype=torch.float64, coefficients=LEVELS[estimator].coefficients)
