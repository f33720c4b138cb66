"""The result of a fit, as the page and the model card show it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fedcso.reports.bootstrap import Measured
from fedcso.reports.decisions import Decisions
from fedcso.reports.importance import Importance


@dataclass(frozen=True)
class Contender:
    """A model, or the mean of several, on the test data."""

    name: str
    average_precision: Measured
    auroc: Measured
    needs_pooled_data: bool
    difference: Measured | None
    """By how much the chosen model's average precision is above this one's; None for the chosen model and for means."""
    note: str = ""


@dataclass(frozen=True)
class Part:
    """The number of rows, and how many of them are positive."""

    rows: int
    positives: int

    def __add__(self, other: "Part") -> "Part":
        return Part(self.rows + other.rows, self.positives + other.positives)


@dataclass(frozen=True)
class SiteData:
    """A site's rows, by what they are for."""

    site: str
    train: Part
    validation: Part
    test: Part


@dataclass(frozen=True)
class Sent:
    """Messages of one kind that left a site."""

    site: str
    what: str
    """The kind, in words: "updates of the model", "counts of positives and negatives in score bins"."""
    messages: int
    values: int
    """Numbers in all these messages together."""
    bytes: int


@dataclass(frozen=True)
class Decision:
    """All that the page for people who decide shows."""

    decisions: Decisions
    """Calibration, thresholds and test results of the chosen model."""
    about: Mapping[str, str]
    """The data, in words: the file, the label, which values are positive."""
    data: Sequence[SiteData]
    settings: Mapping[str, Any]
    """Of the chosen model: its objective, method, network and learning rate."""
    contenders: Sequence[Contender] = ()
    """The chosen model first, then what it is compared with."""
    importance: Sequence[Importance] = ()
    sent: Sequence[Sent] = ()
    notes: Sequence[str] = ()
    """What was noticed in the data."""
    trials: Sequence[Mapping[str, Any]] = ()
    """Everything that was tried, one row each."""

    def whole(self, part: str) -> Part:
        """Return the rows of all sites that are for one part: train, validation or test."""
        return sum((getattr(site, part) for site in self.data), Part(0, 0))
