"""What Table 1 is measured by: instances, crossings, exponents."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fedcso.core.errors import FedcsoError
from fedcso.core.problem import split_steps
from fedcso.core.streams import stream
from fedcso.core.trace import Trace
from fedcso.estimators.plain import plain
from fedcso.experiments.complexity import INSTANCES, NEVER, Reached, alike, exponent, quadratic, reached, running_means
from tests.helpers import assert_close

MAKERS = {**INSTANCES, "alike": alike}


@pytest.mark.parametrize("name", MAKERS)
def test_an_instance_starts_at_the_origin_and_knows_its_constants(name):
    instance = MAKERS[name](3)
    x = instance.problem.init(stream(5, 0, 0))
    assert not x.any()
    assert x.dtype == torch.float64
    gradient = instance.problem.exact(x, instance.clients, [1.0] * 3)[1]
    assert instance.start == pytest.approx(float(gradient.norm()))
    assert instance.constants.gap > 0


@given(x=st.floats(-5, 5), m=st.integers(1, 4))
def test_the_formula_of_the_quadratic_is_what_differentiation_gives(x, m):
    problem, clients = quadratic(2)[:2]
    batch = split_steps(plain.draw(problem, clients[1], stream(0, 1, 2), 1, 3, m).batch, 1)[0]
    point = torch.tensor([x], dtype=torch.float64, requires_grad=True)
    loss = plain(problem, point, batch).mean()
    (gradient,) = torch.autograd.grad(loss, point)
    value, formula = problem.closed_form(point.detach(), batch.xi, batch.eta)
    assert_close(value, loss.detach())
    assert_close(formula, gradient)


def test_clients_that_are_alike_have_the_same_objective_however_many_they_are():
    x = torch.tensor([0.7], dtype=torch.float64)
    values = [alike(n).problem.exact(x, alike(n).clients, [1.0] * n) for n in (1, 5, 64)]
    for value, gradient in values:
        assert_close(value, values[0][0])
        assert_close(gradient, values[0][1])


def made(norms, failure=None):
    rows = [{"gradient_norm": norm, "inner_samples": 60 * r, "round": r, "step": 4 * r} for r, norm in enumerate(norms)]
    return Trace(rows=rows, failure=failure)


def test_the_running_mean_is_that_of_the_squares():
    assert running_means(made([3.0, 1.0, 2.0])) == pytest.approx([9, 5, 14 / 3])


def test_an_accuracy_is_reached_when_the_running_mean_is_below_its_square():
    trace = made([3.0, 1.0, 0.0, 0.0])  # means 9, 5, 10/3, 2.5
    assert reached(trace, math.sqrt(5), clients=3) == Reached(samples=20, rounds=1, steps=4)
    assert reached(trace, 1.6, clients=1) == Reached(samples=180, rounds=3, steps=12)
    assert reached(trace, 1.5, clients=1) == NEVER
    assert reached(trace, 3.0, clients=1) == Reached(0, 0, 0)


def test_a_run_that_broke_off_has_reached_nothing():
    assert reached(made([0.1], FedcsoError("non-finite loss")), 1.0, clients=1) == NEVER


@given(power=st.floats(-8, 8), factors=st.lists(st.floats(0.1, 10), min_size=2, max_size=4))
def test_the_exponent_of_a_power_law_is_found(power, factors):
    at = [0.5, 0.3, 0.2, 0.1]
    found = exponent(at, [[factor * x**power for factor in factors] for x in at])
    assert found.mean == pytest.approx(power, abs=1e-9)
    assert found.half_width == pytest.approx(0, abs=1e-6)


def test_seeds_that_disagree_widen_the_interval():
    found = exponent([0.1, 1.0], [[10.0, 1000.0], [1.0, 1.0]])  # slopes −1 and −3
    assert found.mean == pytest.approx(-2)
    assert found.half_width > 10  # two seeds


def test_what_one_seed_never_reached_is_left_out_for_all():
    at = [1.0, 0.1, 0.01]
    found = exponent(at, [[1.0, 1.0], [100.0, 100.0], [math.inf, 5.0]])
    assert found.mean == pytest.approx(-2)
    assert math.isnan(exponent(at, [[1.0], [math.inf], [math.inf]]).mean)
