"""Guards against slow code that do not depend on timing: counts of operators and forward passes in a step.

A change that makes a step take more operators must raise the number here and say why.
"""

import pytest
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

from fedcso.algorithms import FCSG, FCSGM, AccFCSGM
from fedcso.core.plan import Plan
from fedcso.datasets.examples import Examples
from fedcso.problems import AUPRC, InvariantLogistic
from fedcso.problems.scores import Scores
from tests.helpers import Case, run_on

METHODS = {"FCSG": FCSG(0.05), "FCSG-M": FCSGM(0.05, 0.3), "Acc-FCSG-M": AccFCSGM(0.05, 0.3)}


def operators(engine, method, case, steps, **plan):
    """Return the number of torch operators that a run of one round calls, including nested ones."""
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        run_on(engine, method, case, Plan(rounds=1, local_steps=steps, **plan))
    return sum(event.count for event in profiler.key_averages() if event.key.startswith("aten::"))


def operators_per_step(engine, method, case, **plan):
    """Return the number of operators of one more step, without the overhead of a round."""
    few, many = 8, 24
    return (operators(engine, method, case, many, **plan) - operators(engine, method, case, few, **plan)) / (many - few)


LOGISTIC = InvariantLogistic()

STACKED = {"FCSG": 95, "FCSG-M": 96, "Acc-FCSG-M": 185}
"""The most operators allowed for all clients together; with torch 2.13 there are 89, 90 and 173."""


@pytest.mark.parametrize("method", STACKED)
def test_a_stacked_step_takes_few_operators_whatever_the_number_of_clients(method):
    few, many = (
        operators_per_step("stacked", METHODS[method], Case(LOGISTIC, LOGISTIC.clients(n)), inner_batch=10)
        for n in (2, 16)
    )
    assert few == many <= STACKED[method]


def test_the_plain_loop_takes_more_with_every_client():
    """This control shows that the count grows where it should."""
    few, many = (
        operators_per_step("reference", METHODS["FCSG"], Case(LOGISTIC, LOGISTIC.clients(n)), inner_batch=10)
        for n in (2, 4)
    )
    assert many == 2 * few


# ------------------------------------------------------------------------------------- forward passes


class Counted(nn.Module):
    """A network that counts its forward passes and the examples in them."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 1)
        self.passes = self.examples = 0

    def forward(self, inputs):
        Counted.passes += 1
        Counted.examples += len(inputs)
        return self.linear(inputs)


@pytest.fixture
def counted():
    Counted.passes = Counted.examples = 0
    rng = torch.Generator().manual_seed(0)
    clients = [Examples(torch.randn(30, 4, generator=rng), (torch.arange(30) < 6).long()) for _ in range(3)]
    return Case(AUPRC(Scores(Counted)), clients)


@pytest.mark.parametrize(("method", "points"), [("FCSG", 1), ("FCSG-M", 1), ("Acc-FCSG-M", 2)])
@pytest.mark.parametrize("engine", ["reference", "threads"])
def test_a_step_of_auprc_is_one_forward_pass_of_b_and_m_examples(counted, engine, method, points):
    """It is not b·m: all positives of a step share the inner batch, in one pass through the network."""
    b, m, steps = 5, 7, 4
    run_on(engine, METHODS[method], counted, Plan(rounds=1, local_steps=steps, outer_batch=b, inner_batch=m))
    per_client = 1 + points * (steps - 1)  # the first step has one point only
    assert Counted.passes == 3 * per_client
    assert Counted.examples == 3 * per_client * (b + m)
