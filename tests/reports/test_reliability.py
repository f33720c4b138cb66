"""Whether probabilities hold: groups of rows, Brier score and calibration error from counts."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.metrics import brier_score_loss

from fedcso.core.errors import FedcsoError
from fedcso.reports.calibration import Calibration, platt
from fedcso.reports.reliability import brier_score, expected_calibration_error, reliability
from fedcso.reports.score_counts import fixed_bins
from fedcso.reports.shares import wilson


def drawn(rows=20_000, mean=-4.0, seed=0):
    """Scores that are the true log-odds."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(mean, 1.5, rows)
    return scores, (rng.random(rows) < expit(scores)).astype(int)


def log_odds_times(slope):
    return Calibration("", (0.0,), (0.0,), slope, 0.5)


def test_groups_count_all_rows_and_hold_the_mean_probability():
    scores, labels = drawn()
    groups = reliability(fixed_bins().count(scores, labels), log_odds_times(1.0))
    assert sum(group.rows for group in groups) == len(scores)
    assert sum(group.positives for group in groups) == labels.sum()
    assert sum(group.rows * group.predicted for group in groups) == pytest.approx(expit(scores).sum(), rel=1e-4)
    for group in groups:
        assert group.observed == wilson(group.positives, group.rows)
    predicted = [group.predicted for group in groups]
    assert predicted == sorted(predicted)


def test_rare_positives_are_spread_over_groups():
    """By rows alone the highest of ten groups would hold more than a third of the positives."""
    counts = fixed_bins().count(*drawn())
    groups = reliability(counts, log_odds_times(1.0))
    assert len(groups) == 10
    assert max(group.positives for group in groups) < 0.2 * counts.positives.sum()
    assert max(group.rows for group in groups) < 0.3 * counts.rows.sum()


def test_true_probabilities_lie_in_the_intervals():
    """Of 100 intervals at 95 % fewer than 87 hold with a chance of one in two thousand."""
    groups = [g for seed in range(10) for g in reliability(fixed_bins().count(*drawn(seed=seed)), log_odds_times(1.0))]
    held = sum(group.observed.low <= group.predicted <= group.observed.high for group in groups)
    assert len(groups) == 100
    assert 87 <= held < 100


def test_few_rows_make_few_groups():
    groups = reliability(fixed_bins().count([0.0, 0.0, 1.0], [0, 1, 1]), log_odds_times(1.0))
    assert [group.rows for group in groups] == [2, 1]


def test_brier_score_is_that_of_rows():
    scores, labels = drawn()
    found = brier_score(fixed_bins().count(scores, labels), log_odds_times(0.7))
    assert found == pytest.approx(brier_score_loss(labels, expit(0.7 * scores)), rel=1e-4)


def test_wrong_probabilities_have_the_larger_errors():
    counts = fixed_bins().count(*drawn(mean=0.0))
    right, wrong = platt(counts), log_odds_times(5.0)
    errors = [expected_calibration_error(reliability(counts, c)) for c in (right, wrong)]
    assert errors[0] < 0.02 < 0.1 < errors[1]
    assert brier_score(counts, right) < brier_score(counts, wrong)


def test_calibration_error_by_hand():
    """Half of the rows at 0.5, of which a quarter is positive, half at σ(2), of which all are."""
    counts = fixed_bins().count([0.0] * 4 + [2.0] * 4, [0, 0, 0, 1, 1, 1, 1, 1])
    groups = reliability(counts, log_odds_times(1.0))
    assert expected_calibration_error(groups) == pytest.approx(0.5 * 0.25 + 0.5 * (1 - expit(2.0)), abs=1e-3)


@pytest.mark.parametrize("check", [reliability, brier_score])
def test_rows_are_needed(check):
    with pytest.raises(FedcsoError, match="no rows"):
        check(fixed_bins(8).count([], []), log_odds_times(1.0))
