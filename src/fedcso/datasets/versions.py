"""Mirrored and moved pictures: more to learn from the same data.

A picture that is moved by a few pixels, or seen in a mirror, shows the same thing. `Versions` stands for all versions
of a client's pictures and holds the pictures once: version v of picture i has the number i·V + v, and is made when it
is asked for. Whoever draws numbers at random thereby draws pictures and versions at random, and need not know of
either.
"""

from typing import Any, NamedTuple, cast

import torch

from fedcso.datasets.examples import Examples
from fedcso.datasets.rows import Rows


class Variation(NamedTuple):
    """Which versions of a picture count as examples of the same kind."""

    mirrored: bool = False
    """Also with left and right exchanged."""
    moved: int = 0
    """Also moved by up to this many pixels, down or up and to the right or left."""

    @property
    def each(self) -> int:
        """V, the number of versions of one picture."""
        return (1 + self.mirrored) * (2 * self.moved + 1) ** 2

    def of(self, examples: Examples) -> Examples:
        """All versions of all pictures."""
        if self.each == 1:
            return examples
        versions = cast(torch.Tensor, Versions(examples.inputs, self))
        return Examples(versions, examples.labels.repeat_interleave(self.each))


class Versions:
    """All versions of pictures (number, channels, height, width). Stands in for a tensor of them, as `Rows` does."""

    def __init__(self, pictures: torch.Tensor | Rows, variation: Variation):
        self.pictures, self.variation = pictures, variation

    def __len__(self) -> int:
        return len(self.pictures) * self.variation.each

    @property
    def shape(self) -> torch.Size:
        """As of the tensor it stands for."""
        return torch.Size((len(self), *self.pictures.shape[1:]))

    @property
    def dtype(self) -> torch.dtype:
        """As of the pictures."""
        return self.pictures.dtype

    def __getitem__(self, where: Any) -> torch.Tensor:
        """Versions by number; what a move brings in from outside repeats the edge."""
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
