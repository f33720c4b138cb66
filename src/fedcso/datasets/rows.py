"""Many clients, one array: each holds the numbers of its own rows, and nothing is copied until rows are asked for."""

from pathlib import Path
from typing import Any, cast

import numpy as np
import torch

from fedcso.datasets.examples import Examples


class Rows:
    """Some rows of a shared array. Stands in for a tensor of them wherever rows are taken by number."""

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
        """As of the tensor it stands for."""
        return torch.Size((len(self.which), *self.array.shape[1:]))

    @property
    def dtype(self) -> torch.dtype:
        """As of the array."""
        return self.array.dtype


def share(examples: Examples, which: torch.Tensor) -> Examples:
    """A client's examples by number: labels are its own, inputs stay in the array that all share."""
    return Examples(cast(torch.Tensor, Rows(examples.inputs, which)), examples.labels[which])


def memory_mapped(array: np.ndarray, file: Path) -> torch.Tensor:
    """The array from a file: pages are read when they are needed, and shared by all processes of a machine."""
    np.save(file, array)
    return torch.from_numpy(np.load(file.with_suffix(".npy"), mmap_mode="c"))
