"""Shares with Wilson's interval, beside scipy's."""

import math

import pytest
from scipy.stats import binomtest

from fedcso.core.errors import InvalidValue
from fedcso.reports.shares import require_share, wilson


@pytest.mark.parametrize(("hits", "trials"), [(0, 1), (1, 1), (0, 40), (3, 40), (20, 40), (40, 40), (7, 100_000)])
@pytest.mark.parametrize("level", [0.95, 0.5])
def test_limits_are_those_of_scipy(hits, trials, level):
    share = wilson(hits, trials, level)
    expected = binomtest(hits, trials).proportion_ci(level, method="wilson")
    assert share.value == hits / trials
    assert (share.low, share.high) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert 0 <= share.low <= share.value <= share.high <= 1


def test_without_trials_nothing_is_known():
    share = wilson(0, 0)
    assert math.isnan(share.value)
    assert (share.low, share.high) == (0, 1)


def test_odds_are_multiplied():
    share = wilson(1, 2).with_odds_times(3)
    assert share.value == pytest.approx(3 / 4)
    assert wilson(5, 5).with_odds_times(0.1).value == 1
    assert wilson(0, 5).with_odds_times(10).value == 0


@pytest.mark.parametrize("value", [0, 1, -0.1, 1.5, math.nan])
def test_a_share_lies_between_0_and_1(value):
    with pytest.raises(InvalidValue, match="prevalence"):
        require_share("prevalence", value)
