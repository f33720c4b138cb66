"""Labelled examples, the form in which data sets come."""

from collections.abc import Sequence
from typing import NamedTuple

import torch


class Examples(NamedTuple):
    """A data set, a client's share, or a batch: inputs and integer labels, along the first axis."""

    inputs: torch.Tensor
    labels: torch.Tensor

    def summary(self) -> str:
        """Return in words how much there is."""
        shape = "×".join(map(str, self.inputs.shape[1:]))
        return f"{len(self.labels)} examples of {shape}, {len(set(self.labels.tolist()))} classes"


def pooled(parts: Sequence[Examples]) -> Examples:
    """All clients' examples in one place: for methods of a single machine, and as a ceiling."""
    return Examples(*(torch.cat([part[:] for part in column]) for column in zip(*parts, strict=True)))
