"""Compare alternative ways to compute the gradient of W3's network with the one that fedcso uses.

    python -m benchmarks.attempts

One client, one thread, the CIFAR network, 40 pictures. All alternatives give the same gradient, which is checked first.
"""

import sys
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call

from benchmarks.results import save
from benchmarks.timing import Alternatives, as_rows, describe_machine, interleave, report
from fedcso.core.tree import Tree, leaves, map_leaves
from fedcso.core.workers import keep_freed_memory, one_thread
from fedcso.models.functional import Functional
from fedcso.models.score_nets import cifar

PICTURES, PORTION = 40, 10
USUAL = "as fedcso does it"
Forward = Callable[[Tree, torch.Tensor], torch.Tensor]
Gradient = Callable[[Tree, torch.Tensor], list[torch.Tensor]]


class AsMatrixProduct(nn.Conv2d):
    """A convolution as one matrix product of its kernels with all patches of the pictures."""

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        """Return the features, in the size of the pictures."""
        patches = F.unfold(pictures, self.kernel_size, padding=self.kernel_size[0] // 2).transpose(1, 2)
        assert self.bias is not None
        found = patches @ self.weight.flatten(1).t() + self.bias
        return found.transpose(1, 2).reshape(len(pictures), -1, *pictures.shape[-2:])


class PoolingOfViews(torch.autograd.Function):
    """Pooling of 2×2 pixels as the maximum of four views, without indices and without zeros to be filled in."""

    @staticmethod
    def forward(ctx: Any, features: torch.Tensor) -> torch.Tensor:
        """Return the maxima."""
        a, b, c, d = (features[:, :, i::2, j::2] for i in (0, 1) for j in (0, 1))
        largest = torch.maximum(torch.maximum(a, b), torch.maximum(c, d))
        ctx.save_for_backward(features, largest)
        return largest

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> torch.Tensor:
        """Return the gradient at the pixels that are the maxima, and 0 at others."""
        features, largest = ctx.saved_tensors
        found = torch.empty_like(features)
        for i in (0, 1):
            for j in (0, 1):
                here = features[:, :, i::2, j::2] == largest
                found[:, :, i::2, j::2] = torch.where(here, gradients[0], 0)
        return found


class PoolViews(nn.Module):
    """A layer of such pooling."""

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Return the maxima."""
        pooled: torch.Tensor = PoolingOfViews.apply(features)  # type: ignore[no-untyped-call]
        return pooled


def network() -> nn.Sequential:
    module = cifar(torch.Size((3, 32, 32)))
    assert isinstance(module, nn.Sequential)
    return module


def in_portions() -> Forward:
    """Apply the convolutions to a few pictures at a time, so that features stay in the cache."""
    module = network()
    end = next(place for place, layer in enumerate(module) if isinstance(layer, nn.Flatten)) + 1
    convolutions, rest = Functional(module[:end]), Functional(module[end:])

    def forward(x: Tree, pictures: torch.Tensor) -> torch.Tensor:
        kernels = {name: leaf for name, leaf in x.items() if int(name.split(".")[0]) < end}
        others = {name: leaf for name, leaf in x.items() if name not in kernels}
        features = [convolutions.apply(kernels, some) for some in torch.split(pictures, PORTION)]
        return rest.apply(others, torch.cat(features))

    return forward


def first_as_matrix_product() -> Forward:
    module = network()
    module[0] = AsMatrixProduct(3, 16, 3, padding=1)
    return Functional(module).apply


def relu_before_pooling() -> Forward:
    """Apply ReLU before pooling, which is the usual order and has four times as many ReLUs."""
    layers = list(network())
    for place in [place for place, layer in enumerate(layers) if isinstance(layer, nn.MaxPool2d)]:
        layers[place], layers[place + 1] = layers[place + 1], layers[place]
    return Functional(nn.Sequential(*layers)).apply


def pooling_of_views() -> Forward:
    return Functional(
        nn.Sequential(*(PoolViews() if isinstance(one, nn.MaxPool2d) else one for one in network()))
    ).apply


def functional_calls() -> Forward:
    """Replace the module's parameters by torch's own function, kernels with channels last as usual."""
    module = network()

    def forward(x: Tree, pictures: torch.Tensor) -> torch.Tensor:
        output: torch.Tensor = functional_call(
            module, {name: channels_last(leaf) for name, leaf in x.items()}, pictures
        )
        return output

    return forward


def channels_first() -> Forward:
    module = network()
    return lambda x, pictures: functional_call(module, x, (pictures.contiguous(),))


def channels_last(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous(memory_format=torch.channels_last) if tensor.ndim == 4 else tensor


def gradient_of(forward: Forward) -> Gradient:
    return lambda x, pictures: list(torch.autograd.grad(forward(x, pictures).square().mean(), leaves(x)))


def flushing(gradient: Gradient) -> Gradient:
    """Take numbers that are too small to be normal for zeros."""

    def found(x: Tree, pictures: torch.Tensor) -> list[torch.Tensor]:
        torch.set_flush_denormal(True)
        try:
            return gradient(x, pictures)
        finally:
            torch.set_flush_denormal(False)

    return found


def main(quick: bool = False) -> None:
    describe_machine()
    keep_freed_memory()
    usual = Functional(network)
    x = map_leaves(torch.Tensor.requires_grad_, usual.init(torch.Generator().manual_seed(0)))
    pictures = channels_last(torch.randn(PICTURES, 3, 32, 32, generator=torch.Generator().manual_seed(1)))
    forwards: dict[str, Forward] = {
        USUAL: usual.apply,
        "pictures with channels first": lambda x, pictures: usual.apply(x, pictures.contiguous()),
        "pictures and kernels with channels first": channels_first(),
        "torch.func.functional_call": functional_calls(),
        "ReLU before pooling": relu_before_pooling(),
        "pooling as the maximum of four views": pooling_of_views(),
        f"convolutions {PORTION} pictures at a time": in_portions(),
        "first convolution as matrix product": first_as_matrix_product(),
    }
    if not quick:  # compiling takes half a minute
        forwards["compiled (torch.compile)"] = torch.compile(usual.apply, dynamic=False)
    ways = {name: gradient_of(forward) for name, forward in forwards.items()}
    ways["torch.set_flush_denormal"] = flushing(ways[USUAL])
    with one_thread():
        expected = ways[USUAL](x, pictures)
        work: Alternatives = {}
        for name, gradient in ways.items():
            for found, wanted in zip(gradient(x, pictures), expected, strict=True):
                torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-4)
            times = 5 if quick else 20
            work[name] = (lambda f=gradient, n=times: [f(x, pictures) for _ in range(n)], times)  # type: ignore[misc]
        timings = interleave(work, repetitions=2 if quick else 7)
    report("The gradient of W3's network at one client, one thread", timings, USUAL, "gradient")
    save("attempts", gradient=as_rows(timings, USUAL))


if __name__ == "__main__":
    main("--quick" in sys.argv)
