"""Thresholds for a wanted precision, recall or number of alerts, what they do, and what can't be had."""

import json
from dataclasses import asdict

import numpy as np
import pytest

from fedcso.core.errors import FedcsoError, InvalidValue
from fedcso.reports.outcome import Outcome
from fedcso.reports.score_counts import fixed_bins
from fedcso.reports.thresholds import NotReached, OperatingPoints, for_alerts, for_precision, for_recall


def drawn(rows=4000, seed=0, prevalence=0.1):
    rng = np.random.default_rng(seed)
    labels = (rng.random(rows) < prevalence).astype(int)
    return rng.normal(size=rows) + 2 * labels, labels


ROWS = drawn()
COUNTS = fixed_bins().count(*ROWS)


def all_thresholds(scores, labels):
    """Precision, recall and the share of alerts at every score."""
    alerts = [scores >= score for score in np.unique(scores)]
    return [(labels[alert].mean(), labels[alert].sum() / labels.sum(), alert.mean()) for alert in alerts]


def test_precision_is_reached_with_the_highest_recall():
    scores, labels = drawn(rows=400)
    chosen = for_precision(fixed_bins().count(scores, labels), 0.6)
    best = max(recall for precision, recall, _ in all_thresholds(scores, labels) if precision >= 0.6)
    assert chosen.validation.precision().value >= 0.6
    assert chosen.validation.recall.value == pytest.approx(best)
    assert chosen.judge(scores, labels) == chosen.validation
    assert chosen.wanted == "precision 0.6"


@pytest.mark.parametrize("right", range(1, 100))
def test_a_precision_that_is_reached_exactly_is_reached(right):
    """7 of 100 alerts are a precision of 0.07, whatever rounding makes of it."""
    scores, labels = np.repeat([1.0, 0.0], [100, 37]), np.repeat([1, 0], [right, 137 - right])
    chosen = for_precision(fixed_bins().count(scores, labels), right / 100)
    assert chosen.validation.true_positives == right


def test_recall_is_reached_with_the_fewest_alerts():
    scores, labels = drawn(rows=400)
    chosen = for_recall(fixed_bins().count(scores, labels), 0.8)
    fewest = min(alerts for _, recall, alerts in all_thresholds(scores, labels) if recall >= 0.8)
    assert chosen.validation.recall.value >= 0.8
    assert chosen.validation.alert_share() == pytest.approx(fewest, abs=1 / 400)
    assert chosen.judge(scores, labels) == chosen.validation


def test_all_positives_can_be_found_however_low_their_scores():
    scores = np.array([-np.inf, -1e300, 1.0, 2.0])
    chosen = for_recall(fixed_bins().count(scores, [1, 0, 0, 1]), 1.0)
    assert chosen.judge(scores, [1, 0, 0, 1]) == chosen.validation == Outcome(2, 2, 0, 0)


@pytest.mark.parametrize(("alerts", "rows"), [(2, 100), (15, 1000), (1, 1)])
def test_alerts_are_as_many_as_wanted_but_not_more(alerts, rows):
    chosen = for_alerts(COUNTS, alerts, rows)
    assert alerts / rows - 0.002 < chosen.validation.alert_share() <= alerts / rows
    assert chosen.wanted == f"at most {alerts} alerts in {rows} rows"


def test_a_threshold_does_on_test_data_about_what_it_promised():
    chosen = for_precision(COUNTS, 0.7)
    outcome = chosen.judge(*drawn(seed=1))
    assert outcome.precision().low < 0.7 < outcome.precision().high
    assert outcome.recall.value == pytest.approx(chosen.validation.recall.value, abs=0.06)


def test_a_precision_that_is_not_reached_is_said():
    rng = np.random.default_rng(0)
    counts = fixed_bins().count(rng.normal(size=1000), rng.integers(0, 2, 1000))
    with pytest.raises(NotReached) as error:
        for_precision(counts, 0.95)
    points = OperatingPoints.of(counts)
    considered = points.true_positives + points.false_positives >= 10
    highest = points.precision[considered].max()
    assert "precision 0.95 is not reached at any threshold with 10 or more alerts" in str(error.value)
    assert f"the highest is {highest:.2g} at recall" in str(error.value)


def test_one_right_alert_is_no_precision():
    scores, labels = np.arange(100.0), np.arange(100) % 2
    with pytest.raises(NotReached, match=r"the highest is 0\.55"):
        for_precision(fixed_bins().count(scores, labels), 0.9)


def test_alerts_too_few_to_be_reached_are_said():
    counts = fixed_bins().count(np.repeat([1.0, 0.0], [30, 70]), np.repeat([1, 0, 1, 0], [10, 20, 5, 65]))
    with pytest.raises(NotReached, match=r"at most 20 alerts in 1000 rows .* alone are 300"):
        for_alerts(counts, 20, 1000)


@pytest.mark.parametrize("prevalence", [0.01, 0.5])
def test_thresholds_for_another_prevalence_are_those_of_data_that_have_it(prevalence):
    other = fixed_bins().count(*drawn(rows=100_000, prevalence=prevalence, seed=5))
    for choose, wanted in ((for_precision, 0.6), (for_alerts, 2)):
        adjusted = choose(COUNTS, wanted, prevalence=prevalence)
        assert adjusted.score == pytest.approx(choose(other, wanted).score, abs=0.3)


def test_outcomes_of_sites_add_up():
    scores, labels = ROWS
    chosen = for_recall(COUNTS, 0.5)
    half = len(scores) // 2
    parts = chosen.judge(scores[:half], labels[:half]), chosen.judge(scores[half:], labels[half:])
    assert parts[0] + parts[1] == chosen.judge(scores, labels)


@pytest.mark.parametrize("labels", [[], [0, 0], [1, 1]])
def test_both_labels_are_needed(labels):
    counts = fixed_bins(8).count(np.zeros(len(labels)), np.array(labels))
    with pytest.raises(FedcsoError, match="can't be chosen"):
        for_recall(counts, 0.5)


@pytest.mark.parametrize(
    "choose",
    [
        lambda: for_precision(COUNTS, 1.5),
        lambda: for_precision(COUNTS, 0.5, prevalence=1.0),
        lambda: for_recall(COUNTS, 0),
        lambda: for_alerts(COUNTS, 200, 100),
        lambda: for_alerts(COUNTS, 0),
        lambda: for_alerts(COUNTS, 1, 0),
    ],
)
def test_wishes_that_make_no_sense_are_refused(choose):
    with pytest.raises(InvalidValue):
        choose()


def test_a_threshold_can_be_kept_as_json():
    kept = json.loads(json.dumps(asdict(for_recall(COUNTS, 0.5))))
    assert kept["wanted"] == "recall 0.5"
    assert kept["validation"]["true_positives"] > 0
