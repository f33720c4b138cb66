"""Average precision at another share of positives than that of the data.

A model that will meet a share π of positives is best tested at that share. Removing positives from the test data would
do it, but leave few of them to measure with. Instead, every positive gets the weight

    w = π (1 − p) / ( p (1 − π) ),        p the share of positives in the data,

so that positives have the share π of all weight. Recall stays as it is, and the precision at a threshold becomes
w·tp / (w·tp + fp): the value that thinning to the share π gives on average, for all but the smallest numbers of kept
positives, and without the noise of which ones are kept.
"""

import math
from typing import Any

import torch

from fedcso.core.errors import require_fraction
from fedcso.core.judge import Judge
from fedcso.core.metric import Metric
from fedcso.core.tree import Tree
from fedcso.problems.scores import AVERAGE_PRECISION

AT_SHARE = Metric(
    "average_precision_at_share", "average precision at the training share", higher_is_better=True, share=True
)


def average_precision_at_share(scores: torch.Tensor, labels: torch.Tensor, share: float) -> float:
    """Return the average precision as if positives had this share; nan unless both kinds are there to be ranked."""
    from sklearn.metrics import average_precision_score  # imported late: slow to load

    require_fraction("share", share)
    positives, others = int(labels.sum()), int((1 - labels).sum())
    if not positives or not others or not torch.isfinite(scores).all():
        return math.nan
    weight = share * others / (positives * (1 - share))
    truth = labels.double().numpy()
    return float(average_precision_score(truth, scores.double().numpy(), sample_weight=1 + (weight - 1) * truth))


def judge_at_share(judge: Judge, share: float) -> Judge:
    """Return a judge of the same scores that selects by the average precision at a share of positives."""
    rank = judge.rank
    assert rank is not None, "only judges that rank have an average precision"

    def evaluate(x: Tree, data: Any) -> dict[str, Any]:
        scores, labels = (part.cpu() for part in rank(x, data))
        return {
            AT_SHARE.name: average_precision_at_share(scores, labels, share),
            # Weighted by its own share, every example counts once.
            AVERAGE_PRECISION.name: average_precision_at_share(scores, labels, float(labels.double().mean())),
        }

    declared = [AT_SHARE, AVERAGE_PRECISION]
    return Judge(evaluate, declared, select=AT_SHARE.name, rank=rank, network=judge.network)
