"""Labelled examples, the form in which data sets come."""

from typing import NamedTuple

import torch


class Examples(NamedTuple):
    """A data set, a client's share, or a batch: inputs and integer labels, along the first axis."""

    inputs: torch.Tensor
    labels: torch.Tensor
