"""Four convolutions for few-shot learning on 28×28 characters, as in Finn et al. (2017).

Each block: 3×3 convolution, batch norm by batch statistics, ReLU. For Omniglot the convolutions are STRIDED and
there is no pooling (28 → 14 → 7 → 4 → 2); the variant with max-pooling costs about six times as much.

The last layer starts at zero. A task's labels are in random order, so there is nothing that it could know in advance,
and from zero the first step of adaptation sets its rows to the classes' mean features.
"""

import torch
import torch.nn.functional as F
from torch import nn


class FromZero(nn.Linear):
    """A linear layer that starts at zero."""

    def reset_parameters(self) -> None:
        """Nothing is known yet."""
        nn.init.zeros_(self.weight)
        nn.init.zeros_(self.bias)


class Conv4(nn.Module):
    """Images (n, 1, 28, 28) to logits (n, ways)."""

    def __init__(self, ways: int = 5, filters: int = 64, pooling: bool = False):
        super().__init__()
        self.pooling = pooling
        channels = [1, *[filters] * 4]
        self.convolutions = nn.ModuleList(
            nn.Conv2d(channels[i], filters, 3, stride=1 if pooling else 2, padding=1) for i in range(4)
        )
        self.norms = nn.ModuleList(nn.BatchNorm2d(filters, track_running_stats=False) for _ in range(4))
        self.out = FromZero(filters, ways)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Features are averaged over what is left of the image, 2×2 or 1×1."""
        features = images
        for convolution, norm in zip(self.convolutions, self.norms, strict=True):
            features = norm(convolution(features))
            features = F.relu(F.max_pool2d(features, 2) if self.pooling else features)
        logits: torch.Tensor = self.out(features.mean((2, 3)))
        return logits
