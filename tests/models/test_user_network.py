"""A network from a user's file is built for the inputs, and checked before a run starts."""

import pytest
import torch
from torch import nn

from fedcso.core.errors import FedcsoError, UnknownName
from fedcso.models.score_nets import build_network

SOURCE = """
import torch
from torch import nn

class Fixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(12, 1)

    def forward(self, inputs):
        return self.out(inputs.flatten(1))[:, 0]

def fitting(shape):
    return nn.Sequential(nn.Flatten(), nn.Linear(shape.numel(), 1))

def wide(shape, width=3):
    return nn.Sequential(nn.Flatten(), nn.Linear(shape.numel(), width))

ready = Fixed()
number = 3

def broken(shape):
    raise RuntimeError("oh no")

def nothing(shape):
    return None
"""


@pytest.fixture
def named(tmp_path):
    (tmp_path / "net.py").write_text(SOURCE)
    return lambda name: f"{tmp_path / 'net.py'}:{name}"


@pytest.mark.parametrize("name", ["Fixed", "fitting", "ready"])
def test_a_class_a_function_of_the_shape_and_a_module_are_networks(named, name):
    network = build_network(named(name), torch.Size((3, 2, 2)))
    assert isinstance(network, nn.Module)
    assert network(torch.zeros(4, 3, 2, 2)).numel() == 4


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("wide", "a network with one output; for two inputs of 3×2×2 it returns 2×3"),
        ("number", "an nn.Module, or a class or function that makes one"),
        ("nothing", "an nn.Module, or a class or function that makes one"),
        ("broken", r"net\.py:broken, line 23, raised RuntimeError: oh no"),
    ],
)
def test_other_objects_are_refused(named, name, message):
    with pytest.raises(FedcsoError, match=message):
        build_network(named(name), torch.Size((3, 2, 2)))


def test_inputs_that_do_not_fit_are_reported_before_a_run(named):
    with pytest.raises(FedcsoError, match=r"net: .*net\.py:Fixed does not accept inputs of 7 \(RuntimeError"):
        build_network(named("Fixed"), torch.Size((7,)))


def test_an_unknown_name_in_the_file_is_reported_with_the_nearest(named):
    with pytest.raises(UnknownName, match=r"'Fixd'; did you mean Fixed\?"):
        build_network(named("Fixd"), torch.Size((7,)))
