"""Cross-entropy of labels 0 and 1, the usual objective of FedAvg: plain, or with both classes counting alike.

With rare positives both classes can count alike in two ways that have the same expectation: positives have a larger
weight, or half of each batch is drawn from them. With weights, most batches hold no positive and a few have a very
large gradient; balanced batches have no such noise.
"""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

from fedcso.core.errors import InvalidValue, require_positive
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
    balanced: bool = False
    """True to draw every second example of a batch from the client's positives, if it has examples of both kinds."""

    def __post_init__(self) -> None:
        require_positive("positive_weight", self.positive_weight)

    def init(self, rng: torch.Generator) -> Tree:
        """Return the network's initial weights, see `Model`."""
        return self.scores.network.init(rng)

    def sample_outer(self, data: Examples, rng: torch.Generator, shape: tuple[int, ...]) -> Examples:
        """Draw labelled examples with replacement."""
        kinds = [(data.labels == label).nonzero().squeeze(1) for label in (0, 1)]
        if not self.balanced or not all(len(kind) for kind in kinds):
            return super().sample_outer(data, rng, shape)
        negatives, positives = (kind[torch.randint(len(kind), shape, generator=rng)] for kind in kinds)
        chosen = torch.where(torch.arange(shape[-1]) % 2 == 0, positives, negatives)
        return Examples(data.inputs[chosen], data.labels[chosen])

    def losses(self, x: Tree, xi: Examples) -> torch.Tensor:
        """Return the cross-entropy of each example."""
        logits = self.scores.logits(x, xi.inputs)
        weight = torch.where(xi.labels == 1, self.positive_weight, 1.0)
        return F.binary_cross_entropy_with_logits(logits, xi.labels.to(logits), weight.to(logits), reduction="none")


@with_methods("FedAvg", learning_rate="cosine(0.3)")
@with_plan(rounds=60, local_steps=10, outer_batch=40, evaluate_every=5)
def cross_entropy(
    net: str = "auto", weighted: bool = False, balanced: bool = False, train_on: str = "sites", **where: Any
) -> Task:
    """Rank rare positives first, by ordinary cross-entropy: the usual objective of FedAvg.

    Args:
        net: linear, mlp, mnist, cifar, cnn, coarse or your own as path.py:Name; auto chooses by the shape of the inputs
        weighted: give the positives together the same weight as the negatives
        balanced: draw half of each batch from the positives, which has the same effect with less noise
        train_on: sites (federated), pooled (all data in one place), or the name of one site
        where: the data, see load_sites
    """
    if weighted and balanced:
        raise InvalidValue("balanced", balanced, "false with weighted: positives would count twice")
    sites = load_sites(**where)
    rate = share_of_positives(sites)
    problem = CrossEntropy(build_scores(net, sites), (1 - rate) / rate if weighted else 1.0, balanced)
    return make_site_task(problem, ranking_judge(problem.scores), sites, train_on)
