"""Area under the precision-recall curve, for rare positives (Section 5.3, Table 2).

    ξ = a positive example z⁺ of the client,   η = any example z of the client, with label y
    ℓ(x; z⁺, z) = max( s − h(x; z⁺) + h(x; z), 0 )²        a surrogate of “z is ranked above z⁺”
    g = ( 1(y = 1) ℓ, ℓ ),      f(g) = −g₁ / g₂            minus the precision at z⁺'s place

    min_x −(1/N) Σ_n E_{z⁺} [ E_z 1(y=1) ℓ / E_z ℓ ]

η does not depend on ξ, so by default one inner batch serves all b positives of a step: b + m forward passes, not b·m.

f has no bounded slope near g₂ = 0, where the theory's Assumption 2 fails: of m inner samples none may come near a
well-ranked positive, and one that just does makes a gradient that destroys the model. In the population g₂ can't be 0,
because z⁺ is one of the z, with ℓ = s². So the positive itself counts as an inner sample: then g₂ ≥ s²/(m+1), and
a positive above all others has f = −1 with no gradient, as it should. This adds a bias of order 1/m, the same order
as that of every nested estimate.

Reference: Qi, Luo, Xu, Ji, Yang, Stochastic Optimization of Areas Under Precision-Recall Curves with Provable
Convergence, NeurIPS 2021.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from fedcso.core.errors import FedcsoError, require, require_positive
from fedcso.core.problem import Problem
from fedcso.core.task import Task, with_plan
from fedcso.core.tree import Tree
from fedcso.datasets.examples import Examples
from fedcso.datasets.tables.sites import load_sites
from fedcso.problems.scores import Scores, ranking_judge, scores_for, task_of_sites


class Positives(NamedTuple):
    """ξ: positive examples and their numbers among the client's positives."""

    which: torch.Tensor
    inputs: torch.Tensor


@dataclass(frozen=True)
class AUPRC(Problem):
    """The squared-hinge surrogate of average precision; a client's data are `Examples` with labels 0 and 1."""

    scores: Scores
    margin: float = 0.5
    """s."""
    sigmoid: bool = True
    """h is the network's output through a sigmoid; False for the output itself."""
    shared: bool = True
    """One inner batch for all positives of a step; False draws one for each."""
    itself: float = 1.0
    """How often a positive counts among its own m inner samples; 0 is the literal estimate."""

    def __post_init__(self) -> None:
        require_positive("margin", self.margin)
        require("itself", self.itself, lambda weight: 0 <= weight < math.inf, "a finite number, at least 0")

    def init(self, rng: torch.Generator) -> Tree:
        """The network's weights, see `Model`."""
        return self.scores.network.init(rng)

    def sample_outer(self, data: Examples, rng: torch.Generator, shape: tuple[int, ...]) -> Positives:
        """Positive examples, with replacement."""
        positives = data.labels.nonzero().squeeze(1)
        if not len(positives):
            raise FedcsoError("a client has no positive example, so it has nothing to rank")
        which = torch.randint(len(positives), shape, generator=rng)
        return Positives(which, data.inputs[positives[which]])

    def sample_inner(self, data: Examples, rng: torch.Generator, xi: Positives, m: int) -> Examples:
        """Any examples."""
        lead = xi.which.shape
        shape = (*lead[:-1], 1, m) if self.shared else (*lead, m)
        chosen = torch.randint(len(data.labels), shape, generator=rng)
        return Examples(data.inputs[chosen], data.labels[chosen])

    def inner(self, x: Tree, xi: Positives, eta: Examples) -> torch.Tensor:
        """ĝ of each positive: (b, 2)."""
        b, (rows, m) = len(xi.which), eta.labels.shape
        scores = self.scores.logits(x, torch.cat([xi.inputs, eta.inputs.flatten(0, 1)]))
        scores = scores.sigmoid() if self.sigmoid else scores
        losses = (self.margin - scores[:b].unsqueeze(1) + scores[b:].reshape(rows, m)).relu().square()
        own = self.itself * self.margin**2
        sums = torch.stack([(losses * eta.labels).sum(1), losses.sum(1)], -1)
        return (sums + own) / (m + self.itself)

    def outer(self, y: torch.Tensor, xi: Positives) -> torch.Tensor:
        """−g₁/g₂; where no sample is near (which `itself` excludes) it is 0."""
        return -y[..., 0] / y[..., 1].clamp_min(torch.finfo(y.dtype).tiny)

    def inner_samples(self, b: int, m: int) -> int:
        """m where they are shared."""
        return m if self.shared else b * m

    def trains(self, data: Examples) -> bool:
        """A site without positives has nothing to rank: it takes part in evaluation only."""
        return bool(data.labels.any())

    def outer_count(self, data: Examples) -> int:
        """The number of positives."""
        return int(data.labels.sum())

    def which(self, xi: Positives) -> torch.Tensor:
        """The positives' numbers."""
        return xi.which

    def size(self, data: Examples) -> int:
        """The number of examples."""
        return len(data.labels)


@with_plan(rounds=60, local_steps=10, outer_batch=8, inner_batch=32, evaluate_every=5)
def auprc(
    net: str = "auto",
    margin: float = 0.5,
    sigmoid: bool = True,
    shared: bool = True,
    itself: float = 1.0,
    train_on: str = "sites",
    **where: Any,
) -> Task:
    """Rank rare positives first, by the area under the precision-recall curve (Section 5.3, Table 2).

    Args:
        net: linear, mlp, mnist, cifar, cnn or your own as path.py:Name; auto takes what fits the inputs
        margin: s, by how much a positive should be above the others
        sigmoid: scores go through a sigmoid, which wants margins below 1
        shared: one inner batch for all positives of a step, which is as good and needs b + m forward passes
        itself: how often a positive counts among its own inner samples, which keeps g₂ away from 0
        train_on: sites (each by itself, the federated way), pooled (all data in one place), or one site's name
        where: the data, see load_sites
    """
    sites = load_sites(**where)
    problem = AUPRC(scores_for(net, sites), margin, sigmoid, shared, itself)
    return task_of_sites(problem, ranking_judge(problem.scores), sites, train_on)
