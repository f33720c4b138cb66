"""The few-shot network."""

import pytest
import torch

from fedcso.models import Functional
from fedcso.models.conv4 import Conv4
from fedcso.streams import stream


@pytest.mark.parametrize("pooling", [False, True])
def test_images_become_logits(pooling):
    assert Conv4(ways=7, filters=4, pooling=pooling)(torch.rand(3, 1, 28, 28)).shape == (3, 7)


def test_there_are_four_convolutions_of_64_filters():
    parameters = Functional(Conv4()).init(stream(0, 0, 0))
    first, later, norm, out = 64 * 9 + 64, 64 * 64 * 9 + 64, 2 * 64, 64 * 5 + 5
    assert sum(p.numel() for p in parameters.values()) == first + 3 * later + 4 * norm + out


def test_batch_norm_uses_the_batch_alone():
    """Nothing is remembered from one batch to the next."""
    network = Conv4(filters=4)
    images = torch.rand(6, 1, 28, 28)
    before = network(images)
    network(torch.rand(6, 1, 28, 28) * 100)
    assert torch.equal(network(images), before)
