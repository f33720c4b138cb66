"""Four convolutions for few-shot learning on 28×28 characters or other small images, as in Finn et al. (2017).

Each block is a 3×3 convolution, batch norm with batch statistics, and ReLU. For Omniglot the convolutions are STRIDED
and there is no pooling (28 → 14 → 7 → 4 → 2); the variant with max-pooling costs about six times as much. The features
are averaged over the pixels that remain, so images of any size from `SMALLEST` on are accepted.

The last layer is initialised to zero. The labels of a task are in random order, so no other start is better, and from
zero the first adaptation step moves each row towards the mean features of its class.
"""

import torch
import torch.nn.functional as F
from torch import nn

from fedcso.models.twice import BatchNorm, Convolution

SMALLEST = 16
"""The smallest height and width: four poolings halve it to one pixel."""


class ZeroLinear(nn.Linear):
    """A linear layer that is initialised to zero."""

    def reset_parameters(self) -> None:
        """Set weights and bias to zero."""
        nn.init.zeros_(self.weight)
        nn.init.zeros_(self.bias)


class Conv4(nn.Module):
    """A network from images (n, channels, height, width) to logits (n, ways)."""

    def __init__(self, ways: int = 5, filters: int = 64, pooling: bool = False, channels: int = 1):
        super().__init__()
        self.pooling = pooling
        inputs = [channels, *[filters] * 4]
        self.convolutions = nn.ModuleList(
            Convolution(inputs[i], filters, 3, stride=1 if pooling else 2, padding=1) for i in range(4)
        )
        self.norms = nn.ModuleList(BatchNorm(filters) for _ in range(4))
        self.out = ZeroLinear(filters, ways)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return the logits, from features averaged over the remaining pixels (of 28×28: 2×2, or 1×1 with pooling)."""
        features = images
        for convolution, norm in zip(self.convolutions, self.norms, strict=True):
            features = norm(convolution(features))
            features = F.relu(F.max_pool2d(features, 2) if self.pooling else features)
        logits: torch.Tensor = self.out(features.mean((2, 3)))
        return logits
