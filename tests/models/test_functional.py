"""Tests of an `nn.Module` as functions of its parameters."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn

from fedcso.core.errors import FedcsoError
from fedcso.core.streams import stream
from fedcso.core.tree import leaves
from fedcso.models import Functional
from fedcso.problems import AUPRC, AUROC, MAML, Classification, CrossEntropy
from fedcso.problems.scores import Scores
from tests.helpers import assert_close

STATEFUL = {
    "BatchNorm1d": nn.BatchNorm1d(2),
    "BatchNorm2d": nn.BatchNorm2d(2),
    "InstanceNorm2d": nn.InstanceNorm2d(2, track_running_stats=True),
}
STATELESS = {
    "BatchNorm2d": nn.BatchNorm2d(2, track_running_stats=False),
    "InstanceNorm2d": nn.InstanceNorm2d(2),
    "GroupNorm": nn.GroupNorm(1, 2),
    "LayerNorm": nn.LayerNorm(2),
}


@pytest.mark.parametrize("layer", STATEFUL.values(), ids=STATEFUL)
def test_running_statistics_are_refused_by_name(layer):
    with pytest.raises(FedcsoError, match=r"'1' keeps running statistics.*track_running_stats=False"):
        Functional(nn.Sequential(nn.Identity(), layer))


@pytest.mark.parametrize("layer", STATELESS.values(), ids=STATELESS)
def test_batch_statistics_are_allowed(layer):
    Functional(nn.Sequential(nn.Identity(), layer))


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2)).double()


def test_apply_is_the_module_with_other_parameters():
    functional, module = Functional(network()), network()
    inputs = torch.randn(4, 3, dtype=torch.float64, generator=stream(0, 0, 0))
    parameters = {name: p.detach() for name, p in module.named_parameters()}
    assert_close(functional.apply(parameters, inputs), module(inputs).detach())


def test_convolutions_give_the_same_result_in_any_memory_layout():
    module = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Conv2d(4, 2, 3)).double()
    functional = Functional(module)
    inputs = torch.randn(2, 1, 8, 8, dtype=torch.float64, generator=stream(0, 0, 0))
    parameters = functional.init(stream(1, 0, 0))
    stored_otherwise = {
        name: p.contiguous(memory_format=torch.channels_last) if p.ndim == 4 else p for name, p in parameters.items()
    }
    result = functional.apply(parameters, inputs)
    assert torch.equal(functional.apply(stored_otherwise, inputs), result)
    module.load_state_dict(parameters)
    assert_close(result, module(inputs).detach())


def test_layers_that_share_weights_share_the_given_ones():
    first, second = nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False)
    second.weight = first.weight
    network = Functional(nn.Sequential(first, nn.ReLU(), second))
    (weight,) = network.init(torch.Generator()).values()
    inputs = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    found = network.apply({"0.weight": 2 * weight}, inputs)
    assert torch.equal(found, (inputs @ (2 * weight).T).relu() @ (2 * weight).T)


def test_apply_leaves_the_module_alone():
    module = network()
    before = {name: p.clone() for name, p in module.state_dict().items()}
    functional = Functional(module)
    functional.apply(functional.init(stream(0, 0, 0)), torch.zeros(1, 3, dtype=torch.float64))
    assert_close(module.state_dict(), before, tolerance=0.0)


def test_the_gradient_reaches_the_parameters():
    functional = Functional(network())
    parameters = {name: p.requires_grad_() for name, p in functional.init(stream(0, 0, 0)).items()}
    functional.apply(parameters, torch.ones(1, 3, dtype=torch.float64)).sum().backward()
    assert all(p.grad is not None for p in parameters.values())
    assert torch.equal(parameters["2.bias"].grad, torch.ones(2, dtype=torch.float64))


# --------------------------------------------------------------------------------------------- init


class Bare(nn.Module):
    """A module with random weights and a random buffer that are not in any of torch's layers."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3))
        self.register_buffer("frequencies", torch.randn(3))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return torch.cos(inputs * self.frequencies) @ self.weight


@pytest.mark.parametrize("seed", [0, 1])
def test_a_module_keeps_its_weights_whatever_the_seed(seed):
    """Regression: a pretrained network was silently initialised anew."""
    pretrained = network()
    x = Functional(pretrained).init(stream(seed, 0, 0))
    assert_close(x, {name: p.detach() for name, p in pretrained.named_parameters()}, tolerance=0.0)


PROBLEMS = {
    "auprc": lambda model: AUPRC(Scores(model)),
    "auroc": lambda model: AUROC(Scores(model), 0.3),
    "cross_entropy": lambda model: CrossEntropy(Scores(model)),
    "classification": Classification,
    "maml": MAML,
}


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_every_problem_starts_from_the_weights_of_a_module_and_anew_from_a_function(problem):
    pretrained, start = network(), stream(0, 0, 0)
    x = problem(pretrained).init(start)
    weights = x["primal"]["w"] if "primal" in x else x
    assert_close(weights, {name: p.detach() for name, p in pretrained.named_parameters()}, tolerance=0.0)
    one, same, other = (problem(network).init(stream(seed, 0, 0)) for seed in (0, 0, 1))
    assert_close(one, same, tolerance=0.0)
    assert not torch.equal(leaves(one)[0], leaves(other)[0])


def test_init_returns_a_copy():
    pretrained = network()
    before = {name: p.clone() for name, p in pretrained.state_dict().items()}
    for leaf in Functional(pretrained).init(stream(0, 0, 0)).values():
        leaf += 1
    assert_close(pretrained.state_dict(), before, tolerance=0.0)


@pytest.mark.parametrize("build", [network, Bare])
def test_a_function_builds_weights_by_the_seed_alone(build):
    once = Functional(build).init(stream(0, 0, 0))
    assert_close(Functional(build).init(stream(0, 0, 0)), once, tolerance=0.0)
    other = Functional(build).init(stream(1, 0, 0))
    assert all(not torch.equal(other[name], once[name]) for name in once)


def test_buffers_are_the_same_in_every_process():
    """Buffers are neither averaged nor sent, so all sites must build the same ones."""
    one, other = Functional(Bare), Functional(Bare)
    assert torch.equal(one.module.frequencies, other.module.frequencies)


def test_building_does_not_touch_the_global_generator():
    before = torch.random.get_rng_state()
    Functional(network).init(stream(0, 0, 0))
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.parametrize("model", ["mlp", [nn.Linear(2, 1)], list])
def test_what_is_not_a_network_is_refused(model):
    with pytest.raises(FedcsoError, match=r"is not a network: pass an nn\.Module, or a function without arguments"):
        Functional(model)


def test_init_returns_plain_tensors_for_every_parameter():
    for model in (network, network()):
        parameters = Functional(model).init(stream(0, 0, 0))
        assert {name: tuple(p.shape) for name, p in parameters.items()} == {
            "0.weight": (5, 3),
            "0.bias": (5,),
            "2.weight": (2, 5),
            "2.bias": (2,),
        }
        assert not any(p.requires_grad or isinstance(p, nn.Parameter) for p in parameters.values())


# ------------------------------------------------------------------------------------------ threads

MEETING = threading.Barrier(2)


class Waits(nn.Module):
    """Two layers; two threads wait for each other before and after the second, so that their forward passes overlap."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(2, 2, bias=False), nn.Linear(2, 1, bias=False)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        hidden = self.first(inputs)
        MEETING.wait(timeout=10)
        result = self.second(hidden)
        MEETING.wait(timeout=10)
        return result


def test_threads_do_not_see_the_parameters_of_other_threads():
    functional = Functional(Waits)
    inputs = torch.tensor([[1.0, 2.0]])
    models = [functional.init(stream(seed, 0, 0)) for seed in range(2)]
    by_hand = [inputs @ x["first.weight"].T @ x["second.weight"].T for x in models]
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda x: functional.apply(x, inputs), models))
    assert_close(results, by_hand, tolerance=1e-6)


def test_many_threads_get_their_own_results():
    functional = Functional(network)
    inputs = torch.ones(1, 3, dtype=torch.float64)
    models = [functional.init(stream(seed, 0, 0)) for seed in range(50)]
    expected = [functional.apply(x, inputs) for x in models]
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda x: functional.apply(x, inputs), models))
    assert_close(results, expected, tolerance=0.0)


def test_dropout_is_refused_by_name_unless_it_is_switched_off():
    network = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))
    with pytest.raises(FedcsoError, match=r"layer '1' is dropout, .*remove the layer, or switch it off with eval\(\)"):
        Functional(network)
    Functional(network.eval())
