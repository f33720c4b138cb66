"""Networks with one output, a score, for rows of a table and for pictures.

Those for pictures of 28×28 and 32×32 pixels are from the authors' related work on decentralised AUPRC: two convolutions
for MNIST, three for CIFAR-10, each pooled, then fully connected layers. `cnn` accepts pictures of other sizes.

The six layers for CIFAR-10 need an initialisation that keeps the scale of the signal: with torch's default it shrinks
from layer to layer, and training spends hundreds of steps before the last layer receives a useful signal.
"""

from collections.abc import Callable

import torch
from torch import nn

from fedcso.core.errors import InvalidValue, UnknownName
from fedcso.models.user_network import load_network

HIDDEN = 32
"""Units of the hidden layer for tables."""


def linear(shape: torch.Size) -> nn.Module:
    """Return a network that is a weighted sum of all inputs."""
    return nn.Sequential(nn.Flatten(), nn.Linear(shape.numel(), 1))


def mlp(shape: torch.Size) -> nn.Module:
    """Return a network with one hidden layer."""
    return nn.Sequential(nn.Flatten(), nn.Linear(shape.numel(), HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 1))


def mnist(shape: torch.Size) -> nn.Module:
    """Return the network conv5(1→20)-pool-conv5(20→50)-pool-fc 800-500-1."""
    _require(shape, (1, 28, 28), "mnist")
    # Pooling and ReLU commute; pooling first leaves a quarter of the ReLUs.
    return nn.Sequential(
        *(nn.Conv2d(1, 20, 5), nn.MaxPool2d(2), nn.ReLU()),
        *(nn.Conv2d(20, 50, 5), nn.MaxPool2d(2), nn.ReLU()),
        *(nn.Flatten(), nn.Linear(800, 500), nn.ReLU(), nn.Linear(500, 1)),
    )


class HeConv2d(nn.Conv2d):
    """A convolution with the initialisation of He et al. (2015), for layers followed by ReLU."""

    def reset_parameters(self) -> None:
        """Draw weights with variance 2/inputs, and set the bias to zero."""
        _initialise_he(self)


class HeLinear(nn.Linear):
    """A fully connected layer with the initialisation of He et al. (2015)."""

    def reset_parameters(self) -> None:
        """Draw weights with variance 2/inputs, and set the bias to zero."""
        _initialise_he(self)


def _initialise_he(layer: HeConv2d | HeLinear) -> None:
    nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)


def cifar(shape: torch.Size) -> nn.Module:
    """Return the network conv3(3→16→32→64), each padded and pooled, then fc 1024-512-64-1."""
    _require(shape, (3, 32, 32), "cifar")
    channels = (3, 16, 32, 64)
    blocks: list[nn.Module] = []
    for i in range(3):
        blocks += [HeConv2d(channels[i], channels[i + 1], 3, padding=1), nn.MaxPool2d(2), nn.ReLU()]
    return nn.Sequential(
        *blocks,
        nn.Flatten(),
        *(HeLinear(1024, 512), nn.ReLU(), HeLinear(512, 64), nn.ReLU(), HeLinear(64, 1)),
    )


SMALLEST = 16
"""The least number of pixels on a side of a picture for `cnn`; pooling would leave too few of smaller ones."""


class MeanOverPixels(nn.Module):
    """The mean over pixels, (n, channels, height, width) → (n, channels); torch's own layer is slow under `vmap`."""

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        """Return the mean over the pixels."""
        return pictures.mean((-2, -1))


def cnn(shape: torch.Size) -> nn.Module:
    """Return the network conv3(→16→32→64→128→128), each padded and pooled, then the mean over pixels and fc 1.

    Convolutions are added while the shorter side has at least eight pixels.
    """
    if not _is_picture(shape):
        has = "×".join(map(str, shape))
        allowed = f"mlp, linear or auto for inputs of {has}; cnn needs pictures of at least {SMALLEST}×{SMALLEST}"
        raise InvalidValue("net", "cnn", allowed)
    channels, side = int(shape[0]), min(shape[1:])
    blocks: list[nn.Module] = []
    for wider in (16, 32, 64, 128, 128):
        if side < 8:
            break
        blocks += [HeConv2d(channels, wider, 3, padding=1), nn.MaxPool2d(2), nn.ReLU()]
        channels, side = wider, side // 2
    return nn.Sequential(*blocks, MeanOverPixels(), HeLinear(channels, 1))


COARSE = 32
"""The least number of pixels on a side that `coarse` leaves."""


def coarse(shape: torch.Size) -> nn.Module:
    """Return `cnn` on pictures that are first averaged over squares of pixels: for large pictures and little time."""
    square = max(1, min(shape[1:]) // COARSE) if _is_picture(shape) else 1
    smaller = torch.Size((shape[0], *(side // square for side in shape[1:])))
    return nn.Sequential(nn.AvgPool2d(square), cnn(smaller))


NETS: dict[str, Callable[[torch.Size], nn.Module]] = {
    "linear": linear,
    "mlp": mlp,
    "mnist": mnist,
    "cifar": cifar,
    "cnn": cnn,
    "coarse": coarse,
}
"""Networks by name; each is built for the shape of one input."""

NETS_BY_SHAPE: dict[tuple[int, ...], Callable[[torch.Size], nn.Module]] = {(1, 28, 28): mnist, (3, 32, 32): cifar}
"""Networks that `auto` chooses for pictures of these sizes; it chooses `cnn` for other pictures, else `mlp`."""


def build_network(name: str, shape: torch.Size) -> nn.Module:
    """Return the network of that name, or `path.py:Name`, for inputs of this shape."""
    if name == "auto":
        return NETS_BY_SHAPE.get(tuple(shape), cnn if _is_picture(shape) else mlp)(shape)
    if name.rpartition(":")[0]:
        return load_network(name, shape)
    if name not in NETS:
        raise UnknownName("net", name, ["auto", *NETS, "path.py:Name"])
    return NETS[name](shape)


def _is_picture(shape: torch.Size) -> bool:
    return len(shape) == 3 and min(shape[1:]) >= SMALLEST


def _require(shape: torch.Size, wanted: tuple[int, ...], name: str) -> None:
    if tuple(shape) != wanted:
        has, needs = ("×".join(map(str, s)) for s in (shape, wanted))
        raise InvalidValue("net", name, f"mlp, linear or auto for inputs of {has}; {name} needs {needs}")
