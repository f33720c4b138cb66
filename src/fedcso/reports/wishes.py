"""What thresholds should achieve."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from fedcso.reports.score_counts import ScoreCounts, fixed_bins
from fedcso.reports.shares import require_share
from fedcso.reports.thresholds import NotReached, Threshold, for_alerts, for_precision, for_recall


@dataclass(frozen=True)
class Wishes:
    """What a threshold should achieve on the validation data; each target gives a threshold."""

    precision: float | None = None
    """The smallest share of alerts that are right."""
    recall: float | None = 0.8
    """The smallest share of positives that are found."""
    alerts: float | None = None
    """The largest number of alerts in `rows` rows."""
    rows: float = 100
    """The number of rows in which `alerts` are counted, for example those of a day."""
    prevalence: float | None = None
    """The share of positives that the model will meet; that of the validation data by default."""

    def __post_init__(self) -> None:
        two_rows = fixed_bins().count(np.array([-1.0, 1.0]), np.array([0, 1]))
        self.thresholds(two_rows)  # raises now, not after a long run, if a target is impossible
        if self.prevalence is not None:
            require_share("prevalence", self.prevalence)

    def thresholds(self, counts: ScoreCounts) -> tuple[list[Threshold], list[str]]:
        """Return the thresholds, and a sentence for every target that can't be reached."""
        choices: list[Callable[[], Threshold]] = []
        if self.precision is not None:
            choices.append(partial(for_precision, counts, self.precision, self.prevalence))
        if self.recall is not None:
            choices.append(partial(for_recall, counts, self.recall))
        if self.alerts is not None:
            choices.append(partial(for_alerts, counts, self.alerts, self.rows, self.prevalence))
        found, missed = [], []
        for choose in choices:
            try:
                found.append(choose())
            except NotReached as reason:
                missed.append(str(reason))
        return found, missed
