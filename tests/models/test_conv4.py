"""Tests of the few-shot network."""

from functools import partial

import pytest
import torch

from fedcso.core.streams import stream
from fedcso.models import Functional
from fedcso.models.conv4 import SMALLEST, Conv4
from fedcso.problems import MAML
from tests.helpers import assert_close


@pytest.mark.parametrize("pooling", [False, True])
def test_images_become_logits(pooling):
    assert Conv4(ways=7, filters=4, pooling=pooling)(torch.rand(3, 1, 28, 28)).shape == (3, 7)


@pytest.mark.parametrize("pooling", [False, True])
@pytest.mark.parametrize("size", [SMALLEST, 17, 84])
def test_images_of_other_sizes_and_in_colour_are_accepted(pooling, size):
    network = Conv4(ways=2, filters=4, pooling=pooling, channels=3)
    torch.nn.init.ones_(network.out.weight)
    images = torch.rand(3, 3, size, size)
    logits = network(images)
    assert logits.shape == (3, 2)
    assert not torch.equal(network(images.flip(1)), logits)  # the channels differ


def test_there_are_four_convolutions_of_64_filters():
    parameters = Functional(Conv4).init(stream(0, 0, 0))
    first, later, norm, out = 64 * 9 + 64, 64 * 64 * 9 + 64, 2 * 64, 64 * 5 + 5
    assert sum(p.numel() for p in parameters.values()) == first + 3 * later + 4 * norm + out


def test_batch_norm_uses_the_batch_alone():
    """Nothing is remembered from one batch to the next."""
    network = Conv4(filters=4)
    images = torch.rand(6, 1, 28, 28)
    before = network(images)
    network(torch.rand(6, 1, 28, 28) * 100)
    assert torch.equal(network(images), before)


def test_the_last_layer_starts_at_zero_and_the_others_do_not():
    parameters = Functional(partial(Conv4, filters=4)).init(stream(0, 0, 0))
    assert {name for name, leaf in parameters.items() if name.endswith("weight") and not leaf.any()} == {"out.weight"}
    assert not parameters["out.bias"].any()


def test_from_zero_the_first_step_of_adaptation_is_towards_the_mean_features_of_each_class():
    """All classes have the same logits at first, so the gradient of a class's row is (1/3 − one-hot)·features."""
    ways, shots, rate = 3, 2, 0.4
    problem = MAML(partial(Conv4, ways, filters=4), ways, queries=1, inner_rate=rate)
    x = {name: leaf.double() for name, leaf in problem.init(stream(0, 0, 0)).items()}
    rng = torch.Generator().manual_seed(1)
    support = torch.rand(shots, ways, 1, 28, 28, generator=rng, dtype=torch.float64)
    adapted = problem.adapt(x, support, steps=1)

    images = support.flatten(0, 1)
    features = images
    for i in range(4):
        kernel, shift = x[f"convolutions.{i}.weight"], x[f"convolutions.{i}.bias"]
        out = torch.nn.functional.conv2d(features, kernel, shift, stride=2, padding=1)
        mean, variance = out.mean((0, 2, 3), keepdim=True), out.var((0, 2, 3), correction=0, keepdim=True)
        features = torch.relu(
            (out - mean) / torch.sqrt(variance + 1e-5)
        )  # the norm's scale starts at 1, its shift at 0
    features = features.mean((2, 3)).reshape(shots, ways, 4)
    by_class, overall = features.mean(0) / ways, features.mean((0, 1))
    expected = x | {"out.weight": rate * (by_class - overall / ways)}  # the bias moves by 1/3 − 1/3
    assert_close(adapted, expected)
    assert adapted["out.weight"].abs().max() > 1e-3
