"""Runs that learnt something and lost it."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcso.core.metric import DeclaredMetrics, Metric
from fedcso.runs import collapse as module
from tests.declared import RANKED

METRIC = "validation_average_precision"


def rows(*values, **more):
    return [{"round": 10 * i, METRIC: value, **more} for i, value in enumerate(values)]


def collapse(rows, declared=RANKED):
    return module.collapse(rows, declared)


def test_it_is_dated_and_measured():
    assert collapse(rows(0.2, 0.5, 0.7, 0.3)).startswith(
        f"collapsed: {METRIC} was 0.7000 after round 20 and is 0.3000 after round 30; "
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


@pytest.mark.parametrize("missing", [{}, {METRIC: ""}, {METRIC: None}])
def test_evaluations_without_the_metric_are_passed_over(missing):
    """Regression: a run that an earlier version started has no metrics on validation data at first."""
    before = [{"round": 0, "average_precision": 0.9} | missing]
    assert collapse(before) is None
    assert "was 0.7000" in collapse(before + rows(0.2, 0.7, 0.2))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20).map(sorted))
def test_what_only_rises_has_not_collapsed(values):
    assert collapse(rows(*values)) is None


def test_only_the_metric_that_selects_is_looked_at():
    """AUROC fell back to its start while average precision rose from 0.10 to 0.72: nothing was lost."""
    precision, auroc = (0.10, 0.35, 0.60, 0.72), (0.50, 0.80, 0.55, 0.50)
    both = [
        {"round": r, METRIC: p, "average_precision": p, "auroc": a, "validation_auroc": a}
        for r, (p, a) in enumerate(zip(precision, auroc, strict=True))
    ]
    assert collapse(both) is None


def test_validation_data_are_looked_at_where_there_are_any():
    falling, rising = (0.2, 0.7, 0.2), (0.2, 0.5, 0.7)
    tested = [row | {"average_precision": value} for row, value in zip(rows(*rising), falling, strict=True)]
    assert collapse(tested) is None
    only_tested = DeclaredMetrics(RANKED.metrics, "train_loss", validated=False, headline="average_precision")
    assert collapse(tested, only_tested).startswith("collapsed: average_precision was 0.7000 after round 10")


def declared(metric):
    return DeclaredMetrics([metric], metric.name, validated=True, headline=metric.name)


def test_a_judges_own_metric_is_looked_at_in_the_direction_it_declares():
    values = (0.8, 0.2, 0.7)
    some = [{"round": r, "error": value} for r, value in enumerate(values)]
    error = Metric("error", higher_is_better=False, share=True)
    assert "error was 0.2000 after round 1 and is 0.7000 after round 2" in collapse(some, declared(error))
    assert collapse(some, declared(Metric("error", higher_is_better=True, share=True))) is None


def test_of_what_is_not_a_share_it_is_not_known_how_much_is_a_lot():
    some = [{"round": r, "loss": value} for r, value in enumerate((9.0, 2.0, 8.0))]
    assert collapse(some, declared(Metric("loss", higher_is_better=False))) is None


def test_where_nothing_is_declared_nothing_is_said():
    assert collapse(rows(0.2, 0.7, 0.2), DeclaredMetrics()) is None
