"""Contrastive learning of representations without labels, by the global contrastive loss.

    ξ = a view a of a picture, and another view a⁺ of the same picture,   η | ξ = a view z of any OTHER picture
    g = exp( (E(a)ᵀE(z) − E(a)ᵀE(a⁺)) / τ ),   f(g) = τ log g          E(·), a network with outputs of norm 1

The mean is over all other pictures of the client. With m of them in the logarithm it is the loss of a batch of that
size (SimCLR's, but for the positive pair in the denominator), whose bias −(τ/2m) Var(g)/(E g)² + O(1/m²) is why
contrastive learning needs large batches. Methods with an inner value for each ξ (SOX) are those of the reference.

Every picture has two views, fixed by the data seed, so F and ∇F are exact by enumeration. The pictures are
scikit-learn's digits, and views are shifts by up to a pixel. Representations are judged by a linear probe: ridge
regression on the labels of the training pictures, which training itself does not see.

Reference: Yuan, Wu, Qiu, Du, Zhang, Zhou, Yang, Provable Stochastic Optimization for Global Contrastive Learning: Small
Batch Does Not Harm Performance, ICML 2022 (SogCLR).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import nn

from fedcso.core.errors import FedcsoError, require_count, require_positive
from fedcso.core.judge import Judge
from fedcso.core.metric import Metric
from fedcso.core.problem import Problem
from fedcso.core.recommended import with_methods, with_plan
from fedcso.core.streams import DATA, stream
from fedcso.core.task import Task
from fedcso.core.tree import Tree, leaves, map_leaves, unflatten_like
from fedcso.datasets import Examples, load
from fedcso.datasets.partition import partition, train_validation_test
from fedcso.models.functional import Functional, Model
from fedcso.problems.invariant_images import transformations
from fedcso.problems.log_mean_exp import safe_exp, safe_log

PROBE = Metric("probe_accuracy", "accuracy of a linear probe", higher_is_better=True, share=True)


class Pair(NamedTuple):
    """ξ: two views of the same picture, (..., 2, pixels), the first of which is compared with others."""

    which: torch.Tensor
    """The number of the first one among all views of the client."""
    views: torch.Tensor


@dataclass(frozen=True)
class Contrastive(Problem):
    """The global contrastive loss; a client's data are two views of each of its pictures, (n, 2, pixels)."""

    model: Model
    temperature: float = 0.2
    """τ."""
    network: Functional = field(init=False, repr=False)

    def __post_init__(self) -> None:
        require_positive("temperature", self.temperature)
        object.__setattr__(self, "network", Functional(self.model))

    def init(self, rng: torch.Generator) -> Tree:
        """Return the network's initial weights, see `Model`."""
        return self.network.init(rng)

    def encode(self, x: Tree, pictures: torch.Tensor) -> torch.Tensor:
        """Return the representations E, of norm 1."""
        return F.normalize(self.network.apply(x, pictures), dim=-1)

    def sample_outer(self, data: torch.Tensor, rng: torch.Generator, shape: tuple[int, ...]) -> Pair:
        """Draw views with replacement."""
        which = torch.randint(2 * len(data), shape, generator=rng)
        pair = data[which // 2]
        return Pair(which, torch.where((which % 2).bool()[..., None, None], pair.flip(-2), pair))

    def sample_inner(self, data: torch.Tensor, rng: torch.Generator, xi: Pair, m: int) -> torch.Tensor:
        """Draw views of other pictures with replacement."""
        if len(data) < 2:
            raise FedcsoError("a client has a single picture, which can't be compared with others: give it more")
        other = torch.randint(2 * len(data) - 2, (*xi.which.shape, m), generator=rng)
        first = (xi.which - xi.which % 2).unsqueeze(-1)
        return data.flatten(0, 1)[other + 2 * (other >= first)]

    def inner(self, x: Tree, xi: Pair, eta: torch.Tensor) -> torch.Tensor:
        """Return the mean of g over views of other pictures."""
        b, m = eta.shape[:2]
        codes = self.encode(x, torch.cat([xi.views.flatten(0, 1), eta.flatten(0, 1)]))
        anchor, positive = codes[: 2 * b].reshape(b, 2, -1).unbind(1)
        gaps = (codes[2 * b :].reshape(b, m, -1) * anchor.unsqueeze(1)).sum(-1) - (anchor * positive).sum(
            -1, keepdim=True
        )
        return safe_exp(gaps / self.temperature).mean(1)

    def outer(self, y: torch.Tensor, xi: Pair) -> torch.Tensor:
        """Return τ log g."""
        return self.temperature * safe_log(y)

    def exact(self, x: Tree, clients: Sequence[torch.Tensor], weights: Sequence[float]) -> tuple[torch.Tensor, Tree]:
        """Return F and ∇F, by all pairs of views."""
        total = sum(weights)
        with torch.enable_grad():
            point = map_leaves(lambda leaf: leaf.detach().requires_grad_(), x)
            parts = [w / total * self._all_pairs(point, data) for w, data in zip(weights, clients, strict=True)]
            value = torch.stack(parts).sum()
            gradient = torch.autograd.grad(value, leaves(point))
        return value.detach(), unflatten_like(x, gradient)

    def trains(self, data: torch.Tensor) -> bool:
        """Return whether there are pictures to compare."""
        return len(data) > 1

    def outer_count(self, data: torch.Tensor) -> int:
        """Return the number of views."""
        return 2 * len(data)

    def which(self, xi: Pair) -> torch.Tensor:
        """Return the numbers of the views."""
        return xi.which

    def _all_pairs(self, x: Tree, data: torch.Tensor) -> torch.Tensor:
        codes = self.encode(x, data.flatten(0, 1))
        alike = codes @ codes.T
        place = torch.arange(len(codes))
        gaps = (alike - alike[place, place ^ 1].unsqueeze(1)) / self.temperature
        own = (place.unsqueeze(1) // 2) == (place // 2)
        means = safe_exp(gaps).masked_fill(own, 0.0).sum(1) / (len(codes) - 2)
        return self.temperature * safe_log(means).mean()


class Probe(NamedTuple):
    """Labelled pictures to fit a linear probe on, and others to test it on."""

    fit: Examples
    test: Examples


def probe_judge(problem: Contrastive) -> Judge:
    """Return the judge that fits ridge regression on representations, with one output for each class."""

    def evaluate(x: Tree, data: Probe) -> dict[str, Any]:
        codes, others = (problem.encode(x, part.inputs).double() for part in data)
        centre = codes.mean(0)
        codes, others = codes - centre, others - centre
        target = F.one_hot(data.fit.labels).double()
        penalty = 1e-3 * len(codes) * torch.eye(codes.shape[1], dtype=torch.float64)
        weights = torch.linalg.solve(codes.T @ codes + penalty, codes.T @ (target - target.mean(0)))
        right = (others @ weights + target.mean(0)).argmax(1) == data.test.labels
        return {PROBE.name: right.double().mean()}

    return Judge(evaluate, [PROBE])


@with_methods(learning_rate="cosine(0.25)", momentum=0.3)
@with_plan(rounds=40, local_steps=20, outer_batch=8, inner_batch=16, evaluate_every=5)
def contrastive(
    clients: int = 8,
    temperature: float = 0.2,
    hidden: int = 64,
    outputs: int = 8,
    alpha: float = 0.0,
    data_seed: int = 0,
) -> Task:
    """Learn representations of digits without labels, by the global contrastive loss (SogCLR).

    Args:
        clients: N, the number of clients that share the training pictures
        temperature: τ; small looks at the most similar other pictures only
        hidden: number of hidden units of the encoder; 0 for a linear one
        outputs: length of a representation
        alpha: Dirichlet concentration of the digits per client, small for heterogeneous clients; 0 for IID
        data_seed: seed of the split and of the views
    """
    require_count("hidden", hidden, least=0)
    require_count("outputs", outputs)
    examples = load("digits")
    split = train_validation_test(len(examples.labels), data_seed)
    train, validation, test = (Examples(*(column[part] for column in examples)) for part in split)
    pixels = transformations("shifts", 8)
    chosen = torch.randint(len(pixels), (len(train.labels), 2), generator=stream(data_seed, DATA, 0))
    padded = torch.cat([train.inputs, torch.zeros_like(train.inputs[:, :1])], 1)
    views = padded.unsqueeze(1).expand(-1, 2, -1).gather(-1, pixels[chosen])
    problem = Contrastive(partial(_encoder, hidden, outputs), temperature)
    return Task(
        problem,
        [views[own] for own in partition(train.labels, clients, alpha, data_seed)],
        test=Probe(train, test),
        validation=Probe(train, validation),
        judge=probe_judge(problem),
    )


def _encoder(hidden: int, outputs: int) -> nn.Module:
    if not hidden:
        return nn.Sequential(nn.Linear(64, outputs))
    return nn.Sequential(nn.Linear(64, hidden), nn.ReLU(), nn.Linear(hidden, outputs))
