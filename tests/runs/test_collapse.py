"""Runs that learnt something and lost it."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcso.runs.collapse import collapse


def rows(*values, **more):
    return [{"round": 10 * i, "average_precision": value, **more} for i, value in enumerate(values)]


def test_it_is_dated_and_measured():
    assert collapse(rows(0.2, 0.5, 0.7, 0.3)).startswith(
        "collapsed: average_precision was 0.7000 after round 20 and is 0.3000 after round 30; "
    )


def test_the_first_evaluation_that_shows_it_is_named():
    assert "is 0.3000 after round 20" in collapse(rows(0.2, 0.7, 0.3, 0.25))


def test_dead_sigmoids_are_named_as_the_cause():
    found = collapse(rows(0.2, 0.7, 0.2, saturated=0.93))
    assert "93% of the scores" in found
    assert "--clip" in found


def test_without_them_the_advice_is_about_the_learning_rate():
    assert "smaller learning rate" in collapse(rows(0.2, 0.7, 0.2, saturated=0.0))


@pytest.mark.parametrize(
    "values",
    [
        (0.2,),
        (0.2, 0.5, 0.7),
        (0.2, 0.7, 0.6, 0.65),  # noise
        (0.2, 0.24, 0.19),  # had learnt nothing
        (0.2, 0.1, 0.05),  # never rose
        (math.nan, 0.7, 0.2),  # there is nothing to compare with
    ],
)
def test_this_is_none(values):
    assert collapse(rows(*values)) is None


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20).map(sorted))
def test_what_only_rises_has_not_collapsed(values):
    assert collapse(rows(*values)) is None


def test_metrics_that_should_fall_are_left_alone():
    assert collapse([{"round": i, "loss": value} for i, value in enumerate((0.2, 0.9, 0.1))]) is None
