"""Tests of the small network for 28×28 images."""

import torch

from fedcso.core.streams import stream
from fedcso.core.tree import numel
from fedcso.models.small_cnn import SmallCNN
from fedcso.problems import Classification


def test_images_become_logits():
    assert SmallCNN(classes=7)(torch.zeros(2, 1, 28, 28)).shape == (2, 7)


def test_the_size_is_that_of_its_layers():
    convolutions = (25 * 1 + 1) * 32 + (25 * 32 + 1) * 64
    linear = (64 * 4 * 4 + 1) * 128 + (128 + 1) * 10
    size = numel(Classification(SmallCNN).init(stream(0, 0, 0)))
    assert size == convolutions + linear
    assert f"{size:,} parameters" in SmallCNN.__doc__
