"""Tests of layers with their own second derivatives."""

import pytest
import torch
import torch.nn.functional as F
from torch.autograd import gradcheck, gradgradcheck
from torch.func import functional_call

from fedcso.core.workers import one_thread
from fedcso.models.twice import BatchNorm, Convolution
from tests.helpers import assert_close


@pytest.fixture(autouse=True)
def _one_thread():
    with one_thread():
        yield


def variables(*shapes):
    rng = torch.Generator().manual_seed(0)
    return tuple(torch.randn(shape, generator=rng, dtype=torch.float64).requires_grad_() for shape in shapes)


def normalise(images, weight, bias):
    layer = BatchNorm(len(weight)).to(images.dtype)
    return functional_call(layer, {"weight": weight, "bias": bias}, (images,))


def convolve(images, kernels, bias, stride):
    layer = Convolution(kernels.shape[1], kernels.shape[0], 3, stride, padding=1).to(images.dtype)
    return functional_call(layer, {"weight": kernels, "bias": bias}, (images,))


def test_derivatives_of_batch_norm_agree_with_finite_differences():
    given = variables((3, 2, 2, 3), (2,), (2,))
    assert gradcheck(normalise, given)
    assert gradgradcheck(normalise, given)


@pytest.mark.parametrize("stride", [1, 2])
def test_derivatives_of_a_convolution_agree_with_finite_differences(stride):
    given = variables((2, 2, 4, 3), (3, 2, 3, 3), (3,))

    def convolved(*given):
        return convolve(*given, stride)

    assert gradcheck(convolved, given)
    assert gradgradcheck(convolved, given)
    images, *others = given
    assert gradgradcheck(lambda *others: convolved(images.detach(), *others), others)


def network(images, kernels, bias, weight, shift, second, ours):
    """Return a scalar of two layers; the second kernels make the first layer's derivative by images count."""
    for one in (kernels, second):
        if ours:
            images = normalise(convolve(images, one, bias, 2), weight, shift)
        else:
            images = F.conv2d(images, one, bias, 2, 1)
            images = F.batch_norm(images, None, None, weight, shift, training=True)
        images = F.relu(images)
    return images.square().mean()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_hessian_times_a_vector_is_that_of_torch(dtype):
    images, *parameters = (
        one.detach().to(dtype) for one in variables((5, 1, 9, 9), (4, 1, 3, 3), (4,), (4,), (4,), (4, 4, 3, 3))
    )
    found = []
    for ours in (True, False):
        x = [one.clone().requires_grad_() for one in parameters]
        slopes = torch.autograd.grad(network(images, *x, ours=ours), x, create_graph=True)
        found.append([*slopes, *torch.autograd.grad(slopes, x, [torch.ones_like(one) for one in x])])
    for ours, torchs in zip(*found, strict=True):
        assert_close(ours, torchs, tolerance=1e-12 if dtype == torch.float64 else 2e-5)


def test_without_gradients_the_values_are_the_same():
    images, kernels, bias, weight, shift, second = variables((5, 1, 9, 9), (4, 1, 3, 3), (4,), (4,), (4,), (4, 4, 3, 3))
    with_graph = network(images, kernels, bias, weight, shift, second, ours=True)
    with torch.no_grad():
        without = network(images, kernels, bias, weight, shift, second, ours=True)
    assert_close(with_graph, without, tolerance=1e-14)
