"""Hyper-parameters that are numbers, schedules or a grid of either."""

import pytest

from fedcso.algorithms import FCSG, FCSGM, BSpiderBoost, LocalSCGD
from fedcso.core.algorithm import at, grid
from fedcso.core.errors import InvalidValue


def test_a_schedule_is_asked_for_its_step_and_a_number_is_itself():
    assert at(lambda t: 10 * t, 3) == 30
    assert at(0.5, 3) == 0.5


def test_a_grid_holds_one_entry_per_setting_where_these_differ():
    joint = grid([FCSGM(0.1, momentum=0.5), FCSGM(0.2, momentum=0.5)])
    assert joint.learning_rate.tolist() == [0.1, 0.2]
    assert joint.momentum == 0.5


def test_a_grid_of_one_is_that_one():
    one = FCSG(0.1)
    assert grid([one]) is one


def test_a_grid_of_schedules_is_a_schedule_in_double_precision():
    joint = grid([FCSG(lambda t: 0.1 / (1 + t)), FCSG(0.3)])
    assert at(joint.learning_rate, 4).tolist() == [0.1 / 5, 0.3]


def test_a_grid_mixes_no_methods():
    with pytest.raises(InvalidValue, match=r"algorithms = \['FCSG', 'FCSGM'\] must be settings of the same method"):
        grid([FCSG(0.1), FCSGM(0.1)])


def test_a_grid_varies_no_counts():
    with pytest.raises(InvalidValue, match=r"period = \[2, 3\] .*the same in all settings"):
        grid([BSpiderBoost(period=2), BSpiderBoost(period=3)])


def test_a_grid_varies_no_choices():
    with pytest.raises(InvalidValue, match=r"blend = \['mean', 'each'\] .*the same in all settings"):
        grid([LocalSCGD(), LocalSCGD(blend="each")])
