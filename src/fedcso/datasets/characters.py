"""Handwritten characters, the form in which few-shot data come: many classes, few drawings of each."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import torch

from fedcso.core.errors import FedcsoError, InvalidValue, require_count

SIDE = 28
"""Height and width of a drawing in pixels."""


class Characters(NamedTuple):
    """Three sets of characters that share none, so that what is tested was never trained on.

    Each is a uint8 tensor (classes, drawings, 28, 28) with ink 255 on a background of 0: a tenth of the memory
    of floats and more, and divided by 255 ink is 1. A class is its place along the first axis; labels belong to
    the tasks drawn from it.
    """

    train: torch.Tensor
    validation: torch.Tensor
    test: torch.Tensor

    def summary(self) -> str:
        """Return in words how much there is."""
        classes = ", ".join(f"{len(images)} {split}" for split, images in self._asdict().items())
        drawings, height, width = self.train.shape[1:]
        return f"{sum(map(len, self))} classes ({classes}) with {drawings} drawings of {height}×{width} each"


def with_rotations(images: torch.Tensor) -> torch.Tensor:
    """Four times the classes: each turned by 0, 90, 180 and 270° is a class of its own (Santoro et al., 2016)."""
    return torch.cat([torch.rot90(images, quarter, (-2, -1)) for quarter in range(4)])


def spread(images: torch.Tensor, clients: int, seed: int) -> list[torch.Tensor]:
    """Each client's classes: dealt by the split seed, no class at two clients, shares equal up to one class."""
    require_count("clients", clients)
    if clients > len(images):
        raise InvalidValue("clients", clients, f"at most the {len(images)} classes there are")
    order = np.random.default_rng((seed, 1)).permutation(len(images))
    return [images[torch.from_numpy(part)] for part in np.array_split(order, clients)]


def check(images: Iterable[torch.Tensor], needed: int) -> None:
    """Each class must have `needed` drawings of 28×28; for a tensor, or for a list with one tensor a class."""
    for number, drawings in enumerate(images):
        if drawings.shape[1:] != (SIDE, SIDE):
            shape = "×".join(map(str, drawings.shape))
            raise FedcsoError(f"class {number} has the shape {shape}; it must be (drawings)×{SIDE}×{SIDE}")
        if len(drawings) < needed:
            raise FedcsoError(f"class {number} has {len(drawings)} drawings, but {needed} are needed of each class")
