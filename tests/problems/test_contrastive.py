"""The global contrastive loss: enumeration by loops, the bias of a small m, and the linear probe."""

import pytest
import torch
from torch import nn

from fedcso.core.errors import FedcsoError
from fedcso.core.oracle import Oracle
from fedcso.core.problem import Batch
from fedcso.core.streams import stream
from fedcso.datasets import Examples
from fedcso.estimators.plain import plain
from fedcso.problems.contrastive import Contrastive, Pair, Probe, contrastive, probe_judge
from tests.command_line import BAD_INPUT, call
from tests.helpers import assert_close
from tests.problems.sampling import assert_bias_of_the_gradient_falls_with_m

VIEWS = torch.randn(4, 2, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
PROBLEM = Contrastive(lambda: nn.Linear(3, 2).double(), 0.5)
X = PROBLEM.init(stream(0, 0, 0))


def values_of_g(view):
    """Return g of one of the eight views, for each of the six views of other pictures."""
    codes = PROBLEM.encode(X, VIEWS.flatten(0, 1)).detach()
    others = [j for j in range(8) if j // 2 != view // 2]
    return torch.stack([torch.exp((codes[view] @ codes[j] - codes[view] @ codes[view ^ 1]) / 0.5) for j in others])


def all_pairs():
    """Return all views as ξ, each with all views of other pictures as η."""
    xi = Pair(torch.arange(8), torch.stack([VIEWS[k // 2].flip(0) if k % 2 else VIEWS[k // 2] for k in range(8)]))
    flat = VIEWS.flatten(0, 1)
    return xi, torch.stack([torch.stack([flat[j] for j in range(8) if j // 2 != k // 2]) for k in range(8)])


def test_the_exact_value_and_gradient_are_those_of_all_pairs():
    value, gradient = PROBLEM.exact(X, [VIEWS], [1.0])
    assert_close(value, torch.stack([0.5 * values_of_g(view).mean().log() for view in range(8)]).mean())
    assert_close((value, gradient), Oracle(PROBLEM, plain).value_and_grad(X, Batch(*all_pairs())))
    other, _ = PROBLEM.exact(X, [VIEWS[:2]], [1.0])
    assert_close(PROBLEM.exact(X, [VIEWS, VIEWS[:2]], [1.0, 3.0])[0], (value + 3 * other) / 4)


def test_samples_are_views_of_other_pictures():
    xi = PROBLEM.sample_outer(VIEWS, stream(0, 0, 0), (50,))
    eta = PROBLEM.sample_inner(VIEWS, stream(0, 0, 1), xi, 30)
    flat = VIEWS.flatten(0, 1)
    assert_close(xi.views[:, 0], flat[xi.which])
    assert_close(xi.views[:, 1], flat[xi.which ^ 1])
    found = (eta.unsqueeze(-2) == flat).all(-1).int().argmax(-1)
    assert not (found // 2 == (xi.which // 2).unsqueeze(1)).any()
    assert len(found[xi.which == xi.which[0]].unique()) == 6


def test_the_bias_falls_with_m_as_the_variance_of_g_says():
    """E F̂ − F = −(τ/2m) E[ Var(g)/(E g)² ] + O(1/m²)."""
    every = torch.stack([values_of_g(view) for view in range(8)])
    leading = -0.25 * (every.var(1, correction=0) / every.mean(1).square()).mean()
    for m in (8, 32):
        xi = PROBLEM.sample_outer(VIEWS, stream(0, 0, 0), (10_000,))
        g = PROBLEM.inner(X, xi, PROBLEM.sample_inner(VIEWS, stream(0, 0, 1), xi, m)).detach()
        mean = every.mean(1)[xi.which]
        relative = g / mean - 1  # of mean 0: takes most of the noise away
        bias = (PROBLEM.outer(g, xi) - 0.5 * mean.log() - 0.5 * relative).mean()
        assert float(m * bias) == pytest.approx(float(leading), rel=0.15)


def test_the_bias_of_the_gradient_falls_with_m():
    """At a high temperature g varies little, and the expansion in 1/m is good for a small m."""
    problem = Contrastive(PROBLEM.model, temperature=3.0)
    assert_bias_of_the_gradient_falls_with_m(problem, X, *all_pairs())


def test_a_probe_finds_classes_that_representations_separate():
    problem = Contrastive(lambda: nn.Linear(2, 2, bias=False).double(), 0.5)
    x = {"weight": torch.eye(2, dtype=torch.float64)}
    labels = torch.arange(40) % 2
    inputs = torch.stack([labels.double() * 2 - 1, torch.ones(40).double()], 1)
    data = Probe(Examples(inputs, labels), Examples(inputs[:10], labels[:10]))
    assert float(probe_judge(problem).evaluate(x, data)["probe_accuracy"]) == 1.0
    blind = {"weight": torch.tensor([[0.0, 1.0], [0.0, 0.0]], dtype=torch.float64)}
    assert float(probe_judge(problem).evaluate(blind, data)["probe_accuracy"]) == 0.5


def test_a_single_picture_cannot_be_compared():
    xi = PROBLEM.sample_outer(VIEWS[:1], stream(0, 0, 0), (2,))
    with pytest.raises(FedcsoError, match="single picture"):
        PROBLEM.sample_inner(VIEWS[:1], stream(0, 0, 1), xi, 3)
    assert not PROBLEM.trains(VIEWS[:1])


def test_views_are_shifted_pictures():
    task = contrastive(clients=2)
    assert [data.shape[1:] for data in task.clients] == [(2, 64)] * 2
    assert (task.clients[0][:, 0] != task.clients[0][:, 1]).any()


@pytest.mark.parametrize(
    ("options", "field"), [(["--temperature", "0"], "temperature = 0.0"), (["--outputs", "0"], "outputs = 0")]
)
def test_a_bad_setting_ends_with_code_2_and_its_name(options, field):
    outcome = call("run", "contrastive", *options)
    assert outcome.code == BAD_INPUT
    assert field in outcome.err
