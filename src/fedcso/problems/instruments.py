"""Simulated instruments z, treatments x and outcomes y with one treatment, and their exact conditional moments.

The designs are those of the experiments of Lewis and Syrgkanis, Adversarial Generalized Method of Moments, 2018,
without their second instrument, which has no effect; the slope of the linear one is 2 instead of 1.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch

from fedcso.core.errors import is_number, require, require_choice, require_count
from fedcso.problems.conditional_squares import REAL, Moments, Observations, Source, moments_between

RESPONSES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "linear": lambda x: 2 * x,
    "abs": torch.abs,
    "sin": torch.sin,
    "step": lambda x: torch.where(x < 0, 1.0, 2.5).to(x),
    "polynomial": lambda x: -1.5 * x + 0.9 * x.square(),
}
"""h₀ of the scalar designs; they are smooth but for x = 0."""


def require_finite(field: str, value: float) -> None:
    """Raise `InvalidValue` unless a value is a finite number."""
    require(field, value, lambda v: is_number(v) and math.isfinite(v), "a finite number")


def legendre(number: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the nodes of Gauss–Legendre quadrature on [−1, 1] and weights that add up to 1."""
    nodes, weights = np.polynomial.legendre.leggauss(number)
    return torch.from_numpy(nodes), torch.from_numpy(weights / 2)


@dataclass(frozen=True)
class Scalar(Source):
    """z ~ U(c − 3, c + 3),   x = π z + ρ e + 0.1 ε,   y = h₀(x) + 2 e + 0.1 ε',   with e, ε, ε' ~ N(0, 1).

    The features are (x) if there are no frequencies, else (1, x/3, x²/9, cos ωx, sin ωx, …) with ω = π/4, π/2, ….
    """

    response: str = "linear"
    """The name of h₀."""
    frequencies: int = 0
    strength: float = 1.0
    """π, the effect of the instrument on the treatment."""
    confounding: float = 1.0
    """ρ, the effect of the unobserved e on the treatment."""
    centre: float = 0.0
    """c."""
    moments: Moments = field(init=False, repr=False)

    def __post_init__(self) -> None:
        require_choice("design", self.response, RESPONSES)
        require_count("frequencies", self.frequencies, least=0)
        require_finite("strength", self.strength)
        require("strength", self.strength, bool, "not 0: the instrument must have an effect on the treatment")
        require_finite("confounding", self.confounding)
        object.__setattr__(self, "moments", self._integrate())

    def features(self, x: torch.Tensor) -> torch.Tensor:
        """Return φ(x)."""
        if not self.frequencies:
            return x.unsqueeze(-1)
        angles = x.unsqueeze(-1) * torch.arange(1, self.frequencies + 1, dtype=x.dtype) * (math.pi / 4)
        powers = torch.stack([torch.ones_like(x), x / 3, x.square() / 9], -1)
        return torch.cat([powers, angles.cos(), angles.sin()], -1)

    def draw_instruments(self, rng: torch.Generator, shape: tuple[int, ...]) -> torch.Tensor:
        """Draw z ~ U(c − 3, c + 3)."""
        return self.centre - 3 + 6 * torch.rand(shape, generator=rng, dtype=REAL)

    def draw(self, rng: torch.Generator, z: torch.Tensor, m: int) -> Observations:
        """Draw x and y, which share e."""
        e, noise, other = torch.randn(3, *z.shape, m, generator=rng, dtype=REAL)
        x = self.strength * z.unsqueeze(-1) + self.confounding * e + 0.1 * noise
        return Observations(self.features(x), RESPONSES[self.response](x) + 2 * e + 0.1 * other)

    def grid(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the features at 201 points x in [−3, 3], and h₀ there."""
        x = torch.linspace(-3, 3, 201, dtype=REAL)
        return self.features(x), RESPONSES[self.response](x)

    def _instrument_nodes(self, scale: float) -> tuple[torch.Tensor, torch.Tensor]:
        """Return nodes and weights for z, with short panels around 0, where conditional means bend on this scale."""
        low, high = self.centre - 3, self.centre + 3
        bends = scale * 2.0 ** torch.arange(-1, 8, dtype=REAL)
        regular = torch.linspace(low, high, 7, dtype=REAL)
        every = torch.cat([regular, -bends, bends, torch.zeros(1, dtype=REAL)]).clamp(low, high)
        borders = torch.from_numpy(np.unique(every.numpy()))
        left, right = borders[:-1, None], borders[1:, None]
        node, weight = legendre(16)
        return ((left + right) / 2 + (right - left) / 2 * node).flatten(), ((right - left) / 6 * weight).flatten()

    def _integrate(self) -> Moments:
        """Integrate over z and x | z ~ N(πz, ρ² + 0.01), in two panels that meet at the kink x = 0 of h₀."""
        variance = self.confounding**2 + 0.01
        width = math.sqrt(variance)
        z, weight = self._instrument_nodes(width / abs(self.strength))
        mean = self.strength * z
        lowest, highest = mean - 10 * width, mean + 10 * width
        middle = torch.zeros_like(mean).clamp(min=lowest, max=highest)
        inner, share = legendre(150)
        parts = [
            ((left + right).unsqueeze(1) / 2 + (right - left).unsqueeze(1) / 2 * inner, (right - left).unsqueeze(1))
            for left, right in ((lowest, middle), (middle, highest))
        ]
        x = torch.cat([points for points, _ in parts], 1)
        # At the borders themselves there are no nodes, so a step at x = 0 is on the right side.
        density = torch.cat([length * share for _, length in parts], 1)
        density = (
            density * torch.exp(-((x - mean.unsqueeze(1)) ** 2) / (2 * variance)) / (width * math.sqrt(2 * math.pi))
        )
        # y enters linearly, so e can be replaced by E[e | x, z] = ρ (x − πz) / Var(x | z).
        outcome = RESPONSES[self.response](x) + 2 * self.confounding / variance * (x - mean.unsqueeze(1))
        features = self.features(x)
        average = torch.einsum("nx,nxi->ni", density, features)
        average_outcome = (density * outcome).sum(1)
        spread = features - average.unsqueeze(1)
        rest = outcome - average_outcome.unsqueeze(1)
        joint = weight.unsqueeze(1) * density
        return Moments(
            *moments_between(weight, average, average_outcome),
            torch.einsum("nx,nxi,nxj->ij", joint, spread, spread),
            torch.einsum("nx,nxi,nx->i", joint, spread, rest),
            (joint * rest.square()).sum() + 4 * (1 - self.confounding**2 / variance) + 0.01,
        )
