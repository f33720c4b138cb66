"""Distributionally robust learning across clients: those with large losses count more.

    ξ = the client (nothing to draw),   η ~ one of its examples
    g_η(x) = ℓ(x; η),       f(y) = λ exp( (y − c)/λ )

    min_x (λ/N) Σ_n exp( (L_n(x) − c)/λ ),       L_n(x) = E_η ℓ(x; η)

The logarithm of this is, up to constants, λ log (1/N) Σ_n exp(L_n/λ) = max_p Σ_n p_n L_n − λ KL(p, uniform), which has
the same minimiser: the mean loss under the worst weights p of the clients near the uniform ones. Small λ are close to
the largest of all L_n, and λ → ∞ is the ordinary mean. The constant c keeps the exponential in range; it multiplies F
by a factor, and so acts like another learning rate.

References: Huang, Li, Compositional federated learning, 2021 (ComFedL); Guo, Yang, Communication-Efficient Federated
Group Distributionally Robust Optimization, NeurIPS 2024.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F

from fedcso.core.errors import require_count, require_positive
from fedcso.core.judge import Judge
from fedcso.core.metric import Metric
from fedcso.core.problem import Problem
from fedcso.core.recommended import with_methods, with_plan
from fedcso.core.task import Task
from fedcso.core.tree import Tree
from fedcso.datasets import Examples, load
from fedcso.datasets.partition import pathological, split_each
from fedcso.datasets.rows import share
from fedcso.problems.classification import ACCURACY, LOSS, Classification, build_network
from fedcso.problems.ordinary import Ordinary

WORST = Metric("worst_accuracy", "accuracy at the worst client", higher_is_better=True, share=True)


@dataclass(frozen=True)
class Robust(Problem):
    """The exponential of a client's mean loss in an ordinary problem; a client's data are those of that problem."""

    base: Ordinary
    """The ordinary problem, whose loss is ℓ."""
    temperature: float = 1.0
    """λ, small for weights that differ much."""
    level: float = 0.0
    """c, a typical loss."""

    def __post_init__(self) -> None:
        require_positive("temperature", self.temperature)

    def init(self, rng: torch.Generator) -> Tree:
        """Return x_0 of the ordinary problem."""
        return self.base.init(rng)

    def sample_outer(self, data: Any, rng: torch.Generator, shape: tuple[int, ...]) -> torch.Tensor:
        """Return zeros: ξ is the client itself."""
        return torch.zeros(shape)

    def sample_inner(self, data: Any, rng: torch.Generator, xi: torch.Tensor, m: int) -> Examples:
        """Draw m examples with replacement."""
        return self.base.sample_outer(data, rng, (*xi.shape, m))

    def inner(self, x: Tree, xi: torch.Tensor, eta: Examples) -> torch.Tensor:
        """Return the mean loss of each m examples."""
        flat = Examples(*(column.flatten(0, 1) for column in eta))
        return self.base.losses(x, flat).reshape(eta.labels.shape[:2]).mean(1)

    def outer(self, y: torch.Tensor, xi: torch.Tensor) -> torch.Tensor:
        """Return λ exp((y − c)/λ)."""
        return self.temperature * torch.exp(self.log_weight(y))

    def log_weight(self, y: torch.Tensor) -> torch.Tensor:
        """Return (y − c)/λ, the logarithm of the weight of a client with this loss."""
        return (y - self.level) / self.temperature

    def trains(self, data: Any) -> bool:
        """Return whether the client has any examples."""
        return self.base.trains(data)

    def size(self, data: Any) -> int | None:
        """Return the number of examples."""
        return self.base.size(data)


def robust_judge(problem: Classification) -> Judge:
    """Return a judge that measures accuracy at the worst client, and accuracy and loss over all clients' examples."""

    def evaluate(x: Tree, clients: Sequence[Examples]) -> dict[str, Any]:
        logits = [problem.network.apply(x, own.inputs) for own in clients]
        right = [(some.argmax(-1) == own.labels).double() for some, own in zip(logits, clients, strict=True)]
        return {
            WORST.name: torch.stack([own.mean() for own in right]).min(),
            ACCURACY.name: torch.cat(right).mean(),
            LOSS.name: F.cross_entropy(torch.cat(logits), torch.cat([own.labels for own in clients])),
        }

    return Judge(evaluate, [WORST, ACCURACY, LOSS])


@with_methods("FGDRO-KL", "ComFedL", learning_rate=0.1)
@with_plan(rounds=60, local_steps=5, outer_batch=1, inner_batch=20, evaluate_every=5)
def robust(
    data: str = "digits",
    clients: int = 16,
    classes: int = 5,
    hidden: int = 0,
    temperature: float = 1.0,
    data_seed: int = 0,
) -> Task:
    """Classify well at every client: those with large losses get larger weights (distributionally robust).

    Args:
        data: name of a data set (see: fedcso list)
        clients: N, the number of clients that share the data
        classes: number of different labels at each client
        hidden: number of hidden units; 0 for a linear model
        temperature: λ, small to look at the worst clients only, large for equal weights
        data_seed: seed of the division among clients, and into training, validation and test data
    """
    require_count("hidden", hidden, least=0)
    examples = load(data)
    parts = split_each(pathological(examples.labels, clients, classes, data_seed), data_seed)
    labels = int(examples.labels.max()) + 1
    base = Classification(partial(build_network, examples.inputs.shape[1], hidden, labels))
    return Task(
        Robust(base, temperature, level=math.log(labels)),  # the loss of a guess
        [share(examples, train) for train, _, _ in parts],
        test=[examples.select(held) for _, _, held in parts],
        validation=[examples.select(held) for _, held, _ in parts],
        judge=robust_judge(base),
    )
