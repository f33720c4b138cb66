"""Area under the ROC curve as a min-max problem, the objective of CODA+.

    min_{w,a,b} max_y  E [ (1−p)(h−a)² 1(+) + p(h−b)² 1(−) + 2(1+y)( p h 1(−) − (1−p) h 1(+) ) ] − p(1−p) y²

h is the score in [0, 1], p the share of positives over all clients, a and b the mean scores of positives and negatives,
and y the dual variable. x = {"primal": {"w", "a", "b"}, "dual": y}; the dual variable enters through `ascend`, so that
descent on all leaves is ascent on it.

a and b start at ½, the mean scores of an untrained network. Starting from 0, the squares would first pull ALL scores
down, and saturate the sigmoid of a network that learns slowly.

Reference: Ying, Wen, Lyu, Stochastic Online AUC Maximization, NeurIPS 2016.
"""

from dataclasses import dataclass
from typing import Any

import torch

from fedcso.core.errors import require_fraction
from fedcso.core.judge import Judge
from fedcso.core.problem import ascend
from fedcso.core.recommended import with_methods, with_plan
from fedcso.core.task import Task
from fedcso.core.tree import Tree, leaves
from fedcso.datasets.examples import Examples
from fedcso.datasets.tables.sites import load_sites
from fedcso.problems.ordinary import Ordinary
from fedcso.problems.scores import Scores, ranking_judge
from fedcso.problems.site_tasks import build_scores, make_site_task, share_of_positives


@dataclass(frozen=True)
class AUROC(Ordinary):
    """The square surrogate of AUROC; a client's data are `Examples` with labels 0 and 1."""

    scores: Scores
    positive_rate: float
    """p, the share of positives over all clients."""

    weights_at = "primal.w"

    def __post_init__(self) -> None:
        require_fraction("positive_rate", self.positive_rate)

    def init(self, rng: torch.Generator) -> Tree:
        """Return the network's initial weights (see `Model`), a = b = ½ and y = 0."""
        w = self.scores.network.init(rng)
        a, b, dual = leaves(w)[0].new_tensor([0.5, 0.5, 0.0])
        return {"primal": {"w": w, "a": a, "b": b}, "dual": dual}

    def losses(self, x: Tree, xi: Examples) -> torch.Tensor:
        """Return the term of each example in the min-max objective."""
        v, p = x["primal"], self.positive_rate
        dual = ascend(x["dual"])
        h = self.scores.logits(v["w"], xi.inputs).sigmoid()
        positive = (1 - p) * ((h - v["a"]).square() - 2 * (1 + dual) * h)
        negative = p * ((h - v["b"]).square() + 2 * (1 + dual) * h)
        return torch.where(xi.labels == 1, positive, negative) - p * (1 - p) * dual.square()


def auroc_judge(problem: AUROC) -> Judge:
    """Return the judge of the network, whose weights are among the primal variables."""
    return ranking_judge(problem.scores, lambda x: x["primal"]["w"])


@with_methods("CODA+")
@with_plan(rounds=60, local_steps=10, outer_batch=40, evaluate_every=5)
def auroc(net: str = "auto", train_on: str = "sites", **where: Any) -> Task:
    """Rank rare positives first, by the area under the ROC curve: the min-max problem of CODA+.

    Args:
        net: linear, mlp, mnist, cifar, cnn, coarse or your own as path.py:Name; auto chooses by the shape of the inputs
        train_on: sites (federated), pooled (all data in one place), or the name of one site
        where: the data, see load_sites
    """
    sites = load_sites(**where)
    problem = AUROC(build_scores(net, sites), share_of_positives(sites))
    return make_site_task(problem, auroc_judge(problem), sites, train_on)
