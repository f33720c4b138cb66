"""Handwritten characters, the form of few-shot data sets: many classes with few drawings each."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Literal, NamedTuple

import numpy as np
import torch

from fedcso.core.errors import FedcsoError, InvalidValue, require_count

SIDE = 28
"""Height and width of a drawing in pixels."""


class Characters(NamedTuple):
    """Three disjoint sets of characters, so that tests use characters that were not trained on.

    Each is a uint8 tensor (classes, drawings, 28, 28) with ink 255 on a background of 0, which takes a quarter of the
    memory of floats. The first axis is the class; labels are assigned by the tasks that are drawn from it. A user's own
    images can have another size, and an axis of three channels before height and width.
    """

    train: torch.Tensor
    validation: torch.Tensor
    test: torch.Tensor

    def summary(self) -> str:
        """Return a description of the size, in words."""
        classes = ", ".join(f"{len(images)} {split}" for split, images in self._asdict().items())
        drawings, *_, height, width = self.train.shape[1:]
        return f"{sum(map(len, self))} classes ({classes}) with {drawings} drawings of {height}×{width} each"


class ImageForm(NamedTuple):
    """The form in which a network gets images, so that new ones can be brought into it."""

    size: int = SIDE
    """Height and width in pixels."""
    channels: Literal["grey", "colour"] = "grey"
    inverted: bool = False
    """True if images are inverted: those of characters have ink 255 on a background of 0."""

    @property
    def depth(self) -> int:
        """The number of channels."""
        return 1 if self.channels == "grey" else 3


class ClassSource(NamedTuple):
    """Classes of images with what is known of them."""

    characters: Characters
    form: ImageForm = ImageForm(inverted=True)
    holders: Mapping[str, torch.Tensor] = MappingProxyType({})
    """The indices of each client's training classes, by the client's name; empty if they are to be divided."""
    smallest: str = "a class"
    """What messages call the class with the fewest images."""
    notes: Sequence[str] = ()
    """Notes for the user on decisions that were made automatically."""


def with_channels(images: torch.Tensor) -> torch.Tensor:
    """Return images (classes, drawings, channels, height, width); grey images may be given without the channels."""
    return images.unsqueeze(2) if images.ndim == 4 else images


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
