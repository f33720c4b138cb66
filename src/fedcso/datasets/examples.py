"""Labelled examples, the form of most data sets."""

from collections.abc import Sequence
from typing import NamedTuple

import torch


class Examples(NamedTuple):
    """Inputs and integer labels along the first axis: a data set, a client's part of it, or a batch."""

    inputs: torch.Tensor
    labels: torch.Tensor

    def select(self, rows: torch.Tensor) -> "Examples":
        """Return the examples with these indices."""
        return Examples(self.inputs[rows], self.labels[rows])

    def summary(self) -> str:
        """Return a description of the size, in words."""
        shape = "×".join(map(str, self.inputs.shape[1:]))
        return f"{len(self.labels)} examples of {shape}, {len(set(self.labels.tolist()))} classes"


def pool_examples(parts: Sequence[Examples]) -> Examples:
    """Return all clients' examples together, for single-machine methods and as an upper bound for federated ones.

    Those of a single client are not copied.
    """
    if len(parts) == 1:
        return Examples(parts[0].inputs[:], parts[0].labels[:])
    return Examples(*(torch.cat([part[:] for part in column]) for column in zip(*parts, strict=True)))
