"""A gradient step whose derivative is approximated by differences of gradients, without second derivatives.

    y = x − λ ∇L(x),       v ↦ v − λ ( ∇L(x + δ'v) − ∇L(x − δ'v) ) / 2δ',      δ' = δ/‖v‖

The exact derivative is v − λ ∇²L(x) v; the error is of order δ², and 0 if L is quadratic. Dividing by ‖v‖ keeps the
difference well above rounding errors in float32, whatever the length of v.

Reference: Per-FedAvg (HF), Fallah, Mokhtari, Ozdaglar, NeurIPS 2020, where δ is not divided by ‖v‖.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from fedcso.core.tree import Tree, add_scaled, leaves, norm, subtract, unflatten_like

Slope = Callable[[Tree, Tree], Tree]
"""(x, examples) → ∇L(x; examples)."""


def hessian_free_step(slope: Slope, x: Tree, support: Tree, rate: float, difference: float) -> Tree:
    """Return x − λ∇L(x; support), with rate λ; its derivative is approximated with difference δ."""
    rebuild_x, rebuild_support = partial(unflatten_like, x), partial(unflatten_like, support)
    tensors = (*leaves(support), *leaves(x))
    step: Any = _Step  # torch does not declare the types of `apply`
    return rebuild_x(step.apply(slope, rebuild_support, rebuild_x, rate, difference, len(leaves(support)), *tensors))


class _Step(torch.autograd.Function):
    """The step on leaves. All tensors are arguments, because `vmap` does not see those in a closure."""

    generate_vmap_rule = True

    @staticmethod
    def forward(
        slope: Slope,
        rebuild_support: Callable[..., Tree],
        rebuild_x: Callable[..., Tree],
        rate: float,
        difference: float,
        split: int,
        *tensors: torch.Tensor,
    ) -> tuple[torch.Tensor, ...]:
        """Return the leaves of x − λ∇L(x)."""
        support, x = rebuild_support(tensors[:split]), rebuild_x(tensors[split:])
        return tuple(leaves(add_scaled(x, slope(x, support), -rate)))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Keep the point and the examples."""
        *ctx.settings, ctx.split = inputs[:6]
        ctx.save_for_backward(*inputs[6:])

    @staticmethod
    def backward(ctx: Any, *slopes: torch.Tensor) -> tuple[Any, ...]:
        """Return the derivative along the slopes v."""
        slope, rebuild_support, rebuild_x, rate, difference = ctx.settings
        support, x = rebuild_support(ctx.saved_tensors[: ctx.split]), rebuild_x(ctx.saved_tensors[ctx.split :])
        v = rebuild_x(slopes)
        length = difference / norm(v).clamp_min(torch.finfo(slopes[0].dtype).tiny)
        ahead, behind = (slope(add_scaled(x, v, sign * length), support) for sign in (1, -1))
        pulled_back = add_scaled(v, subtract(ahead, behind), -rate / (2 * length))
        return *[None] * (6 + ctx.split), *leaves(pulled_back)
