"""Ordinary federated learning: g is the identity, f_ξ the loss of a model on one labelled example.

    F(x) = (1/N) Σ_n E_{(input, label) ~ D_n} cross-entropy( model(x, input), label )

There are no inner samples. Nested methods work here too, and become ordinary ones.
"""

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from fedcso.core.errors import require_count
from fedcso.core.judge import Judge
from fedcso.core.metric import Metric
from fedcso.core.task import Task
from fedcso.core.tree import Tree
from fedcso.datasets import Examples, load
from fedcso.datasets.partition import partition, train_validation_test
from fedcso.datasets.rows import share
from fedcso.models.functional import Functional, Model
from fedcso.problems.ordinary import Ordinary

ACCURACY = Metric("accuracy", higher_is_better=True, share=True)
LOSS = Metric("loss", higher_is_better=False)


@dataclass(frozen=True)
class Classification(Ordinary):
    """The cross-entropy of a network; a client's data are `Examples`, drawn with replacement."""

    model: Model
    network: Functional = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "network", Functional(self.model))

    def init(self, rng: torch.Generator) -> Tree:
        """Return the network's initial weights, see `Model`."""
        return self.network.init(rng)

    def losses(self, x: Tree, xi: Examples) -> torch.Tensor:
        """Return the cross-entropy of each example."""
        return F.cross_entropy(self.network.apply(x, xi.inputs), xi.labels, reduction="none")


def classification_judge(problem: Classification) -> Judge:
    """Return a judge that measures accuracy and mean loss on labelled examples."""

    def evaluate(x: Tree, data: Examples) -> dict[str, Any]:
        logits = torch.cat([problem.network.apply(x, part) for part in torch.split(data.inputs, 1024)])
        return {
            LOSS.name: F.cross_entropy(logits, data.labels),
            ACCURACY.name: (logits.argmax(-1) == data.labels).double().mean(),
        }

    return Judge(evaluate, [ACCURACY, LOSS])


def classification(
    data: str = "digits",
    clients: int = 16,
    alpha: float = 0.0,
    hidden: int = 0,
    data_seed: int = 0,
) -> Task:
    """Classify labelled examples with a linear model or a small network: ordinary federated learning.

    Args:
        data: name of a data set (see: fedcso list)
        clients: N, the number of clients that share the training data
        alpha: Dirichlet concentration of the labels per client, small for heterogeneous clients; 0 for IID
        hidden: number of hidden units; 0 for a linear model
        data_seed: seed of the split into clients, validation and test data
    """
    require_count("hidden", hidden, least=0)
    examples = load(data)
    inputs, classes = examples.inputs.shape[1], int(examples.labels.max()) + 1
    train, validation, test = train_validation_test(len(examples.labels), data_seed)
    shares = partition(examples.labels[train], clients, alpha, data_seed)
    problem = Classification(partial(build_network, inputs, hidden, classes))
    return Task(
        problem,
        [share(examples, train[own]) for own in shares],
        test=Examples(*(column[test] for column in examples)),
        validation=Examples(*(column[validation] for column in examples)),
        judge=classification_judge(problem),
    )


def build_network(inputs: int, hidden: int, classes: int) -> nn.Module:
    """Return a linear model, or a network with one hidden layer."""
    if not hidden:
        return nn.Sequential(nn.Linear(inputs, classes))
    return nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, classes))
