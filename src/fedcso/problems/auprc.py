"""Area under the precision-recall curve, for rare positives (Section 5.3, Table 2).

    ξ = a positive example z⁺ of the client,   η = any example z of the client, with label y
    ℓ(x; z⁺, z) = max( s − h(x; z⁺) + h(x; z), 0 )²        a surrogate of “z is ranked above z⁺”
    g = ( 1(y = 1) ℓ, ℓ ),      f(g) = −g₁ / g₂            minus the precision at the rank of z⁺

    min_x −(1/N) Σ_n E_{z⁺} [ E_z 1(y=1) ℓ / E_z ℓ ]

η does not depend on ξ, so by default all b positives of a step share one inner batch: b + m forward passes, not b·m.

The slope of f is not bounded near g₂ = 0, so Assumption 2 of the theory fails there: possibly none of m inner samples
has a positive loss against a well-ranked z⁺, and one with a tiny loss gives a gradient that destroys the model. In the
population g₂ can't be 0, because z⁺ is one of the z, with ℓ = s². Therefore the positive counts as one of its own inner
samples (`itself`): then g₂ ≥ s²/(m+1), and a positive ranked above all others has f = −1 and no gradient. This adds a
bias of order 1/m, the same order as that of every nested estimate.

That is the paper's surrogate (`bounded=False, logarithm=False`). It has two weaknesses, and a remedy for each, which is
the default:

* It rewards positives for being far apart. A positive z above z⁺ adds ℓ to both g₁ and g₂, and ℓ grows with the square
  of the distance. In long runs on raw scores a few easy positives get ever higher scores, g₁/g₂ is near 1 for all that
  are below them, and these are hardly improved any more. `bounded` counts a positive above z⁺ like z⁺ itself:

      ℓ⁺ = min(ℓ, s²)   for positives z

* It gives up positives that are ranked low, where the slope of precision is small. `logarithm` minimises minus the mean
  log precision instead, an upper bound of minus the log of the mean precision:

      f(g) = −log(g₁ / g₂)

Optionally the cross-entropy of positives and negatives is added with a weight μ (`cross_entropy`). It is a third entry
of g, so the objective has the same form, and every example teaches the network, not only those within the margin:

    g₃ = log(1 + e^−h(z⁺)) + 1(y = 0) log(1 + e^h(z)),      f(g) = −log(g₁ / g₂) + μ g₃

Inner samples are drawn as in the data, or with a chosen share of positives and weights (`fedcso.problems.strata`).

Reference: Qi, Luo, Xu, Ji, Yang, Stochastic Optimization of Areas Under Precision-Recall Curves with Provable
Convergence, NeurIPS 2021.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F

from fedcso.core.errors import FedcsoError, InvalidValue, require_nonnegative, require_positive
from fedcso.core.problem import Problem
from fedcso.core.recommended import with_methods, with_plan
from fedcso.core.task import Task
from fedcso.core.tree import Tree
from fedcso.datasets.examples import Examples
from fedcso.datasets.tables.sites import load_sites
from fedcso.problems.scores import Scores, ranking_judge
from fedcso.problems.site_tasks import build_scores, make_site_task
from fedcso.problems.strata import Strata, Weighted


class Positives(NamedTuple):
    """ξ: positive examples and their indices among the client's positives."""

    which: torch.Tensor
    inputs: torch.Tensor


@dataclass(frozen=True)
class AUPRC(Problem):
    """The squared-hinge surrogate of average precision; a client's data are `Examples` with labels 0 and 1."""

    scores: Scores
    margin: float = 1.0
    """s, the margin of the hinge."""
    sigmoid: bool = False
    """True if h is the sigmoid of the network's output, False if h is the output, the raw score."""
    shared: bool = True
    """True to draw one inner batch for all positives of a step, False to draw one for each."""
    itself: float = 1.0
    """The weight of a positive among its own m inner samples; 0 for the literal estimate."""
    strata: Strata = Strata()  # noqa: RUF009 - frozen
    """How many inner samples are positive, and the share of positives for which precision is estimated."""
    cross_entropy: float = 0.0
    """μ, the weight of the cross-entropy."""
    bounded: bool = True
    """True if a positive that is ranked above z⁺ counts at most s², False for the paper's surrogate."""
    logarithm: bool = True
    """True to minimise minus the log of precision, False for minus the precision, as in the paper."""

    def __post_init__(self) -> None:
        require_positive("margin", self.margin)
        require_nonnegative("itself", self.itself)
        if self.logarithm and not self.itself:
            raise InvalidValue("itself", self.itself, "above 0 with logarithm, because g₁ can be 0 otherwise")
        require_nonnegative("cross_entropy", self.cross_entropy)
        if self.cross_entropy and self.sigmoid:
            raise InvalidValue("cross_entropy", self.cross_entropy, "0 with sigmoid, because it needs raw scores")

    def init(self, rng: torch.Generator) -> Tree:
        """Return the network's initial weights, see `Model`."""
        return self.scores.network.init(rng)

    def sample_outer(self, data: Examples, rng: torch.Generator, shape: tuple[int, ...]) -> Positives:
        """Draw positive examples with replacement."""
        positives = data.labels.nonzero().squeeze(1)
        if not len(positives):
            raise FedcsoError("a client has no positive example to rank: leave it out, or give it some")
        which = torch.randint(len(positives), shape, generator=rng)
        return Positives(which, data.inputs[positives[which]])

    def sample_inner(self, data: Examples, rng: torch.Generator, xi: Positives, m: int) -> Examples | Weighted:
        """Draw examples of both kinds with replacement."""
        lead = (*xi.which.shape[:-1], 1) if self.shared else tuple(xi.which.shape)
        if not self.strata.plain:
            return self.strata.draw(data, rng, lead, m)
        chosen = torch.randint(len(data.labels), (*lead, m), generator=rng)
        return Examples(data.inputs[chosen], data.labels[chosen])

    def inner(self, x: Tree, xi: Positives, eta: Examples | Weighted) -> torch.Tensor:
        """Return ĝ of each positive, with shape (b, 2), or (b, 3) with cross-entropy."""
        return self.compare(*self.score(x, xi, eta))

    def score(self, x: Tree, xi: Positives, eta: Examples | Weighted) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """Return h of the positives; of the others h, whether they are positive, and their weights if these differ."""
        b, (rows, m) = len(xi.which), eta.labels.shape
        scores = self.scores.logits(x, torch.cat([xi.inputs, eta.inputs.flatten(0, 1)]))
        scores = scores.sigmoid() if self.sigmoid else scores
        others = {"score": scores[b:].reshape(rows, m), "positive": eta.labels.bool()}
        weights = {"weight": eta.weights.to(scores)} if isinstance(eta, Weighted) else {}
        return scores[:b], others | weights

    def compare(
        self, outer: torch.Tensor, inner: dict[str, torch.Tensor], counts: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Return ĝ of each positive, given the scores."""
        weights = inner.get("weight", torch.ones_like(inner["score"]))
        weights = weights if counts is None else weights * counts
        losses = (self.margin - outer.unsqueeze(1) + inner["score"]).relu().square()
        if self.bounded:
            losses = torch.where(inner["positive"], losses.clamp_max(self.margin**2), losses)
        losses = losses * weights
        total = losses.shape[1] if counts is None else counts.sum()
        own = self.itself * self.margin**2
        sums = torch.stack([(losses * inner["positive"]).sum(1), losses.sum(1)], -1)
        compared = (sums + own) / (total + self.itself)
        if not self.cross_entropy:
            return compared
        negatives = (F.softplus(inner["score"]) * ~inner["positive"] * weights).sum(-1) / total
        return torch.cat([compared, (F.softplus(-outer) + negatives).unsqueeze(-1)], -1)

    def outer(self, y: torch.Tensor, xi: Positives) -> torch.Tensor:
        """Return −g₁/g₂ or its −log, plus μ g₃; −g₁/g₂ is 0 if all losses are 0 (which `itself` rules out)."""
        precision = y[..., 0] / y[..., 1].clamp_min(torch.finfo(y.dtype).tiny)
        loss = -precision.log() if self.logarithm else -precision
        return loss + self.cross_entropy * y[..., 2] if self.cross_entropy else loss

    def inner_samples(self, b: int, m: int) -> int:
        """Return m if the inner batch is shared, else b·m."""
        return m if self.shared else b * m

    def trains(self, data: Examples) -> bool:
        """Return whether there are positives to rank, and negatives if these are drawn separately.

        Otherwise a site takes part in evaluation only.
        """
        return bool(data.labels.any()) and (self.strata.plain or not bool(data.labels.all()))

    def outer_count(self, data: Examples) -> int:
        """Return the number of positives."""
        return int(data.labels.sum())

    def which(self, xi: Positives) -> torch.Tensor:
        """Return the indices of the positives."""
        return xi.which

    def size(self, data: Examples) -> int:
        """Return the number of examples."""
        return len(data.labels)


@with_methods(learning_rate="cosine(1)", momentum=0.3)
@with_plan(rounds=60, local_steps=10, outer_batch=8, inner_batch=32, evaluate_every=5, clip=1.0)
def auprc(
    net: str = "auto",
    margin: float = 1.0,
    sigmoid: bool = False,
    shared: bool = True,
    itself: float = 1.0,
    inner_positives: float | None = None,
    prevalence: float | None = None,
    cross_entropy: float = 0.0,
    bounded: bool = True,
    logarithm: bool = True,
    train_on: str = "sites",
    **where: Any,
) -> Task:
    """Rank rare positives first, by the area under the precision-recall curve (Section 5.3, Table 2).

    Args:
        net: linear, mlp, mnist, cifar, cnn, coarse or your own as path.py:Name; auto chooses by the shape of the inputs
        margin: s, by how much positives should be scored above the others
        sigmoid: apply a sigmoid to the scores, with a margin below 1; scores that saturate are no longer learned
        shared: use one inner batch for all positives of a step, which takes b + m forward passes instead of b·m
        itself: weight of a positive among its own inner samples, which keeps g₂ away from 0
        inner_positives: share of positives in inner batches, weighted to leave expectations unchanged; as in the data
        prevalence: share of positives for which precision is estimated; that of each client's data
        cross_entropy: μ, weight of the cross-entropy that is added to the objective
        bounded: count a positive ranked above another at most s², so that positives are not driven apart; the paper
            does not
        logarithm: minimise minus the log of precision, so that positives ranked low are not given up; the paper
            minimises minus the precision
        train_on: sites (federated), pooled (all data in one place), or the name of one site
        where: the data, see load_sites
    """
    sites = load_sites(**where)
    strata = Strata(inner_positives, prevalence)
    problem = AUPRC(
        build_scores(net, sites), margin, sigmoid, shared, itself, strata, cross_entropy, bounded, logarithm
    )
    judge = ranking_judge(problem.scores, sigmoid=sigmoid)
    return make_site_task(problem, judge, sites, train_on)
