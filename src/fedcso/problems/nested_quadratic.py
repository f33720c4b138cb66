"""A nested quadratic problem whose quantities are all known in closed form, for tests and teaching.

    ξ ~ N(c_n, s² I),   η | ξ ~ N(1 + κ ξ, τ² I),   g_η(x, ξ) = η ∘ x,   f_ξ(y) = ½ ‖y − ξ‖²

coordinate by coordinate (∘). With μ(ξ) = E[η | ξ] = 1 + κξ:

    ∇F_n(x)     = E[μ²] ∘ x − E[μ ξ],      E[μ²] = (1 + κc)² + κ²s²,   E[μ ξ] = c + κ(c² + s²)
    E ∇F̂_n(x)  = ∇F_n(x) + (τ²/m) x       so the bias is (τ²/m) x, of order 1/m
    x*          = Σ_n E[μ ξ] / Σ_n E[μ²]

With the mean outside f, the bias is τ² x for every m.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from fedcso.core.constants import Constants
from fedcso.core.crowd import Crowd
from fedcso.core.errors import require_count, require_positive
from fedcso.core.problem import Problem
from fedcso.core.streams import DATA, stream
from fedcso.core.task import Task


@dataclass(frozen=True)
class NestedQuadratic(Problem):
    """The nested quadratic; a client's data are its centre c_n, a vector."""

    dimension: int = 3
    coupling: float = 0.5
    """κ, the dependence of the inner samples on ξ."""
    spread: float = 1.0
    """s, the standard deviation of ξ."""
    noise: float = 1.0
    """τ, the standard deviation of η given ξ, which causes the bias."""
    dtype: torch.dtype = torch.float64

    broadcasts = True
    outer_degree = 2

    def __post_init__(self) -> None:
        require_count("dimension", self.dimension)
        require_positive("spread", self.spread)
        require_positive("noise", self.noise)

    def centres(self, clients: int, heterogeneity: float = 0.5, seed: int = 0) -> Sequence[torch.Tensor]:
        """Draw the centres c_n ~ N(1, heterogeneity² I), one for each client."""
        require_count("clients", clients)
        noise = torch.randn(clients, self.dimension, generator=stream(seed, DATA, 0), dtype=self.dtype)
        return Crowd(clients, noise.mul_(heterogeneity).add_(1).__getitem__)

    def init(self, rng: torch.Generator) -> torch.Tensor:
        """Draw x_0 ~ N(0, I)."""
        return torch.randn(self.dimension, generator=rng, dtype=self.dtype)

    def sample_outer(self, data: torch.Tensor, rng: torch.Generator, shape: tuple[int, ...]) -> torch.Tensor:
        """Draw ξ ~ N(c_n, s² I)."""
        return data + self.spread * torch.randn(*shape, self.dimension, generator=rng, dtype=self.dtype)

    def sample_inner(self, data: torch.Tensor, rng: torch.Generator, xi: torch.Tensor, m: int) -> torch.Tensor:
        """Draw η | ξ ~ N(1 + κξ, τ² I)."""
        noise = torch.randn(*xi.shape[:-1], m, self.dimension, generator=rng, dtype=self.dtype)
        return (1 + self.coupling * xi).unsqueeze(-2) + self.noise * noise

    def inner(self, x: torch.Tensor, xi: torch.Tensor, eta: torch.Tensor) -> torch.Tensor:
        """Return ĝ = (1/m) Σ_j η_j ∘ x."""
        return eta.mean(-2) * x.unsqueeze(-2)

    def outer(self, y: torch.Tensor, xi: torch.Tensor) -> torch.Tensor:
        """Return ½ ‖y − ξ‖²."""
        return 0.5 * (y - xi).square().sum(-1)

    def size(self, data: torch.Tensor) -> None:
        """Return None: clients sample from distributions."""

    def exact(
        self, x: torch.Tensor, clients: Sequence[torch.Tensor], weights: Sequence[float]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return F(x) and ∇F(x)."""
        square, cross, constant = self._moments(clients, weights)
        value = (0.5 * square * x**2 - cross * x + constant).sum(-1)
        return value, square * x - cross

    def optimum(self, clients: Sequence[torch.Tensor], weights: Sequence[float] | None = None) -> torch.Tensor:
        """Return x*."""
        square, cross, _ = self._moments(clients, weights or [1.0] * len(clients))
        return cross / square

    def bias(self, x: torch.Tensor, m: int) -> torch.Tensor:
        """Return E ∇F̂(x) − ∇F(x) with m inner samples."""
        return self.noise**2 / m * x

    def constants(self, x: torch.Tensor, clients: Sequence[torch.Tensor], radius: float | None = None) -> Constants:
        """Return the constants on the ball of that radius around x* (by default 1.5 ‖x_0 − x*‖), in closed form.

        The coordinates are separate problems whose bounds add up: S_f = 1, S_g = 0, L_g is the largest L_g of the
        coordinates, and L_f² the sum of theirs. L_f and L_g are fourth roots of FOURTH moments, because f and g depend
        on the same unbounded η: E η²y² ≤ √(E η⁴ E y⁴). The bias (τ²/m) x has no terms of higher order, so that
        estimators which extrapolate have none.
        """
        best = self.optimum(clients)
        radius = 1.5 * float((x - best).norm()) if radius is None else radius
        c, k = torch.stack(list(clients)), self.coupling
        inner = (k * self.spread) ** 2 + self.noise**2
        inner_slope = float(_fourth_root(1 + k * c, inner).max())
        # At the optimum y = η x* − ξ, which is Gaussian too.
        along = (1 + k * c) * best - c, ((k * best - 1) * self.spread) ** 2 + (self.noise * best) ** 2
        farthest = float(best.norm()) + radius
        residual = float(_fourth_root(*along).square().sum(-1).max().sqrt())
        return Constants(
            outer_smoothness=1.0,
            outer_slope=residual + inner_slope * radius,
            inner_smoothness=0.0,
            inner_slope=inner_slope,
            inner_noise=self.noise * farthest,
            gap=float(
                self.exact(x, clients, [1.0] * len(clients))[0] - self.exact(best, clients, [1.0] * len(clients))[0]
            ),
            smooth_bias={
                "plain": self.noise**2 * farthest,
                "extrapolated": 0.0,
                "three_level": 0.0,
                "independent_jacobian": 0.0,
            },
        )

    def _moments(
        self, clients: Sequence[torch.Tensor], weights: Sequence[float]
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the means over clients of E[μ²], E[μ ξ] and ½ E[ξ²]."""
        c, k, s = torch.stack(list(clients)), self.coupling, self.spread
        share = torch.tensor(weights, dtype=self.dtype).unsqueeze(-1)
        share = share / share.sum()
        square = (1 + k * c) ** 2 + (k * s) ** 2
        cross = c + k * (c**2 + s**2)
        return (share * square).sum(0), (share * cross).sum(0), (share * 0.5 * (c**2 + s**2)).sum(0)


def _fourth_root(mean: torch.Tensor, variance: torch.Tensor | float) -> torch.Tensor:
    """Return (E z⁴)^¼ of Gaussians z."""
    fourth: torch.Tensor = mean**4 + 6 * mean**2 * variance + 3 * variance**2
    return fourth**0.25


def nested_quadratic(
    clients: int = 16,
    dimension: int = 3,
    coupling: float = 0.5,
    spread: float = 1.0,
    noise: float = 1.0,
    heterogeneity: float = 0.5,
    data_seed: int = 0,
) -> Task:
    """Minimise a small quadratic whose gradient, bias and optimum are known exactly, for tests and teaching.

    Args:
        clients: N, the number of clients
        dimension: d, the length of x
        coupling: κ, the dependence of inner samples on the outer sample
        spread: s, standard deviation of the outer samples
        noise: τ, standard deviation of the inner samples, which causes the bias τ²x/m
        heterogeneity: standard deviation of the clients' centres
        data_seed: seed of the centres
    """
    problem = NestedQuadratic(dimension, coupling, spread, noise)
    return Task(problem, problem.centres(clients, heterogeneity, data_seed))
