"""Extrapolation over three levels removes the 1/m and 1/m² terms of the bias."""

import pytest
import torch

from fedcso.core.errors import InvalidValue
from fedcso.core.problem import Batch
from fedcso.estimators.extrapolated import extrapolated
from fedcso.estimators.plain import plain
from fedcso.estimators.three_level import three_level
from tests.estimators.all_patterns import bias, order, square
from tests.estimators.monte_carlo import CASE, TRUTH, X, estimates
from tests.helpers import assert_close


@pytest.mark.parametrize(("estimator", "expected"), [(plain, 1), (extrapolated, 2), (three_level, 3)])
def test_the_order_of_the_bias_of_a_smooth_f(estimator, expected):
    """f = exp; exact expectations over all patterns of 16 and of 32 samples."""
    assert abs(order(estimator, torch.exp, 16, 32) - expected) < 0.15
    assert abs(bias(estimator, torch.exp, 32)) > 1e-6  # not a ratio of rounding errors


def test_at_sixteen_samples_each_level_reduces_the_bias():
    found = [abs(bias(estimator, torch.exp, 16)) for estimator in (plain, extrapolated, three_level)]
    assert found[0] > 10 * found[1] > 40 * found[2]


def test_a_bias_of_exactly_1_over_m_disappears():
    assert abs(bias(three_level, square, 8)) < 1e-12
    assert abs(bias(plain, square, 8)) > 1e-2
    found = estimates(three_level, b=1, m=8)
    assert found.agrees_with(TRUTH)
    assert found.samples == 8


def test_it_combines_all_halves_and_quarters():
    batch = Batch(torch.ones(1, 3, dtype=torch.float64), torch.arange(12.0, dtype=torch.float64).reshape(1, 4, 3))

    def of(*rows):
        return plain(CASE.problem, X, Batch(batch.xi, batch.eta[:, list(rows)]))

    halves, quarters = (of(0, 1) + of(2, 3)) / 2, sum(of(row) for row in range(4)) / 4
    assert_close(three_level(CASE.problem, X, batch), 8 / 3 * of(0, 1, 2, 3) - 2 * halves + quarters / 3)


def test_an_inner_batch_that_has_no_quarters_is_refused():
    with pytest.raises(InvalidValue, match="inner_batch = 6 must be a multiple of 4: the three_level estimator"):
        three_level.check(6)
    three_level.check(4)
