"""Handwritten characters, the form of few-shot data sets: many classes with few drawings each."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import torch

from fedcso.core.errors import FedcsoError, InvalidValue, require_count

SIDE = 28
"""Height and width of a drawing in pixels."""


class Characters(NamedTuple):
    """Three disjoint sets of characters, so that tests use characters that were not trained on.

    Each is a uint8 tensor (classes, drawings, 28, 28) with ink 255 on a background of 0, which takes a quarter of the
    memory of floats. The first axis is the class; labels are assigned by the tasks that are drawn from it.
    """

    train: torch.Tensor
    validation: torch.Tensor
    test: torch.Tensor

    def summary(self) -> str:
        """Return a description of the size, in words."""
        classes = ", ".join(f"{len(images)} {split}" for split, images in self._asdict().items())
        drawings, height, width = self.train.shape[1:]
        return f"{sum(map(len, self))} classes ({classes}) with {drawings} drawings of {height}×{width} each"


def with_rotations(images: torch.Tensor) -> torch.Tensor:
    """Return four times the classes: each rotation by 0, 90, 180 and 270° is a new class (Santoro et al., 2016)."""
    return torch.cat([torch.rot90(images, quarter, (-2, -1)) for quarter in range(4)])


def split_classes(images: torch.Tensor, clients: int, seed: int) -> list[torch.Tensor]:
    """Return each client's classes: assigned at random by the seed, disjoint, and equally many up to one."""
    require_count("clients", clients)
    if clients > len(images):
        raise InvalidValue("clients", clients, f"at most {len(images)}, the number of classes")
    order = np.random.default_rng((seed, 1)).permutation(len(images))
    return [images[torch.from_numpy(part)] for part in np.array_split(order, clients)]


def check(images: Iterable[torch.Tensor], needed: int) -> None:
    """Raise `FedcsoError` unless each class has `needed` drawings of 28×28; `images` has one tensor for each class."""
    for number, drawings in enumerate(images):
        if drawings.shape[1:] != (SIDE, SIDE):
            shape = "×".join(map(str, drawings.shape))
            raise FedcsoError(f"class {number} has the shape {shape}; it must be drawings×{SIDE}×{SIDE}")
        if len(drawings) < needed:
            raise FedcsoError(f"class {number} has {len(drawings)} drawings, but each class needs {needed}")
