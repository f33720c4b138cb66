"""Whether probabilities hold: of the rows with probability 0.3, are 30 % positive?

From counts in bins, with p_j the probability of bin j, P_j its positives, N_j its negatives and n = Σ_j (P_j + N_j):

    Brier score = Σ_j ( P_j (1 − p_j)² + N_j p_j² ) / n
    expected calibration error = Σ_groups (rows/n) · | observed share − mean probability |
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fedcso.core.errors import FedcsoError
from fedcso.reports.calibration import Calibration
from fedcso.reports.score_counts import ScoreCounts
from fedcso.reports.shares import Share, wilson


class Group(NamedTuple):
    """Rows of similar probability."""

    rows: int
    positives: int
    predicted: float
    """The mean of their probabilities."""
    observed: Share
    """The share of them that is positive, with Wilson's interval."""


def reliability(counts: ScoreCounts, calibration: Calibration, groups: int = 10) -> list[Group]:
    """Return about this many groups of rows, by rising probability.

    They have equal parts of (share of all rows) + (share of the positives that the probabilities expect). Groups of
    equally many rows would put all probabilities that matter into one group where positives are rare. Labels don't
    influence the groups.
    """
    _require_rows(counts)
    expected = counts.rows * calibration.apply(counts.bins.centres)
    mass = counts.rows / counts.rows.sum() + expected / expected.sum()
    merged = counts.merge(mass, 0.97 * mass.sum() / groups)  # a little less, for bins don't fit exactly
    places = np.searchsorted(merged.bins.edges[1:-1], counts.bins.centres, side="right")
    sums = np.bincount(places, weights=expected, minlength=len(merged.rows))
    return [
        Group(int(rows), int(positives), float(sum_ / rows), wilson(int(positives), int(rows)))
        for rows, positives, sum_ in zip(merged.rows, merged.positives, sums, strict=True)
    ]


def brier_score(counts: ScoreCounts, calibration: Calibration) -> float:
    """Return the mean squared distance of probabilities from labels."""
    _require_rows(counts)
    p = calibration.apply(counts.bins.centres)
    return float((counts.positives * (1 - p) ** 2 + counts.negatives * p**2).sum() / counts.rows.sum())


def expected_calibration_error(groups: Sequence[Group]) -> float:
    """Return by how much observed shares and probabilities differ, mean over rows."""
    rows = sum(group.rows for group in groups)
    return sum(group.rows * abs(group.observed.value - group.predicted) for group in groups) / rows


def _require_rows(counts: ScoreCounts) -> None:
    if not counts.rows.any():
        raise FedcsoError("probabilities can't be checked: there are no rows")
