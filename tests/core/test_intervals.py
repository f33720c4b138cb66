"""Confidence intervals over seeds."""

import math

import pytest

from fedcso.core.intervals import mean_and_interval


def test_interval_of_two_seeds_is_that_of_student():
    """0 and 2: mean 1, standard error 1, and with one degree of freedom t is Cauchy's quantile."""
    mean, half_width = mean_and_interval([0.0, 2.0], level=0.95)
    assert mean == 1
    assert half_width == pytest.approx(math.tan(math.pi * 0.475))


def test_a_higher_level_needs_a_wider_interval():
    values = [1.0, 2.0, 4.0]
    assert mean_and_interval(values, 0.99)[1] > mean_and_interval(values, 0.9)[1] > 0


def test_one_seed_has_no_interval():
    mean, half_width = mean_and_interval([3.0])
    assert mean == 3
    assert math.isnan(half_width)
