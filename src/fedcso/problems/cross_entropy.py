"""Cross-entropy of labels 0 and 1, plain or with both classes weighted alike: what FedAvg is usually given."""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

from fedcso.core.errors import require_positive
from fedcso.core.task import Task, with_plan
from fedcso.core.tree import Tree
from fedcso.datasets.examples import Examples
from fedcso.datasets.tables.sites import load_sites
from fedcso.problems.ordinary import Ordinary
from fedcso.problems.scores import Scores, ranking_judge, scores_for, share_of_positives, task_of_sites


@dataclass(frozen=True)
class CrossEntropy(Ordinary):
    """Cross-entropy of one logit; a client's data are `Examples` with labels 0 and 1."""

    scores: Scores
    positive_weight: float = 1.0
    """How much a positive example counts, a negative being 1."""

    def __post_init__(self) -> None:
        require_positive("positive_weight", self.positive_weight)

    def init(self, rng: torch.Generator) -> Tree:
        """The network's weights, see `Model`."""
        return self.scores.network.init(rng)

    def losses(self, x: Tree, xi: Examples) -> torch.Tensor:
        """Of each example."""
        logits = self.scores.logits(x, xi.inputs)
        weight = torch.where(xi.labels == 1, self.positive_weight, 1.0)
        return F.binary_cross_entropy_with_logits(logits, xi.labels.to(logits), weight.to(logits), reduction="none")


@with_plan(rounds=60, local_steps=10, outer_batch=40, evaluate_every=5)
def cross_entropy(net: str = "auto", weighted: bool = False, train_on: str = "sites", **where: Any) -> Task:
    """Rank rare positives first, by ordinary cross-entropy: what FedAvg is usually given.

    Args:
        net: linear, mlp, mnist, cifar, cnn or your own as path.py:Name; auto takes what fits the inputs
        weighted: positives count as much as negatives on the whole
        train_on: sites (each by itself, the federated way), pooled (all data in one place), or one site's name
        where: the data, see load_sites
    """
    sites = load_sites(**where)
    rate = share_of_positives(sites)
    problem = CrossEntropy(scores_for(net, sites), (1 - rate) / rate if weighted else 1.0)
    return task_of_sites(problem, ranking_judge(problem.scores), sites, train_on)
