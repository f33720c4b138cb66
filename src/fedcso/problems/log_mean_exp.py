"""Numerics of objectives f(E g) = τ log E exp(ℓ/τ), in which exp overflows easily.

Methods that track the inner value average g itself, so it must be a number: the logarithm or a moving maximum would not
do. Therefore g = exp((ℓ − c)/τ) with a fixed c, f(y) = τ log y + c, and exp is continued by a straight line where it
would overflow, and y is kept above the smallest number. Gradients stay finite for every x, and nothing changes within
the range, |ℓ − c| < 70 τ in float32 and 560 τ in float64.
"""

import math

import torch


def safe_exp(exponent: torch.Tensor) -> torch.Tensor:
    """Return exp(a), continued by its tangent where it would come near to an overflow."""
    largest = math.floor(0.8 * math.log(torch.finfo(exponent.dtype).max))  # leaves room for the line, and for sums
    return torch.exp(exponent.clamp_max(largest)) * (1 + (exponent - largest).relu())


def safe_log(value: torch.Tensor) -> torch.Tensor:
    """Return log(y), with y kept above the smallest number."""
    return torch.log(value.clamp_min(torch.finfo(value.dtype).tiny))
