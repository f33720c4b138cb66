"""Classification of pictures by the mean prediction over transformations: rotations and shifts.

    ξ = (a, label), a labelled picture,   η = a transformation, uniform on a finite set
    g = logits(x; T_η a),   f(g) = cross-entropy of the MEAN logits

F and ∇F are exact by enumeration. Cross-entropy is convex in the logits, so by Jensen's inequality, with F_m = E F̂,

    F ≤ F_m ≤ F_1,      F_m − F = (1/2m) E tr( ∇²f Cov(g | ξ) ) + O(1/m²)

F_1 is ordinary training on transformed pictures (augmentation): an upper bound of F. With `distinct` the m
transformations of a picture are drawn without replacement; then Cov is multiplied by (G − m)/(G − 1) for G
transformations, and m = G is exact.

Reference: Mroueh, Voinea, Poggio, Learning with Group Invariant Features, NeurIPS 2015, for the group averages.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from fedcso.core.errors import InvalidValue, require_choice, require_count
from fedcso.core.judge import Judge
from fedcso.core.metric import Metric
from fedcso.core.problem import Problem
from fedcso.core.recommended import with_methods, with_plan
from fedcso.core.task import Task
from fedcso.core.tree import Tree, leaves, map_leaves, unflatten_like
from fedcso.datasets import Examples, load
from fedcso.datasets.partition import partition, train_validation_test
from fedcso.datasets.rows import share
from fedcso.models.functional import Functional, Model

ACCURACY = Metric("accuracy", "accuracy of the mean prediction", higher_is_better=True, share=True)
SINGLE_ACCURACY = Metric("single_accuracy", "accuracy of a single prediction", higher_is_better=True, share=True)


def transformations(kind: str, side: int) -> torch.Tensor:
    """Return, for each transformation of a square picture, which pixel comes to each place; side² is a black pixel."""
    require_choice("transform", kind, ("rotations", "shifts", "both"))
    pixels = torch.arange(side * side).reshape(side, side)
    black = F.pad(pixels, (1, 1, 1, 1), value=side * side)
    turns = range(4) if kind != "shifts" else [0]
    moves = [1] if kind == "rotations" else range(3)
    return torch.stack(
        [
            torch.rot90(black[down : down + side, right : right + side], turn).flatten()
            for turn, down, right in product(turns, moves, moves)
        ]
    )


@dataclass(frozen=True)
class InvariantImages(Problem):
    """Cross-entropy of mean logits over transformations; a client's data are `Examples` with flat pictures."""

    model: Model
    pixels: torch.Tensor
    """The transformations, see `transformations`."""
    distinct: bool = False
    """True to draw different transformations for a picture."""
    network: Functional = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "network", Functional(self.model))

    def init(self, rng: torch.Generator) -> Tree:
        """Return the network's initial weights, see `Model`."""
        return self.network.init(rng)

    def sample_outer(self, data: Examples, rng: torch.Generator, shape: tuple[int, ...]) -> Examples:
        """Draw labelled pictures with replacement."""
        chosen = torch.randint(len(data.labels), shape, generator=rng)
        return Examples(data.inputs[chosen], data.labels[chosen])

    def sample_inner(self, data: Examples, rng: torch.Generator, xi: Examples, m: int) -> torch.Tensor:
        """Draw transformations of each picture, and return the transformed pictures."""
        group = len(self.pixels)
        if not self.distinct:
            which = torch.randint(group, (*xi.labels.shape, m), generator=rng)
        elif m <= group:
            which = torch.rand(*xi.labels.shape, group, generator=rng).argsort(-1)[..., :m]
        else:
            raise InvalidValue("inner_batch", m, f"at most {group} with distinct: there are no more transformations")
        return self._padded(xi.inputs).unsqueeze(-2).expand(*which.shape, -1).gather(-1, self.pixels[which])

    def transformed(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return all transformed pictures, (n, G, pixels)."""
        return self._padded(inputs)[:, self.pixels]

    def inner(self, x: Tree, xi: Examples, eta: torch.Tensor) -> torch.Tensor:
        """Return the mean logits of each picture."""
        logits = self.network.apply(x, eta.flatten(0, 1))
        return logits.reshape(*eta.shape[:2], -1).mean(1)

    def outer(self, y: torch.Tensor, xi: Examples) -> torch.Tensor:
        """Return the cross-entropy of each picture."""
        return F.cross_entropy(y, xi.labels, reduction="none")

    def exact(self, x: Tree, clients: Sequence[Examples], weights: Sequence[float]) -> tuple[torch.Tensor, Tree]:
        """Return F and ∇F, by all transformations of all pictures of all clients."""
        total = sum(weights)
        with torch.enable_grad():
            point = map_leaves(lambda leaf: leaf.detach().requires_grad_(), x)
            parts = [w / total * self._mean_loss(point, data) for w, data in zip(weights, clients, strict=True)]
            value = torch.stack(parts).sum()
            gradient = torch.autograd.grad(value, leaves(point))
        return value.detach(), unflatten_like(x, gradient)

    def trains(self, data: Examples) -> bool:
        """Return whether the client has any pictures."""
        return len(data.labels) > 0

    def size(self, data: Examples) -> int:
        """Return the number of pictures."""
        return len(data.labels)

    def _mean_loss(self, x: Tree, data: Examples) -> torch.Tensor:
        return self.outer(self.inner(x, data, self.transformed(data.inputs[:])), data).mean()

    def _padded(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return flat pictures with a black pixel at the end."""
        return torch.cat([inputs, torch.zeros_like(inputs[..., :1])], -1)


def invariant_judge(problem: InvariantImages) -> Judge:
    """Return the judge of mean predictions over all transformations, and of single ones."""

    def evaluate(x: Tree, data: Examples) -> dict[str, Any]:
        pictures = problem.transformed(data.inputs)
        logits = problem.network.apply(x, pictures.flatten(0, 1)).reshape(*pictures.shape[:2], -1)
        single = (logits.argmax(-1) == data.labels.unsqueeze(1)).double().mean()
        return {
            ACCURACY.name: (logits.mean(1).argmax(-1) == data.labels).double().mean(),
            SINGLE_ACCURACY.name: single,
        }

    return Judge(evaluate, [ACCURACY, SINGLE_ACCURACY])


@with_methods(learning_rate="cosine(0.5)", momentum=0.3)
@with_plan(rounds=50, local_steps=20, outer_batch=8, inner_batch=2, evaluate_every=5)
def invariant_images(
    transform: str = "rotations",
    hidden: int = 32,
    distinct: bool = False,
    clients: int = 16,
    alpha: float = 0.0,
    data_seed: int = 0,
) -> Task:
    """Classify the digits of scikit-learn by the mean prediction over rotations or shifts.

    Args:
        transform: rotations (four), shifts (nine, by up to a pixel), or both (36)
        hidden: number of hidden units; 0 for a linear model
        distinct: draw different transformations of a picture, so that m = 4, 9 or 36 has no bias
        clients: N, the number of clients that share the training data
        alpha: Dirichlet concentration of the labels per client, small for heterogeneous clients; 0 for IID
        data_seed: seed of the split into clients, validation and test data
    """
    require_count("hidden", hidden, least=0)
    examples = load("digits")
    train, validation, test = train_validation_test(len(examples.labels), data_seed)
    shares = partition(examples.labels[train], clients, alpha, data_seed)
    problem = InvariantImages(partial(_network, hidden), transformations(transform, 8), distinct)
    return Task(
        problem,
        [share(examples, train[own]) for own in shares],
        test=Examples(*(column[test] for column in examples)),
        validation=Examples(*(column[validation] for column in examples)),
        judge=invariant_judge(problem),
    )


def _network(hidden: int) -> nn.Module:
    if not hidden:
        return nn.Sequential(nn.Linear(64, 10))
    return nn.Sequential(nn.Linear(64, hidden), nn.ReLU(), nn.Linear(hidden, 10))
