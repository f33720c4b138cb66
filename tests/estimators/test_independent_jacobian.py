"""∇g on other samples than ∇f: no bias if f is quadratic, and one of order 1/m² otherwise."""

from dataclasses import replace

import pytest
import torch

from fedcso.core.errors import FedcsoError, InvalidValue
from fedcso.core.oracle import Oracle
from fedcso.core.problem import Batch, split_steps
from fedcso.core.streams import stream
from fedcso.estimators.extrapolated import extrapolated
from fedcso.estimators.independent_jacobian import independent_jacobian
from fedcso.estimators.plain import plain
from fedcso.problems import InvariantLogistic
from tests.estimators.all_patterns import bias, order, square
from tests.estimators.monte_carlo import CASE, TRUTH, X, estimates
from tests.helpers import assert_close, classification, personalised


def a_batch(case=CASE, b: int = 3, m: int = 8) -> Batch:
    (batch,) = split_steps(independent_jacobian.draw(case.problem, case.clients[0], stream(0, 0, 0), 1, b, m).batch, 1)
    return batch


def test_the_order_of_the_bias_of_a_smooth_f():
    """f = exp; exact expectations over all patterns of 16 and of 32 samples, of which half are for ∇f."""
    assert abs(order(independent_jacobian, torch.exp, 16, 32) - 2) < 0.25
    assert abs(bias(independent_jacobian, torch.exp, 32)) > 1e-6


@pytest.mark.parametrize("m", [4, 8])
def test_no_bias_is_left_if_f_is_quadratic(m):
    assert abs(bias(independent_jacobian, square, m)) < 1e-12
    assert abs(bias(plain, square, m)) > 1e-2
    found = estimates(independent_jacobian, b=1, m=m)
    assert found.agrees_with(TRUTH)
    assert found.samples == m


def test_it_is_the_formula():
    """∇f = y − ξ and J = η̄ on the nested quadratic, one ξ at a time."""
    batch = a_batch()
    one, other, jacobian = batch.eta[:, :2].mean(1), batch.eta[:, 2:4].mean(1), batch.eta[:, 4:].mean(1)
    slope = 2 * ((one + other) / 2 * X - batch.xi) - 0.5 * ((one * X - batch.xi) + (other * X - batch.xi))
    assert_close(Oracle(CASE.problem, independent_jacobian).grad(X, batch), (jacobian * slope).mean(0))


def test_the_value_is_extrapolated_too():
    batch = a_batch()
    half = Batch(batch.xi, batch.eta[:, :4])
    assert_close(independent_jacobian(CASE.problem, X, batch), extrapolated(CASE.problem, X, half))


@pytest.mark.parametrize("case", [classification(), personalised(inner_steps=0)], ids=["no samples", "not used"])
def test_where_g_is_the_identity_it_is_plain(case):
    """ĝ = x has one row for all ξ."""
    batch, x = a_batch(case), case.problem.init(stream(0, 0, 0))
    assert_close(Oracle(case.problem, independent_jacobian).grad(x, batch), Oracle(case.problem, plain).grad(x, batch))


def test_inner_samples_that_are_all_alike_make_it_plain():
    batch = a_batch()
    alike = Batch(batch.xi, batch.eta[:, :1].expand(-1, 8, -1))
    assert_close(Oracle(CASE.problem, independent_jacobian).grad(X, alike), Oracle(CASE.problem, plain).grad(X, alike))


def test_an_inner_batch_that_has_no_quarters_is_refused():
    with pytest.raises(
        InvalidValue, match="inner_batch = 6 must be a multiple of 4: the independent_jacobian estimator"
    ):
        independent_jacobian.check(6)


def test_a_problem_that_draws_means_is_refused():
    problem = replace(InvariantLogistic(dimension=2), draw_mean=True)
    with pytest.raises(FedcsoError, match="this estimator splits the 4 inner samples"):
        independent_jacobian.draw(problem, problem.clients(1)[0], stream(0, 0, 0), 1, 2, 4)
