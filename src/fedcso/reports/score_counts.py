"""Scores as counts of positives and negatives in bins: all that leaves a site to calibrate a model or set a threshold.

Counts of several sites add up, and the sum is the same as if all rows had been in one place. The sites agree on the
bins without sending a row:

1. `fixed_bins` is a fine grid that is the same everywhere: uniform steps of asinh(1000 s), the squashed score, so a bin
   is narrow near 0 and about 0.26 % of |s| wide further out. A site can count its rows in these bins right away.
2. If such fine counts say too much about single rows, each site first counts its rows in them without labels (through
   secure aggregation, say). `ScoreCounts.merge` joins neighbours in the sum until every bin holds enough rows, the
   coordinator sends the merged bins to the sites, and positives and negatives are counted in these.

Scores should be logits: probabilities near 1 differ too little for bins of a relative width.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedcso.core.errors import FedcsoError

FURTHEST = 1e6
"""Scores beyond −FURTHEST and FURTHEST count as these."""

FINEST = 1e-3
"""Where |s| is below this, bins stop getting narrower."""


@dataclass(frozen=True, eq=False)
class Bins:
    """Neighbouring intervals [edges[j], edges[j + 1]) of scores, and the score that stands for each of them."""

    edges: np.ndarray
    """k + 1 rising scores, from −FURTHEST to FURTHEST."""
    centres: np.ndarray
    """k scores, one inside each bin."""

    def count(self, scores: np.ndarray, labels: np.ndarray) -> "ScoreCounts":
        """Count the negatives and positives among some rows in each bin."""
        scores, labels = checked(scores, labels)
        places = np.searchsorted(self.edges[1:-1], np.clip(scores, -FURTHEST, FURTHEST), side="right")
        negatives, positives = (np.bincount(places[labels == kind], minlength=len(self.centres)) for kind in (0, 1))
        return ScoreCounts(self, negatives, positives)


@dataclass(frozen=True, eq=False)
class ScoreCounts:
    """How many negatives and positives have their score in each bin."""

    bins: Bins
    negatives: np.ndarray
    positives: np.ndarray

    @property
    def rows(self) -> np.ndarray:
        """The number of rows in each bin."""
        return np.asarray(self.negatives + self.positives)

    def __add__(self, other: "ScoreCounts") -> "ScoreCounts":
        if not np.array_equal(self.bins.edges, other.bins.edges):
            raise FedcsoError("scores were counted in different bins: send the same bins to all sites and count again")
        return ScoreCounts(self.bins, self.negatives + other.negatives, self.positives + other.positives)

    def merge(self, mass: np.ndarray, least: float) -> "ScoreCounts":
        """Join neighbouring bins, from the highest scores down, until each holds at least `least` of the mass.

        `mass` is a number for each bin, such as `rows`. A merged bin's centre is the mean of its rows' centres.
        """
        starts, held = [], 0.0
        for place in reversed(range(len(mass))):
            held += mass[place]
            if held >= least:
                starts.append(place)
                held = 0.0
        starts = [0, *reversed(starts[:-1])]  # the lowest bin takes what is left below it
        rows = np.add.reduceat(self.rows, starts)
        sums = np.add.reduceat(self.rows * self.bins.centres, starts)
        edges = np.append(self.bins.edges[starts], self.bins.edges[-1])
        centres = np.where(rows > 0, sums / np.maximum(rows, 1), (edges[:-1] + edges[1:]) / 2)
        negatives, positives = (np.add.reduceat(counts, starts) for counts in (self.negatives, self.positives))
        return ScoreCounts(Bins(edges, centres), negatives, positives)

    def without_empty_bins(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return lower edges, centres, negatives and positives of the bins that hold rows, by rising score."""
        there = self.rows > 0
        return self.bins.edges[:-1][there], self.bins.centres[there], self.negatives[there], self.positives[there]


def fixed_bins(steps: int = 8192) -> Bins:
    """Return the grid that every site knows: `steps` bins on either side of 0."""
    squashed = np.linspace(-1, 1, 4 * steps + 1) * np.arcsinh(FURTHEST / FINEST)
    scores = FINEST * np.sinh(squashed)
    scores[[0, 2 * steps, -1]] = -FURTHEST, 0.0, FURTHEST
    return Bins(scores[::2], scores[1::2])


def total(counts: Sequence[ScoreCounts]) -> ScoreCounts:
    """Return the sum of the sites' counts."""
    if not counts:
        raise FedcsoError("there are no counts of scores to add: at least one site must send them")
    result = counts[0]
    for other in counts[1:]:
        result = result + other
    return result


def checked(scores: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return scores as float64 and labels as int64; raise unless all are numbers, and all labels 0 or 1."""
    scores, labels = np.asarray(scores, dtype=np.float64), np.asarray(labels)
    if scores.ndim != 1 or scores.shape != labels.shape:
        raise FedcsoError(f"scores have shape {scores.shape} and labels {labels.shape}: give one of each for every row")
    if np.isnan(scores).any():
        raise FedcsoError(f"{np.isnan(scores).sum()} of {len(scores)} scores are NaN: the model has overflowed")
    if not np.isin(labels, (0, 1)).all():
        raise FedcsoError("labels must be 0 (negative) or 1 (positive)")
    return scores, labels.astype(np.int64)
