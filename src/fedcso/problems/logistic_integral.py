"""E log(1 + exp(−b v)) and its gradient by quadrature, for Gaussian points with or without measurement noise.

    a ~ N(μ, diag(s²)),   b = sign(aᵀx*),   v | a ~ N(aᵀx, t ‖x‖²)

t = 0 gives F of the invariant logistic regression, and t = σ₂²/m gives E F̂ with m inner samples: the mean of the
measurements is Gaussian, so E F̂ and the bias are known exactly. log(1 + exp(−bv)) = log(2 cosh(v/2)) − bv/2, in which
the label enters linearly, so that the noise changes the first part only: v ~ N(μᵀx, Σ_i (s_i² + t) x_i²).

With G(t) = E log(1 + exp(−bv)) and φ the logistic loss, ∂G/∂t = ½ ‖x‖² E φ''(v), and for the k-th derivative

    ‖∇_x G⁽ᵏ⁾(t)‖ ≤ k (R²/2)ᵏ⁻¹ R sup|φ⁽²ᵏ⁾| + (R²/2)ᵏ sup|φ⁽²ᵏ⁺¹⁾| √(E‖a‖² + t)      for ‖x‖ ≤ R

which bounds the bias of estimators that extrapolate in t (docs/theory.md).
"""

import math

import numpy as np
import torch
from numpy.polynomial import Polynomial


def logistic_part(
    x: torch.Tensor, truth: torch.Tensor, mean: torch.Tensor, scale: torch.Tensor, t: float = 0.0
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return E log(1 + exp(−b v)) and its gradient for one source (x*, μ, s); x may have leading axes."""
    # k = E[sign(aᵀx*) a]: split a into its part along aᵀx*, which is Gaussian, and an independent rest.
    along = scale**2 * truth
    spread = (along @ truth).sqrt()
    z = (mean @ truth) / spread
    density = torch.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    k = mean * torch.erf(z / math.sqrt(2)) + along * (2 * density / spread)

    centre = x @ mean
    scaled = (scale**2 + t) * x
    width = (scaled * x).sum(-1).clamp_min(1e-300).sqrt()
    v, weight = _gaussian_nodes(centre, width)
    half = v / 2
    log_cosh = (weight * (half.abs() + torch.log1p(torch.exp(-v.abs())))).sum(-1)
    tanh = torch.tanh(half)
    # E[½ tanh(v/2) η] = ½ μ E tanh(v/2) + ¼ Cov(η, v) E sech²(v/2)   (Stein's lemma)
    slope = (weight * tanh).sum(-1, keepdim=True) / 2 * mean
    slope = slope + (weight * (1 - tanh * tanh)).sum(-1, keepdim=True) / 4 * scaled
    return log_cosh - (x @ k) / 2, slope - k / 2


_REACH = 12.0  # standard deviations; the probability beyond is below 1e-31
_LEGENDRE = np.polynomial.legendre.leggauss(20)


def _gaussian_nodes(centre: torch.Tensor, width: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the nodes v and weights of a quadrature of E h(v) for v ~ N(centre, width²).

    h varies near 0 on the scale 1. The panels of Gauss–Legendre nodes cover ±12 standard deviations, with additional
    borders at v = 0, ±1, ±2, ±4, …, where log cosh bends (its nearest singularities are at ±iπ).
    """
    regular = torch.linspace(-_REACH, _REACH, 25, dtype=torch.float64)
    doubling = 2.0 ** torch.arange(0, 12, dtype=torch.float64)
    bends = torch.cat([-doubling, torch.zeros(1, dtype=torch.float64), doubling])
    # In units of the standard deviation; empty panels (clamped borders) have weight 0.
    around_zero = ((bends - centre.unsqueeze(-1)) / width.unsqueeze(-1)).clamp(-_REACH, _REACH)
    borders = torch.cat([regular.expand(*centre.shape, -1), around_zero], -1).sort(-1).values
    left, right = borders[..., :-1, None], borders[..., 1:, None]
    nodes, weights = (torch.from_numpy(part) for part in _LEGENDRE)
    u = (left + right) / 2 + (right - left) / 2 * nodes
    mass = (right - left) / 2 * weights * torch.exp(-u * u / 2) / math.sqrt(2 * math.pi)
    v = centre[..., None, None] + width[..., None, None] * u
    return v.flatten(-2), mass.flatten(-2)


def largest_derivative(order: int) -> float:
    """Return sup |φ⁽ᵒʳᵈᵉʳ⁾| of the logistic loss, order at least 1: derivatives are polynomials in p = 1/(1 + e^y)."""
    p = Polynomial([0.0, 1.0])
    found = p
    for _ in range(order - 1):
        found = found.deriv() * p * (1 - p)
    roots = np.asarray(found.deriv().roots(), dtype=complex)
    inside = roots.real[(abs(roots.imag) < 1e-9) & (roots.real > 0) & (roots.real < 1)]
    return float(max(abs(found(place)) for place in (0.0, 1.0, *inside.tolist())))


def bound_gradient(order: int, radius: float, length: float) -> float:
    """Return the bound of ‖∇_x G⁽ᵏ⁾(t)‖ for k = order, ‖x‖ ≤ radius and √(E‖a‖² + t) ≤ length."""
    half = radius**2 / 2
    return (
        order * half ** (order - 1) * radius * largest_derivative(2 * order)
        + half**order * largest_derivative(2 * order + 1) * length
    )
