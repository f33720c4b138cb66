"""Partial area under the ROC curve, for rankings of which only the top matters.

    ξ = a positive example z⁺ of the client,   η = a negative example z⁻ of the client
    L = max( s − h(x; z⁺) + h(x; z⁻), 0 )²

    one-way KL      g = exp(L/λ),   f(g) = λ log g             negatives with a high score count more
    two-way KL      g = exp(L/λ),   f(g) = g^{λ/λ'}            and positives with a low score count more
    one-way CVaR    E⁺[ s(t) + (1/ρ) E⁻ (L − s(t))₊ ],   s(t) = max( s − h(x; z⁺) + t, 0 )²

Small λ look at the highest negatives only; λ → ∞ is the whole AUC. Two-way KL is λ' log E⁺(E⁻ exp(L/λ))^{λ/λ'} without
the outer logarithm, which is monotone. CVaR is the mean over the share ρ of negatives with the largest L, that is a
false positive rate of at most ρ. Which negatives these are is the same for all positives, so one threshold t of the
negatives' scores, a part of x, does for all. It is linear in the mean over η, so it has no bias; the others have
−λ Var(g) / 2m(E g)² and the like: a small m looks at too few of the highest negatives.

F and ∇F are exact by enumeration of all pairs, unless these are too many. exp can't overflow
(`fedcso.problems.log_mean_exp`).

Reference: Zhu, Li, Wang, Wu, Yang, When AUC meets DRO: Optimizing Partial AUC for Deep Learning with Non-Convex
Convergence Guarantee, ICML 2022. There CVaR has a threshold for each positive; the common one is not from that paper.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from fedcso.core.errors import FedcsoError, require_choice, require_fraction, require_positive
from fedcso.core.problem import Problem
from fedcso.core.recommended import with_methods, with_plan
from fedcso.core.task import Task
from fedcso.core.tree import Tree, leaves, map_leaves, unflatten_like
from fedcso.datasets.examples import Examples
from fedcso.datasets.tables.sites import load_sites
from fedcso.problems.auprc import Positives
from fedcso.problems.log_mean_exp import safe_exp, safe_log
from fedcso.problems.partial_ranking import partial_auc_judge
from fedcso.problems.scores import Scores
from fedcso.problems.site_tasks import build_scores, make_site_task


@dataclass(frozen=True)
class OneWayKL(Problem):
    """Partial AUC with soft weights of negatives; a client's data are `Examples` with labels 0 and 1."""

    scores: Scores
    margin: float = 1.0
    """s, the margin of the hinge."""
    temperature: float = 1.0
    """λ."""
    enumerates: bool = True
    """False if there are too many pairs to know F at every evaluation."""

    def __post_init__(self) -> None:
        require_positive("margin", self.margin)
        require_positive("temperature", self.temperature)
        if not self.enumerates:
            object.__setattr__(self, "exact", None)

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

    def sample_inner(self, data: Examples, rng: torch.Generator, xi: Positives, m: int) -> torch.Tensor:
        """Draw negative examples with replacement, the same for all positives of a step."""
        negatives = (data.labels == 0).nonzero().squeeze(1)
        return data.inputs[negatives[torch.randint(len(negatives), (*xi.which.shape[:-1], 1, m), generator=rng)]]

    def inner(self, x: Tree, xi: Positives, eta: torch.Tensor) -> torch.Tensor:
        """Return the mean of g over the negatives, for each positive."""
        return self.mean_over_negatives(x, *self._both(x, xi.inputs, eta))

    def mean_over_negatives(self, x: Tree, high: torch.Tensor, low: torch.Tensor) -> torch.Tensor:
        """Return ĝ from the scores of positives, (b, 1), and of negatives, (1 or b, m)."""
        return safe_exp(self.pair_losses(high, low) / self.temperature).mean(1)

    def pair_losses(self, high: torch.Tensor, low: torch.Tensor) -> torch.Tensor:
        """Return L."""
        return (self.margin - high + low).relu().square()

    def outer(self, y: torch.Tensor, xi: Positives) -> torch.Tensor:
        """Return λ log g."""
        return self.temperature * safe_log(y)

    def exact(self, x: Tree, clients: Sequence[Examples], weights: Sequence[float]) -> tuple[torch.Tensor, Tree]:
        """Return F and ∇F over all pairs of all clients that have both kinds of examples."""
        able = [(data, weight) for data, weight in zip(clients, weights, strict=True) if self.trains(data)]
        total = sum(weight for _, weight in able)
        with torch.enable_grad():
            point = map_leaves(lambda leaf: leaf.detach().requires_grad_(), x)
            value = torch.stack([weight / total * self._all_pairs(point, data) for data, weight in able]).sum()
            gradient = torch.autograd.grad(value, leaves(point))
        return value.detach(), unflatten_like(x, gradient)

    def inner_samples(self, b: int, m: int) -> int:
        """Return m, because the inner batch is shared."""
        return m

    def trains(self, data: Examples) -> bool:
        """Return whether there are positives and negatives."""
        return bool(data.labels.any()) and not bool(data.labels.all())

    def outer_count(self, data: Examples) -> int:
        """Return the number of positives."""
        return int(data.labels.sum())

    def which(self, xi: Positives) -> torch.Tensor:
        """Return the indices of the positives."""
        return xi.which

    def size(self, data: Examples) -> int:
        """Return the number of examples."""
        return len(data.labels)

    def network_weights(self, x: Tree) -> Tree:
        """Return the part of x that belongs to the network."""
        return x

    def _both(self, x: Tree, positives: torch.Tensor, negatives: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the scores of positives, (b, 1), and negatives, (rows, m), in one pass through the network."""
        b, (rows, m) = len(positives), negatives.shape[:2]
        scores = self.scores.logits(self.network_weights(x), torch.cat([positives, negatives.flatten(0, 1)]))
        return scores[:b].unsqueeze(1), scores[b:].reshape(rows, m)

    def _all_pairs(self, x: Tree, data: Examples) -> torch.Tensor:
        inputs, positive = data.inputs[:], data.labels == 1
        xi = Positives(torch.arange(int(positive.sum())), inputs[positive])
        return self.outer(self.inner(x, xi, inputs[~positive].unsqueeze(0)), xi).mean()


@dataclass(frozen=True)
class TwoWayKL(OneWayKL):
    """Partial AUC with soft weights of negatives and of positives."""

    positive_temperature: float = 2.0
    """λ'."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive("positive_temperature", self.positive_temperature)

    @property
    def outer_degree(self) -> float:  # type: ignore[override]
        """λ/λ', if it is a whole number."""
        exponent = self.temperature / self.positive_temperature
        return exponent if exponent.is_integer() else math.inf

    def outer(self, y: torch.Tensor, xi: Positives) -> torch.Tensor:
        """Return g^{λ/λ'}."""
        return y ** (self.temperature / self.positive_temperature)


@dataclass(frozen=True)
class OneWayCVaR(OneWayKL):
    """Partial AUC up to a false positive rate; x has the network's weights w and the threshold t."""

    max_fpr: float = 0.3
    """ρ."""
    weights_at = "w"
    outer_degree = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        require_fraction("max_fpr", self.max_fpr)

    def init(self, rng: torch.Generator) -> Tree:
        """Return the network's initial weights and t = 0."""
        w = super().init(rng)
        return {"w": w, "t": leaves(w)[0].new_zeros(())}

    def network_weights(self, x: Tree) -> Tree:
        """Return w."""
        return x["w"]

    def mean_over_negatives(self, x: Tree, high: torch.Tensor, low: torch.Tensor) -> torch.Tensor:
        """Return s(t) + (1/ρ) mean (L − s(t))₊."""
        threshold = self.pair_losses(high, x["t"])
        return threshold.squeeze(1) + (self.pair_losses(high, low) - threshold).relu().mean(1) / self.max_fpr

    def outer(self, y: torch.Tensor, xi: Positives) -> torch.Tensor:
        """Return g."""
        return y


MOST_PAIRS = 1_000_000
"""The largest number of pairs that are enumerated at every evaluation."""


def _few_pairs(clients: Sequence[Examples]) -> bool:
    """Return whether all pairs can be enumerated quickly: pictures take too long, and large tables too much memory."""
    positives = [int(data.labels.sum()) for data in clients]
    pairs = sum(own * (len(data.labels) - own) for own, data in zip(positives, clients, strict=True))
    return len(clients[0].inputs.shape) == 2 and pairs <= MOST_PAIRS


@with_methods(learning_rate="cosine(0.3)", momentum=0.3)
@with_plan(rounds=60, local_steps=10, outer_batch=8, inner_batch=32, evaluate_every=5, clip=1.0)
def partial_auc(
    objective: str = "one_way_kl",
    net: str = "auto",
    margin: float = 1.0,
    temperature: float = 1.0,
    positive_temperature: float = 2.0,
    max_fpr: float = 0.3,
    train_on: str = "sites",
    **where: Any,
) -> Task:
    """Rank rare positives first, by the part of the ROC curve with few false positives.

    Args:
        objective: one_way_kl, two_way_kl (also positives with a low score count more) or one_way_cvar
        net: linear, mlp, mnist, cifar, cnn, coarse or your own as path.py:Name; auto chooses by the shape of the inputs
        margin: s, by how much positives should be scored above negatives
        temperature: λ of the KL objectives; small looks at the highest negatives only
        positive_temperature: λ' of two_way_kl; small looks at the lowest positives only
        max_fpr: ρ, the largest false positive rate, of the metric and of one_way_cvar
        train_on: sites (federated), pooled (all data in one place), or the name of one site
        where: the data, see load_sites
    """
    makers: dict[str, Callable[..., OneWayKL]] = {
        "one_way_kl": OneWayKL,
        "two_way_kl": partial(TwoWayKL, positive_temperature=positive_temperature),
        "one_way_cvar": partial(OneWayCVaR, max_fpr=max_fpr),
    }
    require_choice("objective", objective, makers)
    require_fraction("max_fpr", max_fpr)
    sites = load_sites(**where)
    problem = makers[objective](build_scores(net, sites), margin, temperature, _few_pairs(sites.train))
    judge = partial_auc_judge(problem.scores, problem.network_weights, max_fpr)
    return make_site_task(problem, judge, sites, train_on)
