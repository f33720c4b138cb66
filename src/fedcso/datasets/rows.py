"""Rows of an array that many clients share: each has the indices of its rows, and rows are copied when accessed."""

from pathlib import Path
from typing import Any, cast

import numpy as np
import torch

from fedcso.datasets.examples import Examples


class Rows:
    """Some rows of a shared array, usable like a tensor of these rows wherever rows are accessed by index."""

    def __init__(self, array: torch.Tensor, which: torch.Tensor):
        self.array, self.which = array, which

    def __getitem__(self, where: Any) -> torch.Tensor:
        return self.array[self.which[where]]

    def __len__(self) -> int:
        return len(self.which)

    def materialise(self) -> torch.Tensor:
        """Return a copy of the rows as one tensor."""
        return self[:]

    @property
    def shape(self) -> torch.Size:
        """The shape of a tensor of these rows."""
        return torch.Size((len(self.which), *self.array.shape[1:]))

    @property
    def dtype(self) -> torch.dtype:
        """The type of the array."""
        return self.array.dtype


def share(examples: Examples, which: torch.Tensor) -> Examples:
    """Return a client's examples by index; labels are copied, inputs stay in the shared array."""
    return Examples(cast(torch.Tensor, Rows(examples.inputs, which)), examples.labels[which])


def memory_mapped(array: np.ndarray, file: Path) -> torch.Tensor:
    """Save the array to a file and return it memory-mapped: pages are read on demand and shared by all processes."""
    np.save(file, array)
    return torch.from_numpy(np.load(file.with_suffix(".npy"), mmap_mode="c"))
