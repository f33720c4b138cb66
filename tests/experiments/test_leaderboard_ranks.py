"""Ranks and costs on entries made by hand."""

import math

import pytest

from fedcso.core.costs import Costs
from fedcso.core.metric import Metric
from fedcso.experiments.leaderboard_ranks import Entry, places, spent_until, standing, target

LOSS = Metric("loss", higher_is_better=False)
ACCURACY = Metric("accuracy", higher_is_better=True)


def entry(method, scores, metric=LOSS, curves=None):
    return Entry("problem", method, "group", metric, scores, curves or [], Costs(), {"learning_rate": 0.1}, False)


def curve(values, bytes_each=10):
    """A row for each evaluation; samples grow by 3, bytes by 10."""
    return [
        {"loss": v, "outer_samples": i, "inner_samples": 2 * i, "bytes_up": i * bytes_each, "bytes_down": 0}
        for i, v in enumerate(values)
    ]


def test_methods_that_differ_clearly_have_places_of_their_own_and_others_share_them():
    entries = [
        entry("second", [2.0, 2.1, 2.2]),
        entry("first", [1.0, 1.1, 1.2]),
        entry("tied with the second", [2.0, 2.2, 2.1]),
    ]
    found = places(entries)
    assert [(place.first, place.last) for place in found] == [(2, 3), (1, 1), (2, 3)]
    assert [place.rank for place in found] == [2.5, 1, 2.5]
    assert [place.relative for place in found] == [0.75, 0, 0.75]


def test_effects_of_the_seed_cancel():
    """Intervals of the two means overlap, but one is ahead with every seed by nearly as much."""
    near = [entry("a", [1.0, 5.0, 9.0]), entry("b", [1.5, 5.51, 9.49])]
    assert [place.rank for place in places(near)] == [1, 2]
    assert [place.rank for place in places([near[0], entry("c", [1.5, 4.49, 9.51])])] == [1.5, 1.5]


def test_higher_is_better_where_the_metric_says_so():
    scores = [entry("low", [0.1, 0.11, 0.12], ACCURACY), entry("high", [0.9, 0.91, 0.92], ACCURACY)]
    assert [place.rank for place in places(scores)] == [2, 1]


def test_a_method_that_failed_is_behind_all_that_did_not():
    found = places([entry("failed", [0.0, 0.0, math.nan]), entry("a", [5.0, 1.0, 9.0]), entry("b", [5.0, 2.0, 8.0])])
    assert [(place.first, place.last) for place in found] == [(3, 3), (1, 2), (1, 2)]


def test_with_one_seed_scores_decide():
    assert [place.rank for place in places([entry("a", [2.0]), entry("b", [1.0]), entry("c", [1.0])])] == [3, 1.5, 1.5]


def test_a_method_without_rivals_is_in_the_middle():
    assert places([entry("alone", [1.0, 2.0, 3.0])])[0].relative == 0.5


def test_the_interval_of_a_mean_rank_is_over_problems():
    found = standing([0.0, 0.5, 1.0, 0.5])
    assert (found.mean, found.problems) == (0.5, 4)
    assert 0 < found.low < 0.5 < found.high < 1
    assert standing([0.3] * 5)[:3] == pytest.approx((0.3, 0.3, 0.3))
    assert math.isnan(standing([0.0, 1.0]).low)


def test_costs_count_until_the_mean_over_seeds_is_as_good_as_stated():
    base = entry("FCSG", [0.0, 2.0], curves=[curve([10, 4, 1, 0]), curve([12, 6, 3, 2])])
    wanted = target(base)
    assert wanted == pytest.approx(11 - 0.9 * 10)
    assert spent_until(base, wanted) == (6, 20)
    faster = entry("fast", [0.0, 0.0], curves=[curve([10, 1], 50), curve([12, 2], 50)])
    assert spent_until(faster, wanted) == (3, 50)


def test_costs_are_unknown_if_the_accuracy_is_never_reached():
    assert spent_until(entry("slow", [9.0], curves=[curve([10, 9])]), 1.0) is None
    assert spent_until(entry("failed", [math.nan], curves=[curve([10, 0.5])]), 1.0) is None
