"""Richardson extrapolation removes the 1/m term of the bias."""

import pytest
import torch

from fedcso.core.errors import FedcsoError, InvalidValue
from fedcso.core.problem import Batch, split_steps
from fedcso.core.streams import stream
from fedcso.estimators.extrapolated import extrapolated
from fedcso.estimators.plain import plain
from fedcso.problems import InvariantLogistic
from tests.estimators.monte_carlo import CASE, TRUTH, X, estimates
from tests.helpers import assert_close


def test_no_bias_is_left_if_it_is_exactly_of_order_1_over_m():
    """The bias of the nested quadratic is (τ²/m) x."""
    found = estimates(extrapolated, b=1, m=4)
    assert found.agrees_with(TRUTH)
    assert not estimates(plain, b=1, m=4).agrees_with(TRUTH)
    assert found.samples == 4


def test_the_bias_of_a_smooth_f_is_much_smaller_than_that_of_plain():
    problem = InvariantLogistic(dimension=2, noise=1.5, dtype=torch.float64)
    (source,) = problem.clients(1)
    x = torch.tensor([2.0, -1.0], dtype=torch.float64)
    truth = problem.exact(x, [source], [1.0])[1]
    bias = {
        one: (estimates(one, b=1, m=8, draws=300_000, problem=problem, data=source, x=x).mean - truth).norm()
        for one in (plain, extrapolated)
    }
    assert bias[extrapolated] < 0.4 * bias[plain]


def test_it_is_twice_the_whole_minus_the_mean_of_the_halves():
    (batch,) = split_steps(extrapolated.draw(CASE.problem, CASE.clients[0], stream(0, 0, 0), 1, 3, 6).batch, 1)
    first, second = (plain(CASE.problem, X, Batch(batch.xi, half)) for half in batch.eta.split(3, 1))
    by_hand = 2 * plain(CASE.problem, X, batch) - (first + second) / 2
    assert_close(extrapolated(CASE.problem, X, batch), by_hand)


def test_odd_sizes_are_refused():
    with pytest.raises(
        InvalidValue, match=r"inner_batch = 5 .*must be even: the extrapolated estimator splits it into halves"
    ):
        extrapolated.check(5)
    extrapolated.check(6)


def test_a_problem_that_draws_only_the_mean_is_refused():
    problem = InvariantLogistic(dimension=3, draw_mean=True)
    with pytest.raises(FedcsoError, match=r"splits the 8 inner samples .*draws fewer.*set draw_mean to false"):
        extrapolated.draw(problem, problem.clients(1)[0], stream(0, 0, 0), 1, 4, 8)
