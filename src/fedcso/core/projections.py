"""Projections onto closed convex sets, for `Problem.project`.

Each acts on the last axis of a tensor and accepts any leading axes.
"""

import torch

from fedcso.core.errors import InvalidValue, require_positive


def ball(x: torch.Tensor, radius: float = 1.0) -> torch.Tensor:
    """Project onto {x : ‖x‖ ≤ radius}."""
    require_positive("radius", radius)
    norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    # Points inside are returned exactly; clamp_min keeps 0/0 out of the gradient.
    return torch.where(norm > radius, x * (radius / norm.clamp_min(radius)), x)


def box(x: torch.Tensor, low: float = -1.0, high: float = 1.0) -> torch.Tensor:
    """Project onto {x : low ≤ x_i ≤ high}."""
    if low > high:
        raise InvalidValue("low", low, f"at most high = {high}")
    return x.clamp(low, high)


def nonnegative(x: torch.Tensor) -> torch.Tensor:
    """Project onto {x : x_i ≥ 0}."""
    return x.clamp_min(0)


def simplex(x: torch.Tensor, total: float = 1.0) -> torch.Tensor:
    """Project onto {x : x_i ≥ 0, Σ x_i = total}: sort, find the threshold θ, clip x − θ at 0 (Held et al. 1974)."""
    require_positive("total", total)
    x = x - x.amax(-1, keepdim=True)  # a shift does not change the projection, and avoids the rounding of large numbers
    ordered = x.sort(dim=-1, descending=True).values
    excess = ordered.cumsum(-1) - total
    counts = torch.arange(1, x.shape[-1] + 1, dtype=x.dtype, device=x.device)
    support = (ordered * counts > excess).sum(-1, keepdim=True).clamp_min(1)
    threshold = excess.gather(-1, support - 1) / support
    return (x - threshold).clamp_min(0)
