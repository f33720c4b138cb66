"""The demand design: how demand depends on the price, which reacts to demand; the price of fuel is the instrument.

    p = 25 + (c + 3) ψ(t) + v,   y = 100 + (10 + p) s ψ(t) − 2p + e,   c, v ~ N(0, 1),   e ~ N(ρv, 1 − ρ²)
    ψ(t) = 2 ((t − 5)⁴/600 + exp(−4 (t − 5)²) + t/10 − 2),   t ~ U(0, 10),   s uniform on 1, …, 7

p is the price of a flight, t the time of the year, s the type of customer and c the price of fuel; ξ = (c, t, s). Given
ξ, p is Gaussian. The features (1, p) ⊗ (1, s) ⊗ (1, ψ(t)) contain h₀, with ψ taken as known. They are linear in p, so
all moments are closed forms but for an integral over t.

Reference: Hartford, Lewis, Leyton-Brown, Taddy, Deep IV: A Flexible Approach for Counterfactual Prediction, ICML 2017.
"""

from dataclasses import dataclass, field

import numpy as np
import torch

from fedcso.core.errors import is_number, require
from fedcso.problems.conditional_squares import REAL, Moments, Observations, Source, moments_between
from fedcso.problems.instruments import legendre

PRICE, CUSTOMER, SEASON, DEMAND = (17.8, 4.0), (4.0, 2.0), (-2.3, 1.0), (-150.0, 100.0)
"""Centre and scale by which prices, types of customers, seasons and demand are brought to the order of 1."""


def season(t: torch.Tensor) -> torch.Tensor:
    """Return ψ(t)."""
    return 2 * ((t - 5) ** 4 / 600 + torch.exp(-4 * (t - 5) ** 2) + t / 10 - 2)


def response(p: torch.Tensor, t: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
    """Return h₀, scaled."""
    return (100 + (10 + p) * s * season(t) - 2 * p - DEMAND[0]) / DEMAND[1]


def basis(t: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
    """Return (1, s) ⊗ (1, ψ(t)), scaled."""
    customer, time = (s - CUSTOMER[0]) / CUSTOMER[1], (season(t) - SEASON[0]) / SEASON[1]
    return torch.stack([torch.ones_like(t), customer, time, customer * time], -1)


def features(p: torch.Tensor, t: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
    """Return φ(p, t, s)."""
    rest = basis(t, s)
    return torch.cat([rest, rest * ((p - PRICE[0]) / PRICE[1]).unsqueeze(-1)], -1)


@dataclass(frozen=True)
class Demand(Source):
    """The demand design."""

    confounding: float = 0.5
    """ρ, the correlation of the noise of price and demand."""
    centre: float = 0.0
    """The mean of c."""
    moments: Moments = field(init=False, repr=False)

    def __post_init__(self) -> None:
        within = "a number in [-1, 1] for the demand design, where it is a correlation"
        require("confounding", self.confounding, lambda rho: is_number(rho) and -1 <= rho <= 1, within)
        object.__setattr__(self, "moments", self._integrate())

    def draw_instruments(self, rng: torch.Generator, shape: tuple[int, ...]) -> torch.Tensor:
        """Draw (c, t, s)."""
        c = self.centre + torch.randn(shape, generator=rng, dtype=REAL)
        t = 10 * torch.rand(shape, generator=rng, dtype=REAL)
        return torch.stack([c, t, torch.randint(1, 8, shape, generator=rng).to(REAL)], -1)

    def draw(self, rng: torch.Generator, z: torch.Tensor, m: int) -> Observations:
        """Draw prices and demand."""
        v, other = torch.randn(2, *z.shape[:-1], m, generator=rng, dtype=REAL)
        c, t, s = (part.unsqueeze(-1) for part in z.unbind(-1))
        p = 25 + (c + 3) * season(t) + v
        e = self.confounding * v + (1 - self.confounding**2) ** 0.5 * other
        t, s = t.expand_as(p), s.expand_as(p)
        return Observations(features(p, t, s), response(p, t, s) + e / DEMAND[1])

    def grid(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the features at 20 prices in [10, 25], 20 times and all types of customers, and h₀ there."""
        prices, times = torch.linspace(10, 25, 20, dtype=REAL), torch.linspace(0, 10, 20, dtype=REAL)
        p, t, s = (
            part.flatten() for part in torch.meshgrid(prices, times, torch.arange(1.0, 8, dtype=REAL), indexing="ij")
        )
        return features(p, t, s), response(p, t, s)

    def _integrate(self) -> Moments:
        """Integrate over ξ; conditional means are linear in c, so a few nodes of Gauss–Hermite are exact."""
        at, mass = (torch.from_numpy(part) for part in np.polynomial.hermite_e.hermegauss(3))
        node, weight = legendre(200)
        axes = torch.meshgrid(self.centre + at, 5 + 5 * node, torch.arange(1.0, 8, dtype=REAL), indexing="ij")
        c, t, s = (axis.flatten() for axis in axes)
        share = (mass / mass.sum())[:, None, None] * weight[:, None] * torch.full((7,), 1 / 7, dtype=REAL)
        share = share.flatten()
        p = 25 + (c + 3) * season(t)
        # Given ξ only p varies, with variance 1: φ along `slope`, y along its own slope and by the covariance ρ with e.
        rest = basis(t, s)
        slope = torch.cat([torch.zeros_like(rest), rest / PRICE[1]], -1)
        own = s * season(t) - 2
        weighted = share.unsqueeze(-1) * slope
        return Moments(
            *moments_between(share, features(p, t, s), response(p, t, s)),
            weighted.T @ slope,
            weighted.T @ (own + self.confounding) / DEMAND[1],
            (share * (own.square() + 2 * own * self.confounding + 1)).sum() / DEMAND[1] ** 2,
        )
