"""The judge of rankings of which only the top matters: partial areas under the ROC curve."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from fedcso.core.judge import Judge
from fedcso.core.metric import Metric
from fedcso.core.tree import Tree
from fedcso.problems.scores import Scores, ranking_judge

PARTIAL_AUC = Metric("partial_auc", "partial AUC (McClish)", higher_is_better=True, share=True, chance=0.5)
TWO_WAY = Metric("two_way_auc", "two-way partial AUC", higher_is_better=True, share=True)


def one_way_auc(scores: torch.Tensor, labels: torch.Tensor, max_fpr: float) -> float:
    """Return the area under the ROC curve up to a false positive rate, standardised by McClish's formula.

    That is what `roc_auc_score(max_fpr=…)` of scikit-learn returns: 0.5 for random scores and 1 for perfect ones,
    whatever the rate. It is nan unless both kinds are there to be ranked.
    """
    from sklearn.metrics import roc_auc_score  # imported late: slow to load

    if not _both_kinds(scores, labels):
        return math.nan
    return float(roc_auc_score(labels.cpu().numpy(), scores.double().cpu().numpy(), max_fpr=max_fpr))


def two_way_auc(scores: torch.Tensor, labels: torch.Tensor, share: float) -> float:
    """Return the AUC of the given share of positives with the lowest and of negatives with the highest scores."""
    if not _both_kinds(scores, labels):
        return math.nan
    positives, negatives = scores[labels == 1].sort().values, scores[labels == 0].sort(descending=True).values
    low, high = (part[: max(1, round(share * len(part)))] for part in (positives, negatives))
    difference = low.unsqueeze(1) - high
    return float(((difference > 0).double() + 0.5 * (difference == 0).double()).mean())


def partial_auc_judge(scores: Scores, weights: Callable[[Tree], Tree], max_fpr: float) -> Judge:
    """Return the ranking judge with partial areas in addition, which choose models."""
    judge = ranking_judge(scores, weights, sigmoid=False)
    rank = judge.rank
    assert rank is not None

    def evaluate(x: Tree, data: Any) -> dict[str, Any]:
        ranked = rank(x, data) if len(data.labels) else (torch.empty(0), torch.empty(0))
        return judge.evaluate(x, data) | {
            PARTIAL_AUC.name: one_way_auc(*ranked, max_fpr),
            TWO_WAY.name: two_way_auc(*ranked, max_fpr),
        }

    declared = [replace(PARTIAL_AUC, title=f"partial AUC, FPR ≤ {max_fpr:g} (McClish)"), TWO_WAY, *judge.metrics]
    return Judge(evaluate, declared, select=PARTIAL_AUC.name, rank=rank, network=judge.network)


def _both_kinds(scores: torch.Tensor, labels: torch.Tensor) -> bool:
    return bool(labels.any()) and not bool(labels.all()) and bool(torch.isfinite(scores).all())
