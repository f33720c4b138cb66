"""From scores to decisions: the threshold for a wanted precision, recall or number of alerts.

Rows with a score at or above the threshold are alerts. With TPR and FPR, the shares of positives and of negatives that
are alerts, and a share π of positives,

    recall = TPR,   alerts = π TPR + (1 − π) FPR,   precision = π TPR / alerts

π is that of the data, or the prevalence the model will meet, if scores within each label stay as they are.
"""

import math
from dataclasses import dataclass

import numpy as np

from fedcso.core.errors import FedcsoError, require, require_fraction, require_positive
from fedcso.reports.outcome import Outcome
from fedcso.reports.score_counts import FURTHEST, ScoreCounts, checked
from fedcso.reports.shares import require_share

FEWEST_ALERTS = 10
"""Thresholds with fewer alerts are not chosen for their precision: with one right alert it would be 1."""

ROUNDING = 1e-12
"""What is reached but for this relative difference is reached."""


class NotReached(FedcsoError):
    """No threshold gives what is wanted; says how near one comes."""


@dataclass(frozen=True)
class Threshold:
    """The lowest score of an alert, and what it was chosen for."""

    score: float
    wanted: str
    validation: Outcome
    """What it does on the data it was chosen on; expect a little less on other data."""

    def judge(self, scores: np.ndarray, labels: np.ndarray) -> Outcome:
        """Return what the threshold does on other rows, such as the test data."""
        scores, labels = checked(scores, labels)
        alert = np.clip(scores, -FURTHEST, FURTHEST) >= self.score
        tp, fp = int((alert & (labels == 1)).sum()), int((alert & (labels == 0)).sum())
        return Outcome(tp, fp, int(labels.sum()) - tp, int((labels == 0).sum()) - fp)


@dataclass(frozen=True, eq=False)
class OperatingPoints:
    """All thresholds that counts in bins can tell apart, from the highest down, and what each of them does."""

    thresholds: np.ndarray
    true_positives: np.ndarray
    false_positives: np.ndarray
    prevalence: float

    @classmethod
    def of(cls, counts: ScoreCounts, prevalence: float | None = None) -> "OperatingPoints":
        """Return the points at the lower edges of the bins; raise without both positives and negatives."""
        if prevalence is not None:
            require_share("prevalence", prevalence)
        edges, _, negatives, positives = counts.without_empty_bins()
        tp, fp = np.cumsum(positives[::-1]), np.cumsum(negatives[::-1])
        if not len(tp) or not tp[-1] or not fp[-1]:
            raise FedcsoError(
                f"a threshold can't be chosen: the validation data hold {positives.sum()} positives and "
                f"{negatives.sum()} negatives, and both are needed; give the validation data more rows"
            )
        return cls(edges[::-1], tp, fp, tp[-1] / (tp[-1] + fp[-1]) if prevalence is None else prevalence)

    @property
    def recall(self) -> np.ndarray:
        """Rises along the points, to 1."""
        return np.asarray(self.true_positives / self.true_positives[-1])

    @property
    def alert_share(self) -> np.ndarray:
        """The share of rows that are alerts; rises along the points, to 1."""
        fpr = self.false_positives / self.false_positives[-1]
        return np.asarray(self.prevalence * self.recall + (1 - self.prevalence) * fpr)

    @property
    def precision(self) -> np.ndarray:
        """The share of alerts that are positive."""
        return np.asarray(self.prevalence * self.recall / self.alert_share)

    def choose(self, place: int, wanted: str) -> Threshold:
        """Return the threshold at one of the points."""
        tp, fp = int(self.true_positives[place]), int(self.false_positives[place])
        rest = int(self.true_positives[-1]) - tp, int(self.false_positives[-1]) - fp
        return Threshold(float(self.thresholds[place]), wanted, Outcome(tp, fp, *rest))


def for_precision(counts: ScoreCounts, precision: float, prevalence: float | None = None) -> Threshold:
    """Choose the threshold that finds most positives among those with at least this precision.

    Only thresholds with `FEWEST_ALERTS` alerts or more are considered. Raise `NotReached` if none is precise enough.
    """
    require_fraction("precision", precision)
    points = OperatingPoints.of(counts, prevalence)
    alerts = points.true_positives + points.false_positives
    fewest = min(FEWEST_ALERTS, alerts[-1])
    considered = np.flatnonzero(alerts >= fewest)
    reached = considered[points.precision[considered] >= precision * (1 - ROUNDING)]
    if not len(reached):
        best = considered[np.argmax(points.precision[considered])]
        raise NotReached(
            f"precision {precision:g} is not reached at any threshold with {fewest} or more alerts on the "
            f"validation data; the highest is {points.precision[best]:.2g} at recall {points.recall[best]:.2g}"
        )
    return points.choose(int(reached[-1]), f"precision {precision:g}")


def for_recall(counts: ScoreCounts, recall: float) -> Threshold:
    """Choose the highest threshold, with the fewest alerts, that finds at least this share of the positives."""
    require_fraction("recall", recall)
    points = OperatingPoints.of(counts)
    return points.choose(int(np.argmax(points.recall >= recall)), f"recall {recall:g}")


def for_alerts(counts: ScoreCounts, alerts: float, rows: float = 100, prevalence: float | None = None) -> Threshold:
    """Choose the lowest threshold with at most this number of alerts in this number of rows, such as those of a day.

    Raise `NotReached` if the rows with the highest score alone are more.
    """
    require_positive("rows", rows)
    require("alerts", alerts, lambda number: 0 < number <= rows, f"above 0 and at most {rows:g}, the number of rows")
    points = OperatingPoints.of(counts, prevalence)
    within = np.flatnonzero(points.alert_share <= alerts / rows * (1 + ROUNDING))
    if not len(within):
        least = math.ceil(rows * points.alert_share[0])
        raise NotReached(
            f"at most {alerts:g} alerts in {rows:g} rows can't be reached on the validation data: the rows with the "
            f"highest score alone are {least}"
        )
    return points.choose(int(within[-1]), f"at most {alerts:g} alerts in {rows:g} rows")
