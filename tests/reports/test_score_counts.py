"""Scores as counts: sites' counts add up to those of all rows, in bins that all know or agree on."""

import numpy as np
import pytest

from fedcso.core.errors import FedcsoError
from fedcso.reports.score_counts import FURTHEST, Bins, ScoreCounts, checked, fixed_bins, total

SMALL = Bins(np.array([-FURTHEST, -1.0, 0.0, 1.0, FURTHEST]), np.array([-2.0, -0.5, 0.5, 2.0]))


def test_a_score_is_counted_in_the_bin_that_begins_at_or_below_it():
    counts = SMALL.count([-1.5, -1.0, -0.1, 0.0, 0.9, 1.0, 7.0], [0, 0, 1, 0, 1, 1, 1])
    assert counts.negatives.tolist() == [1, 1, 1, 0]
    assert counts.positives.tolist() == [0, 1, 1, 2]
    assert counts.rows.tolist() == [1, 2, 2, 2]


@pytest.mark.parametrize("bins", [SMALL, fixed_bins(16)])
def test_scores_however_far_out_are_counted(bins):
    counts = bins.count([-np.inf, -1e300, -FURTHEST, FURTHEST, 1e300, np.inf], [0, 0, 0, 1, 1, 1])
    assert (counts.negatives[0], counts.positives[-1]) == (3, 3)


def test_counts_of_sites_add_up_to_those_of_all_rows():
    rng = np.random.default_rng(0)
    scores, labels, sites = rng.normal(size=500), rng.integers(0, 2, 500), rng.integers(0, 3, 500)
    bins = fixed_bins()
    together = total([bins.count(scores[sites == site], labels[sites == site]) for site in range(3)])
    whole = bins.count(scores, labels)
    np.testing.assert_array_equal(together.negatives, whole.negatives)
    np.testing.assert_array_equal(together.positives, whole.positives)
    assert whole.rows.sum() == 500


def test_a_site_without_rows_counts_nothing():
    assert SMALL.count([], []).rows.tolist() == [0, 0, 0, 0]


def test_counts_in_different_bins_cannot_be_added():
    with pytest.raises(FedcsoError, match="different bins"):
        SMALL.count([0.0], [1]) + fixed_bins(2).count([0.0], [1])


def test_there_must_be_counts_to_add():
    with pytest.raises(FedcsoError, match="at least one site"):
        total([])


def test_fixed_bins_are_as_narrow_as_they_say():
    bins = fixed_bins()
    assert (np.diff(bins.edges) > 0).all()
    assert ((bins.edges[:-1] < bins.centres) & (bins.centres < bins.edges[1:])).all()
    assert bins.edges[[0, -1]].tolist() == [-FURTHEST, FURTHEST]
    widths, far = np.diff(bins.edges), np.abs(bins.centres) > 0.01
    assert (widths[far] < 0.0027 * np.abs(bins.centres[far])).all()
    assert (widths[~far] < 3e-5).all()


def test_neighbours_are_joined_from_the_top_until_they_hold_enough():
    bins = Bins(np.arange(-3.0, 4.0), np.arange(-2.5, 3.0))
    counts = ScoreCounts(bins, np.array([1, 0, 2, 0, 1, 0]), np.array([0, 0, 1, 0, 1, 3]))
    merged = counts.merge(counts.rows, 3)  # rows: 1 0 3 0 2 3
    assert merged.bins.edges.tolist() == [-3, 2, 3]
    assert merged.rows.tolist() == [6, 3]
    assert counts.merge(counts.rows, 2).rows.tolist() == [4, 2, 3]  # the single row at the bottom joins those above
    assert counts.merge(counts.rows, 100).rows.tolist() == [9]
    assert merged.positives.tolist() == [2, 3]


def test_a_merged_centre_is_the_mean_of_its_rows():
    bins = Bins(np.arange(-2.0, 3.0), np.arange(-1.5, 2.0))
    merged = ScoreCounts(bins, np.array([3, 1, 0, 0]), np.array([0, 0, 2, 2])).merge(np.array([1, 1, 1, 1]), 2)
    assert merged.bins.centres.tolist() == [-1.25, 1.0]


def test_sites_agree_on_bins_that_hold_enough_rows_together():
    """Unlabelled counts in fixed bins, merged; then labelled counts in the merged bins."""
    rng = np.random.default_rng(1)
    sites = [(rng.normal(size=200), rng.integers(0, 2, 200)) for _ in range(3)]
    unlabelled = total([fixed_bins().count(scores, np.zeros(200)) for scores, _ in sites])
    agreed = unlabelled.merge(unlabelled.rows, 5).bins
    labelled = total([agreed.count(scores, labels) for scores, labels in sites])
    assert labelled.rows.min() >= 5
    assert labelled.rows.sum() == 600
    assert len(agreed.centres) > 80


@pytest.mark.parametrize(
    ("scores", "labels", "message"),
    [
        ([0.0, np.nan], [0, 1], "1 of 2 scores are NaN"),
        ([0.0, 1.0], [0, 2], "labels must be 0"),
        ([0.0, 1.0], [0], "give one of each"),
        ([[0.0]], [[1]], "give one of each"),
    ],
)
def test_what_cannot_be_counted_is_refused(scores, labels, message):
    with pytest.raises(FedcsoError, match=message):
        checked(scores, labels)
