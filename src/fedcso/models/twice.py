"""Convolution and batch norm with cheap second derivatives, for networks that are differentiated twice (MAML).

Values and first derivatives are torch's own. Torch composes the second derivatives of many small operators; those of
batch norm took most of the time of a support set's share in a meta-gradient. Here they are written out.

A convolution is bilinear in images and kernels, so its second derivatives are convolutions again.

Batch norm, with means over all examples and pixels of a channel, and g the derivative by its output y:

    x̂ = (x − mean x) / σ        y = w x̂ + b
    dx = (w/σ) (g − mean g − x̂ mean(g x̂))        dw = Σ g x̂        db = Σ g

For derivatives u, v, c by dx, dw, db, the derivatives by g and x are linear combinations of u, g, x̂ and 1, with
coefficients for each channel that need only the means of u, g, u x̂, g x̂ and u g.
"""

from typing import Any

import torch
from torch import nn
from torch.autograd.function import once_differentiable

Pair = tuple[int, ...]
"""Numbers for height and width."""


class Convolution(nn.Conv2d):
    """A convolution with a bias of images (n, channels, height, width), padded by zeros."""

    def __init__(self, inputs: int, outputs: int, size: int, stride: int = 1, padding: int = 0):
        super().__init__(inputs, outputs, size, stride, padding)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return the features of the images."""
        if not torch.is_grad_enabled():
            return super().forward(images)
        assert self.bias is not None
        found: torch.Tensor = _apply(_Convolution, images, self.weight, self.stride, self.padding)
        return found + self.bias.view(-1, 1, 1)


class BatchNorm(nn.BatchNorm2d):
    """Batch norm of images (n, channels, height, width) by the mean and variance of the batch, in evaluation too."""

    def __init__(self, channels: int):
        super().__init__(channels, track_running_stats=False)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return the normalised images."""
        if not torch.is_grad_enabled():
            return super().forward(images)
        found: torch.Tensor = _apply(_Norm, images, self.weight, self.bias, self.eps)
        return found


def _apply(function: type[torch.autograd.Function], *given: Any) -> Any:
    return function.apply(*given)  # type: ignore[no-untyped-call]  # torch does not say what it returns


def _convolve(x: torch.Tensor, w: torch.Tensor, how: tuple[Pair, Pair]) -> torch.Tensor:
    stride, padding = how
    return torch.conv2d(x, w, None, stride, padding)


def _backward_convolution(
    g: torch.Tensor, x: torch.Tensor, w: torch.Tensor, how: tuple[Pair, Pair], wanted: tuple[bool, bool]
) -> tuple[torch.Tensor | None, torch.Tensor | None]:
    """Return the derivatives by images and kernels."""
    undilated, groups = (1, 1), 1
    dx, dw, _ = torch.ops.aten.convolution_backward(
        g, x, w, None, *how, undilated, False, (0, 0), groups, [*wanted, False]
    )
    return dx, dw


class _Convolution(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, w: torch.Tensor, stride: Pair, padding: Pair) -> torch.Tensor:
        ctx.save_for_backward(x, w)
        ctx.how = how = stride, padding
        return _convolve(x, w, how)

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> Any:
        return *_apply(_ConvolutionBackward, g, *ctx.saved_tensors, ctx.how, ctx.needs_input_grad[:2]), None, None


class _ConvolutionBackward(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, g: torch.Tensor, x: torch.Tensor, w: torch.Tensor, how: tuple[Pair, Pair], wanted: tuple[bool, bool]
    ) -> tuple[torch.Tensor | None, torch.Tensor | None]:
        ctx.save_for_backward(g, x, w)
        ctx.how = how
        return _backward_convolution(g, x, w, how, wanted)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, u: torch.Tensor | None, v: torch.Tensor | None) -> Any:
        g, x, w = ctx.saved_tensors
        dg = [_convolve(a, b, ctx.how) for a, b in ((u, w), (x, v)) if a is not None and b is not None]
        dx = None if v is None else _backward_convolution(g, x, v, ctx.how, (ctx.needs_input_grad[1], False))[0]
        dw = None if u is None else _backward_convolution(g, u, w, ctx.how, (False, True))[1]
        return sum(dg[1:], start=dg[0]), dx, dw, None, None


class _Norm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, eps: float) -> torch.Tensor:
        y, mean, scale = torch.native_batch_norm(x, w, b, None, None, True, 0.0, eps)  # scale = 1/σ
        ctx.save_for_backward(x, w, mean, scale)
        return y

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> Any:
        return *_apply(_NormBackward, g, *ctx.saved_tensors), None


class _NormBackward(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, g: torch.Tensor, x: torch.Tensor, w: torch.Tensor, mean: torch.Tensor, scale: torch.Tensor
    ) -> Any:
        ctx.save_for_backward(g, x, w, mean, scale)
        return torch.ops.aten.native_batch_norm_backward(g, x, w, None, None, mean, scale, True, 0.0, [True] * 3)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, u: torch.Tensor, v: torch.Tensor, c: torch.Tensor) -> Any:
        given, x, w, mean, scale = ctx.saved_tensors
        g, z, u = _rows(given), torch.addcmul(-mean * scale, _rows(x), scale), _rows(u)  # z = x̂
        mean_u, mean_g, uz, gz, ug = (one.mean(0) for one in (u, g, u * z, g * z, u * g))
        rest = ug - mean_u * mean_g - uz * gz  # Σ u dx = count · (w/σ) · rest
        by_z_u, by_z_g = -w * scale * gz, v - w * scale * uz  # ∂/∂x̂ = by_z_u · u + by_z_g · g, with σ fixed
        dg = _combine((u, w * scale), (z, by_z_g), c - w * scale * mean_u)
        dx = _combine(
            (u, scale * by_z_u),
            (g, scale * by_z_g),
            (z, -scale * (by_z_u * uz + by_z_g * gz + w * scale * rest)),
            -scale * (by_z_u * mean_u + by_z_g * mean_g),
        )
        return _images(dg, given), _images(dx, given), len(z) * scale * rest, None, None


def _rows(images: torch.Tensor) -> torch.Tensor:
    """Return images (n, channels, height, width) as a matrix: a row for each pixel, a column for each channel."""
    return images.movedim(1, -1).reshape(-1, images.shape[1])


def _images(rows: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    n, channels, height, width = like.shape
    return rows.view(n, height, width, channels).movedim(-1, 1)


def _combine(*terms: Any) -> torch.Tensor:
    """Return Σ matrix · coefficient + constant, with coefficients for each column; the constant is the last term."""
    total: torch.Tensor = terms[-1]
    for matrix, coefficients in terms[:-1]:
        total = torch.addcmul(total, matrix, coefficients)
    return total
