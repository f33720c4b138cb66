"""Cross-entropy of labels 0 and 1, plain or with equal weights of both classes: the usual objective of FedAvg."""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

from fedcso.core.errors import require_positive
from fedcso.core.recommended import with_methods, with_plan
from fedcso.core.task import Task
from fedcso.core.tree import Tree
from fedcso.datasets.examples import Examples
from fedcso.datasets.tables.sites import load_sites
from fedcso.problems.ordinary import Ordinary
from fedcso.problems.scores import Scores, ranking_judge
from fedcso.problems.site_tasks import build_scores, make_site_task, share_of_positives


@dataclass(frozen=True)
class CrossEntropy(Ordinary):
    """Cross-entropy of one logit; a client's data are `Examples` with labels 0 and 1."""

    scores: Scores
    positive_weight: float = 1.0
    """The weight of a positive example; that of a negative one is 1."""

    def __post_init__(self) -> None:
        require_positive("positive_weight", self.positive_weight)

    def init(self, rng: torch.Generator) -> Tree:
        """Return the network's initial weights, see `Model`."""
        return self.scores.network.init(rng)

    def losses(self, x: Tree, xi: Examples) -> torch.Tensor:
        """Return the cross-entropy of each example."""
        logits = self.scores.logits(x, xi.inputs)
        weight = torch.where(xi.labels == 1, self.positive_weight, 1.0)
        return F.binary_cross_entropy_with_logits(logits, xi.labels.to(logits), weight.to(logits), reduction="none")


@with_methods("FedAvg", learning_rate="cosine(0.3)")
@with_plan(rounds=60, local_steps=10, outer_batch=40, evaluate_every=5)
def cross_entropy(net: str = "auto", weighted: bool = False, train_on: str = "sites", **where: Any) -> Task:
    """Rank rare positives first, by ordinary cross-entropy: the usual objective of FedAvg.

    Args:
        net: linear, mlp, mnist, cifar, cnn or your own as path.py:Name; auto chooses by the shape of the inputs
        weighted: give the positives together the same weight as the negatives
        train_on: sites (federated), pooled (all data in one place), or the name of one site
        where: the data, see load_sites
    """
    sites = load_sites(**where)
    rate = share_of_positives(sites)
    problem = CrossEntropy(build_scores(net, sites), (1 - rate) / rate if weighted else 1.0)
    return make_site_task(problem, ranking_judge(problem.scores), sites, train_on)
