"""The square of a conditional mean that is linear in x: instrumental variables and policy evaluation are of this form.

    F(w) = ½ E_z ( E[ y − wᵀφ | z ] )²,      ξ = z,   η | ξ = (φ, y),   g = y − wᵀφ,   f(g) = ½ g²

With φ̄ = E[φ | z], ȳ = E[y | z] and means over z of conditional (co)variances:

    ∇F(w)    = A w − c,                            A = E[φ̄ φ̄ᵀ],   c = E[φ̄ ȳ]
    E F̂(w)  = F(w) + (1/2m) E Var(y − wᵀφ | z)
    E ∇F̂(w) = (A + V/m) w − (c + C/m),            V = E Cov(φ | z),   C = E Cov(φ, y | z)
    w_m      = (A + V/m)⁻¹ (c + C/m)               the minimiser of E F̂ with m inner samples

w_1 is ordinary least squares of y on φ, and w_∞ minimises F.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch

from fedcso.core.errors import require_count
from fedcso.core.problem import Problem

REAL = torch.float64


class Observations(NamedTuple):
    """η: features φ, (..., m, d), and outcomes y, (..., m)."""

    features: torch.Tensor
    outcome: torch.Tensor


class Moments(NamedTuple):
    """Means over z, of products of conditional means (`between`) and of conditional covariances (`within`)."""

    square: torch.Tensor
    """E[φ̄ φ̄ᵀ]."""
    cross: torch.Tensor
    """E[φ̄ ȳ]."""
    constant: torch.Tensor
    """E[ȳ²]."""
    square_within: torch.Tensor
    """E Cov(φ | z)."""
    cross_within: torch.Tensor
    """E Cov(φ, y | z)."""
    constant_within: torch.Tensor
    """E Var(y | z)."""


def moments_between(
    weights: torch.Tensor, features: torch.Tensor, outcome: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the first three moments from conditional means at nodes z with these weights."""
    weighted = weights.unsqueeze(-1) * features
    return weighted.T @ features, weighted.T @ outcome, (weights * outcome.square()).sum()


class Source:
    """The joint distribution of a client's z, φ and y."""

    moments: Moments
    rows: int | None = None
    """The number of observations; None if they are simulated."""
    values: int | None = None
    """The number of different z; None if they are continuous."""

    @abstractmethod
    def draw_instruments(self, rng: torch.Generator, shape: tuple[int, ...]) -> torch.Tensor:
        """Draw z with leading axes `shape`."""

    @abstractmethod
    def draw(self, rng: torch.Generator, z: torch.Tensor, m: int) -> Observations:
        """Draw m observations for each z."""


@dataclass(frozen=True)
class ConditionalSquares(Problem):
    """The square of a linear conditional mean; a client's data are a `Source`."""

    dimension: int
    """d, the number of features."""

    broadcasts = True
    outer_degree = 2

    def __post_init__(self) -> None:
        require_count("dimension", self.dimension)

    def init(self, rng: torch.Generator) -> torch.Tensor:
        """Return w_0 = 0."""
        return torch.zeros(self.dimension, dtype=REAL)

    def sample_outer(self, data: Source, rng: torch.Generator, shape: tuple[int, ...]) -> torch.Tensor:
        """Draw z."""
        return data.draw_instruments(rng, shape)

    def sample_inner(self, data: Source, rng: torch.Generator, xi: torch.Tensor, m: int) -> Observations:
        """Draw φ and y for each z."""
        return data.draw(rng, xi, m)

    def inner(self, x: torch.Tensor, xi: torch.Tensor, eta: Observations) -> torch.Tensor:
        """Return (1/m) Σ_j (y_j − wᵀφ_j)."""
        return eta.outcome.mean(-1) - (eta.features.mean(-2) * x.unsqueeze(-2)).sum(-1)

    def outer(self, y: torch.Tensor, xi: torch.Tensor) -> torch.Tensor:
        """Return ½ g²."""
        return 0.5 * y.square()

    def size(self, data: Source) -> int | None:
        """Return the number of rows of a table, None for a simulated design."""
        return data.rows

    def outer_count(self, data: Source) -> int | None:
        """Return the number of different z, if there are finitely many."""
        return data.values

    def which(self, xi: torch.Tensor) -> torch.Tensor:
        """Return the numbers of discrete z, which are the values themselves."""
        return xi

    def exact(
        self, x: torch.Tensor, clients: Sequence[Source], weights: Sequence[float]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return F(w) and ∇F(w)."""
        of = mean_moments(clients, weights)
        curved = x @ of.square
        return (0.5 * curved * x - of.cross * x).sum(-1) + 0.5 * of.constant, curved - of.cross

    def bias(self, x: torch.Tensor, clients: Sequence[Source], m: int) -> torch.Tensor:
        """Return E ∇F̂(w) − ∇F(w) = (V w − C) / m with m inner samples."""
        of = mean_moments(clients)
        return (x @ of.square_within - of.cross_within) / m

    def value_bias(self, x: torch.Tensor, clients: Sequence[Source], m: int) -> torch.Tensor:
        """Return E F̂(w) − F(w) with m inner samples."""
        of = mean_moments(clients)
        variance = ((x @ of.square_within - 2 * of.cross_within) * x).sum(-1) + of.constant_within
        return variance / (2 * m)

    def minimiser(self, clients: Sequence[Source], m: float = float("inf")) -> torch.Tensor:
        """Return w_m; if it is not unique, the shortest one."""
        of = mean_moments(clients)
        square, cross = of.square + of.square_within / m, of.cross + of.cross_within / m
        solution: torch.Tensor = torch.linalg.lstsq(square, cross, driver="gelsd").solution
        return solution


def mean_moments(clients: Sequence[Source], weights: Sequence[float] | None = None) -> Moments:
    """Return the weighted means of the clients' moments; by default tables count by their rows."""
    share = torch.tensor(weights or [float(source.rows or 1) for source in clients], dtype=REAL)
    columns = zip(*(source.moments for source in clients), strict=True)
    return Moments(*(torch.tensordot(share / share.sum(), torch.stack(column), 1) for column in columns))
