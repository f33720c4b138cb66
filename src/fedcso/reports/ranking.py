"""Average precision and AUROC of rows that count several times or not at all, as in resamples.

With tp and fp, the numbers of positives and negatives at or above each score, and Δtp and Δfp, those at this score:

    average precision = Σ Δtp · tp/(tp + fp) / P        AUROC = Σ Δfp · (tp − Δtp/2) / (P N)

The sums are over different scores, so rows of equal score count together, as in scikit-learn.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

METRICS = ("average_precision", "auroc")


@dataclass(frozen=True)
class Ranking:
    """Scores and labels of rows, sorted once by falling score to measure many weightings of the rows."""

    scores: np.ndarray
    labels: np.ndarray

    @cached_property
    def order(self) -> np.ndarray:
        """The rows by falling score."""
        return np.argsort(-self.scores, kind="stable")

    @cached_property
    def ends(self) -> np.ndarray:
        """The place in this order of the last row of every score."""
        ordered = self.scores[self.order]
        return np.append(np.flatnonzero(ordered[1:] != ordered[:-1]), len(ordered) - 1)

    def measure(self, weights: np.ndarray) -> tuple[float, float]:
        """Return the `METRICS`, nan where undefined; a row counts as often as its weight says."""
        weights = weights[self.order]
        above = np.cumsum(weights)[self.ends]
        tp = np.cumsum(weights * self.labels[self.order])[self.ends]
        fp = above - tp
        positives, negatives = tp[-1], fp[-1]
        new_tp, new_fp = np.diff(tp, prepend=0), np.diff(fp, prepend=0)
        precision = (new_tp * tp / np.maximum(above, 1)).sum() / positives if positives else np.nan
        pairs = positives * negatives
        return float(precision), float((new_fp * (tp - new_tp / 2)).sum() / pairs) if pairs else np.nan
