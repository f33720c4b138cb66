"""What a threshold does: shares with intervals, at the data's prevalence or another, and in words."""

import math

import pytest

from fedcso.core.errors import InvalidValue
from fedcso.reports.outcome import Outcome
from fedcso.reports.shares import wilson


def test_precision_and_alerts_at_another_prevalence():
    """TPR = 0.8, FPR = 0.1; with 1 % positives 8 right and 99 wrong alerts in 1000 rows."""
    outcome = Outcome(80, 90, 20, 810)
    assert outcome.precision(0.01).value == pytest.approx(8 / 107)
    assert outcome.alert_share(0.01) == pytest.approx(0.107)
    assert outcome.precision(0.1) == pytest.approx(outcome.precision())
    assert outcome.alert_share(0.1) == pytest.approx(outcome.alert_share())
    with pytest.raises(InvalidValue, match="prevalence"):
        outcome.precision(0)


def test_intervals_are_wilsons():
    outcome = Outcome(80, 90, 20, 810)
    assert outcome.recall == wilson(80, 100)
    assert outcome.precision() == pytest.approx(wilson(80, 170))


def test_what_a_threshold_does_is_said_in_words():
    assert Outcome(62, 38, 15, 885).describe() == (
        "of 100 alerts about 62 are right (52 to 71; 62 of 100 here); "
        "81 % of the positives are found (70 to 88 %; 62 of 77 here); about 100 of 1000 rows are alerts"
    )
    assert Outcome(80, 90, 20, 810).describe(0.01).startswith("where 1 % of rows are positive, of 100 alerts about 7 ")
    assert Outcome(0, 0, 3, 97).describe() == "none of 100 rows is an alert; 3 of 3 positives are missed"
    assert "found" not in Outcome(0, 5, 0, 95).describe()


def test_without_alerts_or_positives_nothing_is_known():
    assert Outcome(0, 0, 3, 97).precision()[1:] == (0, 1)
    assert Outcome(0, 5, 0, 95).recall[1:] == (0, 1)
    assert Outcome(0, 5, 0, 95).alert_share(0.2) == 0.05
    assert math.isnan(Outcome(0, 0, 0, 0).alert_share())
