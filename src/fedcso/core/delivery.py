"""A trained network that can be exported."""

from typing import NamedTuple

import torch
from torch import nn


class Delivery(NamedTuple):
    """A network with its trained parameters, and inputs as it takes them."""

    module: nn.Module
    inputs: torch.Tensor
