"""Held-out rows as a ranking model sees them. A site's client imports this, so it imports nothing slow."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from fedcso.core.judge import ByClient, Judge
from fedcso.core.tree import Tree
from fedcso.reports.score_counts import ScoreCounts, fixed_bins


@dataclass(frozen=True)
class Held:
    """Scores, labels and sites of held-out rows."""

    scores: np.ndarray
    labels: np.ndarray
    sites: np.ndarray

    @classmethod
    def of(cls, judge: Judge, x: Tree, data: Any) -> "Held":
        """Score held-out data, all together or by client."""
        assert judge.rank is not None
        parts = data.clients if isinstance(data, ByClient) else [data]
        names = data.names if isinstance(data, ByClient) and data.names else [str(n) for n in range(len(parts))]
        ranked = [judge.rank(x, part) for part in parts]
        scores = np.concatenate([scores.double().cpu().numpy() for scores, _ in ranked])
        labels = np.concatenate([labels.cpu().numpy() for _, labels in ranked])
        return cls(scores, labels, np.repeat(np.array(names), [len(labels) for _, labels in ranked]))

    def at(self, site: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the scores and labels of a site's rows."""
        here = self.sites == site
        return self.scores[here], self.labels[here]

    def counts(self) -> ScoreCounts:
        """Count positives and negatives in fixed score bins."""
        return fixed_bins().count(self.scores, self.labels)
