"""Weight decay adds λx to every gradient, after clipping, of a network's weights alone."""

from dataclasses import replace

import pytest
import torch

from fedcso.algorithms import FCSGM, FedAvg
from fedcso.core.errors import InvalidValue
from fedcso.core.estimator import sample
from fedcso.core.oracle import Cohort, Oracle
from fedcso.core.plan import Plan
from fedcso.core.problem import split_steps
from fedcso.core.streams import stream
from fedcso.core.tree import add_scaled, norm, stack
from fedcso.estimators.plain import plain
from tests.helpers import CLEARLY, ENGINES, SETTINGS, assert_close, assert_same_run, gap, nested_quadratic, run_on
from tests.rare import auroc_case

CASE = nested_quadratic()
X = torch.tensor([2.0, -1.0, 3.0], dtype=torch.float64)
PLAN = Plan(rounds=3, local_steps=2, outer_batch=2, inner_batch=3)
DECAYED = replace(PLAN, weight_decay=0.3)


def batch_of(case, b=2):
    (batch,) = split_steps(sample(case.problem, case.clients[0], stream(0, 0, 0), 1, b, 3), 1)
    return batch


@pytest.mark.parametrize("clip", [0.0, 0.1])
def test_the_gradient_gets_a_multiple_of_x_which_is_not_clipped(clip):
    batch = batch_of(CASE)
    plain_one, decayed = (Oracle(CASE.problem, plain, clip=clip, weight_decay=rate) for rate in (0.0, 0.3))
    gradient = plain_one.grad(X, batch)
    assert_close(decayed.grad(X, batch), gradient + 0.3 * X, tolerance=1e-15)
    assert not clip or norm(gradient) == pytest.approx(clip)
    y, chain = decayed.inner(X, batch)
    _, without = plain_one.inner(X, batch)
    assert_close(chain(y), without(y) + 0.3 * X, tolerance=1e-15)


def test_many_clients_get_what_each_gets_alone():
    batch, points = batch_of(CASE), torch.stack([X, 2 * X])
    together = Cohort(CASE.problem, 2, plain, weight_decay=0.3).grad(points.unsqueeze(1), stack([batch]))
    for place, x in enumerate(points):
        assert_close(together[place, 0], Oracle(CASE.problem, plain, weight_decay=0.3).grad(x, batch), tolerance=1e-14)


def test_of_a_min_max_problem_the_network_alone_decays():
    case = auroc_case()
    x = case.problem.init(stream(0, 0, 0))
    x["dual"] = torch.ones_like(x["dual"])
    batch = batch_of(case)
    before, after = (Oracle(case.problem, plain, weight_decay=rate).grad(x, batch) for rate in (0.0, 0.3))
    assert_close(after["primal"]["w"], add_scaled(before["primal"]["w"], x["primal"]["w"], 0.3), tolerance=1e-15)
    assert_close(after["dual"], before["dual"], tolerance=0.0)
    assert_close(after["primal"]["a"], before["primal"]["a"], tolerance=0.0)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("method", ["FCSG-M", "Acc-FCSG-M", "SCAFFOLD"])
def test_all_engines_agree_and_it_has_an_effect(engine, method):
    decayed = run_on(engine, SETTINGS[method], CASE, DECAYED)
    assert_same_run(decayed, run_on("reference", SETTINGS[method], CASE, DECAYED))
    assert gap(decayed.last, run_on(engine, SETTINGS[method], CASE, PLAN).last) > CLEARLY


def test_none_changes_nothing():
    assert_same_run(
        run_on("stacked", FCSGM(0.1, 0.3), CASE, replace(PLAN, weight_decay=0.0)),
        run_on("stacked", FCSGM(0.1, 0.3), CASE, PLAN),
        tolerance=0.0,
    )


def test_it_is_a_number_of_at_least_0():
    with pytest.raises(InvalidValue, match="weight_decay"):
        Plan(weight_decay=-1.0)


def test_it_leads_to_the_minimum_of_the_sum():
    """With many steps on all samples, ∇F(x) = −λx is reached, whatever the clipping."""
    long = Plan(rounds=300, local_steps=1, outer_batch=64, inner_batch=64, weight_decay=0.5, clip=5.0)
    x = run_on("stacked", FedAvg(0.05), CASE, long).last
    _, gradient = CASE.problem.exact(x, CASE.clients, [1.0] * len(CASE.clients))
    assert gap(gradient, -0.5 * x) < 0.15
    assert gap(gradient, torch.zeros_like(x)) > 0.3
