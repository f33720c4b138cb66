"""Learning to rank lists of items for queries, by the normalised discounted cumulative gain.

    ξ = a query q and a relevant item i of its list,   η | ξ = another item j of the SAME list
    ℓ(j, i) = max( s + h(j) − h(i), 0 )²                        a surrogate of “j is ranked above i”
    g = the mean of ℓ over all N items of the list, i itself included: (s² + (N − 1) E_η ℓ) / N
    f(g) = −(2^rel_i − 1) R_q / ( Z_q log₂(1 + N g) )           R_q relevant items, Z_q the gain of the ideal order

N g stands for the rank of i, and −F is the mean over queries of a lower bound of NDCG if s = 1. Since the item itself
is always included, N g ≥ s², and f has no pole. Scores are linear, h = wᵀφ(q, item). F and ∇F are exact by enumeration.

The lists are made of scikit-learn's digits: a query is a picture, its list other pictures of the same client, relevant
are those of the same digit, and φ = −(difference of two pixels)² for each pixel, so w says which pixels matter.

Reference: Qiu, Hu, Zhong, Zhang, Yang, Large-scale Stochastic Optimization of NDCG Surrogates for Deep Learning with
Provable Convergence, ICML 2022 (SONG).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from fedcso.core.errors import InvalidValue, require_count, require_positive
from fedcso.core.judge import Judge
from fedcso.core.metric import Metric
from fedcso.core.problem import Problem
from fedcso.core.recommended import with_methods, with_plan
from fedcso.core.streams import DATA, stream
from fedcso.core.task import Task
from fedcso.datasets import Examples, load
from fedcso.datasets.partition import partition, train_validation_test

NDCG = Metric("ndcg", "NDCG at 10", higher_is_better=True, share=True)


class Lists(NamedTuple):
    """Lists of the same length N: features φ, (queries, N, d), and relevance, (queries, N)."""

    features: torch.Tensor
    relevance: torch.Tensor


class Item(NamedTuple):
    """ξ: a relevant item."""

    which: torch.Tensor
    """Its number among all items of all lists."""
    features: torch.Tensor
    weight: torch.Tensor
    """(2^rel − 1) R / Z."""


@dataclass(frozen=True)
class RankedLists(Problem):
    """The surrogate of NDCG for linear scores; a client's data are `Lists`."""

    dimension: int
    length: int
    """N, the number of items in a list."""
    margin: float = 1.0
    """s."""

    broadcasts = True

    def __post_init__(self) -> None:
        require_count("dimension", self.dimension)
        require_count("length", self.length, least=2)
        require_positive("margin", self.margin)

    def init(self, rng: torch.Generator) -> torch.Tensor:
        """Return 0: all items have the same score."""
        return torch.zeros(self.dimension, dtype=torch.float64)

    def sample_outer(self, data: Lists, rng: torch.Generator, shape: tuple[int, ...]) -> Item:
        """Draw a list, and one of its relevant items."""
        query = torch.randint(len(data.features), shape, generator=rng)
        order = torch.rand(*shape, self.length, generator=rng) * (data.relevance[query] > 0)
        place = order.argmax(-1)
        return Item(query * self.length + place, data.features[query, place], _weights(data)[query, place])

    def sample_inner(self, data: Lists, rng: torch.Generator, xi: Item, m: int) -> torch.Tensor:
        """Draw other items of the same list, with replacement."""
        query, place = xi.which // self.length, xi.which % self.length
        other = torch.randint(self.length - 1, (*xi.which.shape, m), generator=rng)
        other = other + (other >= place.unsqueeze(-1))
        return data.features[query.unsqueeze(-1), other]

    def inner(self, x: torch.Tensor, xi: Item, eta: torch.Tensor) -> torch.Tensor:
        """Return (s² + (N − 1) mean_j ℓ(j, i)) / N."""
        w = x.unsqueeze(-2)
        gap = (eta * w.unsqueeze(-2)).sum(-1) - (xi.features * w).sum(-1).unsqueeze(-1)
        others = (self.margin + gap).relu().square().mean(-1)
        return (self.margin**2 + (self.length - 1) * others) / self.length

    def outer(self, y: torch.Tensor, xi: Item) -> torch.Tensor:
        """Return minus the discounted gain."""
        return -xi.weight / torch.log2(1 + self.length * y)

    def exact(
        self, x: torch.Tensor, clients: Sequence[Lists], weights: Sequence[float]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return F and ∇F, by all relevant items of all lists."""
        shares = [weight / sum(weights) for weight in weights]
        with torch.enable_grad():
            point = x.detach().requires_grad_()
            value = torch.stack(
                [w * self._all_pairs(point, data) for w, data in zip(shares, clients, strict=True)]
            ).sum(0)
            (gradient,) = torch.autograd.grad(value.sum(), point)
        return value.detach(), gradient

    def outer_count(self, data: Lists) -> int:
        """Return the number of items of all lists."""
        return data.relevance.numel()

    def which(self, xi: Item) -> torch.Tensor:
        """Return the numbers of the items."""
        return xi.which

    def size(self, data: Lists) -> int:
        """Return the number of lists."""
        return len(data.features)

    def _all_pairs(self, x: torch.Tensor, data: Lists) -> torch.Tensor:
        h = torch.einsum("qnd,...d->...qn", data.features, x)
        # ℓ(i, i) = s², so the sum over the list is N g.
        ranks = (self.margin + h.unsqueeze(-2) - h.unsqueeze(-1)).relu().square().sum(-1)
        relevant = (data.relevance > 0).to(h)
        relevant = relevant / relevant.sum(-1, keepdim=True)
        return -(relevant * _weights(data) / torch.log2(1 + ranks)).sum(-1).mean(-1)


def _weights(data: Lists) -> torch.Tensor:
    """Return (2^rel − 1) R / Z for each item; Z is the discounted gain of the ideal order."""
    gain = 2.0**data.relevance - 1
    ideal = gain.sort(-1, descending=True).values
    places = torch.arange(2, gain.shape[-1] + 2, dtype=gain.dtype)
    z = (ideal / torch.log2(places)).sum(-1, keepdim=True)
    return gain * (data.relevance > 0).sum(-1, keepdim=True) / z


def measure_ndcg(x: torch.Tensor, data: Lists) -> dict[str, Any]:
    """Return NDCG at 10 with gains 2^rel − 1, which scikit-learn does not take by itself."""
    from sklearn.metrics import ndcg_score  # imported late: slow to load

    gains = 2.0**data.relevance - 1
    return {NDCG.name: float(ndcg_score(gains.numpy(), (data.features @ x).numpy(), k=10))}


@with_methods(learning_rate="cosine(3)", momentum=0.3)
@with_plan(rounds=40, local_steps=10, outer_batch=8, inner_batch=8, evaluate_every=5)
def ndcg(clients: int = 16, items: int = 20, margin: float = 1.0, alpha: float = 0.0, data_seed: int = 0) -> Task:
    """Rank similar pictures first, by the normalised discounted cumulative gain of lists of digits.

    Args:
        clients: N, the number of clients that share the training pictures
        items: the number of items in a list
        margin: s, by how much relevant items should be scored above the others
        alpha: Dirichlet concentration of the digits per client, small for heterogeneous clients; 0 for IID
        data_seed: seed of the split and of the lists
    """
    require_count("items", items, least=2)
    examples = load("digits")
    train, validation, test = train_validation_test(len(examples.labels), data_seed)
    shares = [train[own] for own in partition(examples.labels[train], clients, alpha, data_seed)]
    held_validation, held_test, *lists = (
        _make_lists(Examples(examples.inputs[own], examples.labels[own]), items, stream(data_seed, DATA, number))
        for number, own in enumerate([validation, test, *shares])
    )
    problem = RankedLists(examples.inputs.shape[1], items, margin)
    plain = measure_ndcg(torch.ones(problem.dimension, dtype=torch.float64), held_test)[NDCG.name]
    note = f"NDCG at 10 of the plain distance between pictures, with equal weights of all pixels: {plain:.3f}"
    return Task(problem, lists, held_test, held_validation, Judge(measure_ndcg, [NDCG]), notes=[note])


def _make_lists(examples: Examples, items: int, rng: torch.Generator) -> Lists:
    """Return a list for every picture, of random other ones, the first of which is of the same digit."""
    number = len(examples.labels)
    if number <= items:
        raise InvalidValue("items", items, f"below {number}, the number of pictures of a client")
    order = torch.rand(number, number, generator=rng)
    same = (examples.labels.unsqueeze(1) == examples.labels) & ~torch.eye(number, dtype=torch.bool)
    able = same.any(1)  # pictures that have another one of the same digit
    if not able.any():
        raise InvalidValue("items", items, "used with larger clients: one has no two pictures of the same digit")
    first = (order * same).argmax(1)
    order[torch.arange(number), first] = 2.0
    order.fill_diagonal_(-1.0)
    chosen = order.topk(items, 1).indices[able]
    pictures = examples.inputs.double()
    features = -(pictures[able].unsqueeze(1) - pictures[chosen]).square()
    return Lists(features, (examples.labels[able].unsqueeze(1) == examples.labels[chosen]).double())
