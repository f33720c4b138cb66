"""A small convolutional network for 28×28 images, as federated benchmarks usually train on MNIST."""

import torch
import torch.nn.functional as F
from torch import nn


class SmallCNN(nn.Module):
    """The network conv5(1→32)-pool-conv5(32→64)-pool-fc 128-classes, with 184,586 parameters for ten classes."""

    def __init__(self, classes: int = 10):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 5)
        self.conv2 = nn.Conv2d(32, 64, 5)
        self.hidden = nn.Linear(64 * 4 * 4, 128)
        self.out = nn.Linear(128, classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return logits (b, classes) for images (b, 1, 28, 28)."""
        # Pooling and ReLU commute; pooling first leaves a quarter of the ReLUs.
        features = F.relu(F.max_pool2d(self.conv1(images), 2))
        features = F.relu(F.max_pool2d(self.conv2(features), 2))
        hidden: torch.Tensor = self.out(F.relu(self.hidden(features.flatten(1))))
        return hidden
