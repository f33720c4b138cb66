"""What a threshold does on some rows: how many alerts are right, and how many positives are found."""

import math
from dataclasses import dataclass

from fedcso.reports.shares import Share, require_share, wilson


@dataclass(frozen=True)
class Outcome:
    """What a threshold does on some rows, in four counts; those of several sites add up."""

    true_positives: int
    false_positives: int
    false_negatives: int
    true_negatives: int

    def __add__(self, other: "Outcome") -> "Outcome":
        return Outcome(
            self.true_positives + other.true_positives,
            self.false_positives + other.false_positives,
            self.false_negatives + other.false_negatives,
            self.true_negatives + other.true_negatives,
        )

    @property
    def alerts(self) -> int:
        """Rows at or above the threshold."""
        return self.true_positives + self.false_positives

    @property
    def positives(self) -> int:
        """Rows that are positive."""
        return self.true_positives + self.false_negatives

    @property
    def negatives(self) -> int:
        """Rows that are negative."""
        return self.false_positives + self.true_negatives

    @property
    def recall(self) -> Share:
        """The share of positives that are alerts."""
        return wilson(self.true_positives, self.positives)

    def precision(self, prevalence: float | None = None) -> Share:
        """Return the share of alerts that are positive, at the data's share of positives or another one.

        At another prevalence Wilson's limits move by the same factor of the odds as the share, which makes the
        interval a little too wide rather than too narrow.
        """
        return wilson(self.true_positives, self.alerts).with_odds_times(self._odds_ratio(prevalence))

    def alert_share(self, prevalence: float | None = None) -> float:
        """Return the share of rows that are alerts, at the data's share of positives or another one."""
        weight = self._odds_ratio(prevalence)
        alerts = weight * self.true_positives + self.false_positives
        rows = weight * self.positives + self.negatives
        return alerts / rows if rows else math.nan

    def _odds_ratio(self, prevalence: float | None) -> float:
        """Return the factor between the odds of a prevalence and those of the data: how much a positive must weigh."""
        if prevalence is None:
            return 1.0
        require_share("prevalence", prevalence)
        if not self.positives or not self.negatives:
            return 1.0
        return prevalence / (1 - prevalence) * self.negatives / self.positives

    def describe(self, prevalence: float | None = None) -> str:
        """Say what the threshold does, for people who will act on its alerts."""
        if not self.alerts:
            rows = self.positives + self.negatives
            return f"none of {rows} rows is an alert; {self.positives} of {self.positives} positives are missed"
        right, found = self.precision(prevalence), self.recall
        where = "" if prevalence is None else f"where {100 * prevalence:.3g} % of rows are positive, "
        said = [
            f"{where}of 100 alerts about {100 * right.value:.0f} are right "
            f"({100 * right.low:.0f} to {100 * right.high:.0f}; {self.true_positives} of {self.alerts} here)"
        ]
        if self.positives:
            said.append(
                f"{100 * found.value:.0f} % of the positives are found "
                f"({100 * found.low:.0f} to {100 * found.high:.0f} %; {self.true_positives} of {self.positives} here)"
            )
        said.append(f"about {1000 * self.alert_share(prevalence):.3g} of 1000 rows are alerts")
        return "; ".join(said)
