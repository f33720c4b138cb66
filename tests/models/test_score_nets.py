"""Networks with one output: the exact layers of the two for pictures, and which network fits which inputs."""

from functools import partial

import pytest
import torch
from torch import nn

from fedcso.core.errors import InvalidValue, UnknownName
from fedcso.models.score_nets import HIDDEN, NETS, NETS_BY_SHAPE, build_network, cifar, cnn, coarse, linear, mlp, mnist
from fedcso.problems.scores import Scores

MNIST, CIFAR = (1, 28, 28), (3, 32, 32)


def layers(network: nn.Module) -> list[tuple[int, ...]]:
    """Return the shapes of all weights, and check that each has a bias."""
    shapes = {name: tuple(value.shape) for name, value in network.named_parameters()}
    weights = [shape for name, shape in shapes.items() if name.endswith("weight")]
    assert [shape for name, shape in shapes.items() if name.endswith("bias")] == [shape[:1] for shape in weights]
    return weights


def parameters(network: nn.Module) -> int:
    return sum(value.numel() for value in network.parameters())


def test_the_network_for_mnist_has_the_layers_of_the_paper():
    """conv5(1→20)-pool-conv5(20→50)-pool-fc 800-500-1."""
    network = mnist(torch.Size(MNIST))
    assert layers(network) == [(20, 1, 5, 5), (50, 20, 5, 5), (500, 800), (1, 500)]
    assert parameters(network) == (25 + 1) * 20 + (20 * 25 + 1) * 50 + 801 * 500 + 501 == 426_571
    assert network(torch.zeros(2, *MNIST)).shape == (2, 1)


def test_the_network_for_cifar_has_the_layers_of_the_paper():
    """conv3 pad 1 3→16→32→64, each pooled, fc 1024-512-64-1."""
    network = cifar(torch.Size(CIFAR))
    assert layers(network) == [(16, 3, 3, 3), (32, 16, 3, 3), (64, 32, 3, 3), (512, 1024), (64, 512), (1, 64)]
    convolutions = (27 + 1) * 16 + (16 * 9 + 1) * 32 + (32 * 9 + 1) * 64
    assert parameters(network) == convolutions + 1025 * 512 + 513 * 64 + 65 == 581_281
    assert network(torch.zeros(2, *CIFAR)).shape == (2, 1)


@pytest.mark.parametrize(("make", "shape"), [(mnist, MNIST), (cifar, CIFAR)], ids=["mnist", "cifar"])
def test_pooling_before_the_nonlinearity_is_the_same_as_after(make, shape):
    torch.manual_seed(0)
    network, usual = make(torch.Size(shape)).double(), []
    for layer in network:
        if isinstance(layer, nn.ReLU) and isinstance(usual[-1], nn.MaxPool2d):
            usual.insert(-1, layer)
        else:
            usual.append(layer)
    inputs = torch.randn(3, *shape, dtype=torch.float64)
    assert [type(layer) for layer in usual] != [type(layer) for layer in network]
    torch.testing.assert_close(nn.Sequential(*usual)(inputs), network(inputs), rtol=1e-12, atol=1e-12)


def test_the_network_for_cifar_starts_with_scores_that_tell_pictures_apart():
    """With torch's default initialisation the signal shrinks at every layer, and all scores are nearly the same."""
    spread = {}
    for name, network in {"ours": cifar(torch.Size(CIFAR)), "torch's": cifar(torch.Size(CIFAR))}.items():
        with torch.random.fork_rng():
            torch.manual_seed(0)
            for layer in network:
                if isinstance(layer, nn.Conv2d | nn.Linear):
                    kind = type(layer) if name == "ours" else type(layer).__base__
                    kind.reset_parameters(layer)
            spread[name] = network(torch.rand(64, *CIFAR)).std().item()
    assert spread["ours"] > 0.1 > 10 * spread["torch's"]


def test_the_network_for_cifar_starts_with_scores_that_a_sigmoid_can_tell_apart():
    """Regression: pictures were centred twice, and first scores were up to 12."""
    patches = torch.randint(256, (64, 3, 4, 4), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    pictures = patches.repeat_interleave(8, -1).repeat_interleave(8, -2)
    scores = Scores(partial(cifar, torch.Size(CIFAR)))
    starts = [scores.network.init(torch.Generator().manual_seed(seed)) for seed in range(5)]
    sizes = [scores.logits(x, pictures).abs().mean().item() for x in starts]
    assert sum(sizes) / len(sizes) < 2  # it was 5.4


def test_between_any_two_layers_there_is_a_nonlinearity():
    for network in (mnist(torch.Size(MNIST)), cifar(torch.Size(CIFAR)), mlp(torch.Size([4]))):
        kinds = [type(layer) for layer in network if not isinstance(layer, nn.MaxPool2d | nn.Flatten)]
        assert kinds[1::2] == [nn.ReLU] * (len(kinds) // 2)


@pytest.mark.parametrize("shape", [(7,), (1, 8, 8)])
def test_for_tables_there_are_a_weighted_sum_and_a_hidden_layer(shape):
    size = torch.Size(shape)
    assert layers(linear(size)) == [(1, size.numel())]
    assert layers(mlp(size)) == [(HIDDEN, size.numel()), (1, HIDDEN)]
    for make in (linear, mlp):
        assert make(size)(torch.zeros(3, *shape)).shape == (3, 1)


@pytest.mark.parametrize(
    ("shape", "make"),
    [(MNIST, mnist), (CIFAR, cifar), ((30,), mlp), ((1, 8, 8), mlp), ((3, 16, 40), cnn), ((1, 64, 64), cnn)],
)
def test_auto_chooses_a_network_by_shape(shape, make):
    assert layers(build_network("auto", torch.Size(shape))) == layers(make(torch.Size(shape)))


@pytest.mark.parametrize("name", NETS)
def test_a_network_is_found_by_its_name(name):
    fitting = NETS_BY_SHAPE | {(3, 64, 64): cnn, (3, 96, 64): coarse}
    shape = next((fits for fits, make in fitting.items() if make is NETS[name]), (30,))
    assert layers(build_network(name, torch.Size(shape))) == layers(NETS[name](torch.Size(shape)))


@pytest.mark.parametrize(("side", "blocks"), [(16, 2), (31, 2), (32, 3), (64, 4), (128, 5), (224, 5)])
def test_larger_pictures_have_more_convolutions(side, blocks):
    network = cnn(torch.Size((3, side, side + 9)))
    assert sum(isinstance(layer, nn.Conv2d) for layer in network) == blocks
    assert network(torch.zeros(2, 3, side, side + 9)).shape == (2, 1)


@pytest.mark.parametrize(("side", "remaining"), [(28, 28), (63, 63), (64, 32), (105, 35), (224, 32)])
def test_large_pictures_are_averaged_before_coarse_convolutions(side, remaining):
    pooling, convolutions = coarse(torch.Size((1, side, side + 9)))
    assert pooling(torch.zeros(1, 1, side, side + 9)).shape[2] == remaining
    assert convolutions(pooling(torch.zeros(2, 1, side, side + 9))).shape == (2, 1)


@pytest.mark.parametrize("shape", [(3, 15, 40), (30,), (1, 16)])
def test_small_pictures_and_rows_have_no_convolutions(shape):
    has = "×".join(map(str, shape))
    with pytest.raises(InvalidValue, match=f"net = 'cnn' .* for inputs of {has}; cnn needs pictures of at least 16×16"):
        cnn(torch.Size(shape))


@pytest.mark.parametrize(
    ("name", "shape", "has"), [("mnist", CIFAR, "3×32×32"), ("mnist", (64,), "64"), ("cifar", MNIST, "1×28×28")]
)
def test_inputs_of_another_size_are_refused_with_both_sizes(name, shape, has):
    needs = {"mnist": "1×28×28", "cifar": "3×32×32"}[name]
    with pytest.raises(
        InvalidValue, match=f"net = '{name}' .* mlp, linear or auto for inputs of {has}; {name} needs {needs}"
    ):
        build_network(name, torch.Size(shape))


def test_an_unknown_name_is_refused_with_the_nearest():
    with pytest.raises(UnknownName, match=r"unknown net 'mnits'; did you mean mnist\?"):
        build_network("mnits", torch.Size([3]))
