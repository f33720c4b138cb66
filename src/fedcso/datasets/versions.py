"""Data augmentation with mirrored and shifted pictures.

A picture that is mirrored, or shifted by a few pixels, shows the same thing. `Versions` represents all versions of a
client's pictures but stores each picture once: version v of picture i has the index i·V + v and is made when accessed.
Code that draws indices at random thereby draws pictures and versions at random, without knowing about versions.
"""

from typing import Any, NamedTuple, cast

import torch

from fedcso.datasets.examples import Examples
from fedcso.datasets.rows import Rows


class Variation(NamedTuple):
    """The versions of a picture that are used as additional examples."""

    mirrored: bool = False
    """Also mirror the picture, left to right."""
    moved: int = 0
    """Also shift the picture by up to this many pixels, vertically and horizontally."""

    @property
    def each(self) -> int:
        """The number V of versions of one picture."""
        return (1 + self.mirrored) * (2 * self.moved + 1) ** 2

    def of(self, examples: Examples) -> Examples:
        """Return all versions of all pictures, with their labels."""
        if self.each == 1:
            return examples
        versions = cast(torch.Tensor, Versions(examples.inputs, self))
        return Examples(versions, examples.labels.repeat_interleave(self.each))


class Versions:
    """All versions of pictures (n, channels, height, width), usable like a tensor of them wherever `Rows` is."""

    def __init__(self, pictures: torch.Tensor | Rows, variation: Variation):
        self.pictures, self.variation = pictures, variation

    def __len__(self) -> int:
        return len(self.pictures) * self.variation.each

    @property
    def shape(self) -> torch.Size:
        """The shape of a tensor of all versions."""
        return torch.Size((len(self), *self.pictures.shape[1:]))

    @property
    def dtype(self) -> torch.dtype:
        """The type of the pictures."""
        return self.pictures.dtype

    def __getitem__(self, where: Any) -> torch.Tensor:
        """Return versions by index; pixels shifted in from outside repeat the edge."""
        which = where if isinstance(where, torch.Tensor) else torch.arange(len(self))[where]
        number, version = which // self.variation.each, which % self.variation.each
        most, side = self.variation.moved, 2 * self.variation.moved + 1
        down, right, mirrored = version // side % side - most, version % side - most, version // side**2 == 1
        pictures = self.pictures[number]
        channels, height, width = pictures.shape[-3:]
        rows = (torch.arange(height) - down[..., None]).clamp(0, height - 1)
        columns = (torch.arange(width) - right[..., None]).clamp(0, width - 1)
        columns = torch.where(mirrored[..., None], width - 1 - columns, columns)
        pixels = (rows[..., :, None] * width + columns[..., None, :]).flatten(-2).unsqueeze(-2)
        return pictures.flatten(-2).gather(-1, pixels.expand(*which.shape, channels, -1)).reshape(pictures.shape)
