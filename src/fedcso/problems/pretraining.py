"""Few-shot learning without meta-learning: classify ALL training characters, then adapt a fresh last layer to a task.

What FedAvg can do for few-shot learning, as a baseline for `maml`: an ordinary federated classifier of all clients'
characters, whose body is then given a last layer at zero and adapted to each task as MAML's model is, with the same
steps, and measured on the same tasks.
"""

from typing import Any

import torch

from fedcso.datasets import Examples, load_characters
from fedcso.datasets.characters import spread
from fedcso.metrics import ByClient
from fedcso.models.conv4 import Conv4
from fedcso.problems.classification import Classification
from fedcso.problems.few_shot_tasks import Episodes, require_some
from fedcso.problems.maml import MAML
from fedcso.streams import DATA, stream
from fedcso.task import Task, with_plan
from fedcso.tree import Tree


@with_plan(rounds=20, local_steps=10, outer_batch=80, evaluate_every=5)
def pretraining(
    data: str = "glyphs",
    clients: int = 16,
    ways: int = 5,
    shots: int = 1,
    queries: int = 15,
    inner_rate: float = 0.4,
    filters: int = 64,
    test_tasks: int = 600,
    validation_tasks: int = 100,
    client_tasks: int = 10,
    data_seed: int = 0,
) -> Task:
    """Few-shot learning by an ordinary classifier of all training characters, the baseline of maml.

    Args:
        data: glyphs (embedded) or omniglot (see: fedcso data get omniglot)
        clients: N, over which the training characters are spread disjointly
        ways: classes in a task
        shots: support samples of each class
        queries: query images of each class
        inner_rate: λ, the step size of the adaptation, of which there are 3 steps
        filters: of each of the network's four convolutions
        test_tasks: tasks of unseen characters that are reported on
        validation_tasks: tasks of other unseen characters, by which settings are chosen
        client_tasks: tasks of its own training characters on which each client measures the model
        data_seed: decides who holds which characters, and the tasks to evaluate on
    """
    require_some(
        shots=shots,
        filters=filters,
        test_tasks=test_tasks,
        validation_tasks=validation_tasks,
        client_tasks=client_tasks,
    )
    characters = load_characters(data)
    few_shot = MAML(Conv4(ways, filters), ways, queries, inner_rate)

    def measure(x: Tree, episodes: Episodes) -> dict[str, Any]:
        """A fresh last layer: the trained one knows classes that no task asks about."""
        fresh = {"out.weight": x["out.weight"].new_zeros(ways, filters), "out.bias": x["out.bias"].new_zeros(ways)}
        return few_shot.evaluate(x | fresh, episodes)

    shares, rng = spread(characters.train, clients, data_seed), stream(data_seed, DATA, 2)
    firsts = [sum(map(len, shares[:n])) for n in range(clients)]
    return Task(
        Classification(Conv4(len(characters.train), filters), measure),
        [_labelled(images, first) for images, first in zip(shares, firsts, strict=True)],
        test=ByClient(
            few_shot.episodes(characters.test, test_tasks, shots, stream(data_seed, DATA, 0)),
            [few_shot.episodes(images, client_tasks, shots, rng) for images in shares],
        ),
        validation=few_shot.episodes(characters.validation, validation_tasks, shots, stream(data_seed, DATA, 1)),
    )


def _labelled(images: torch.Tensor, first: int) -> Examples:
    """A client's drawings with their classes' numbers, which start at `first`."""
    classes, drawings = images.shape[:2]
    labels = torch.arange(first, first + classes).repeat_interleave(drawings)
    return Examples(images.flatten(0, 1).unsqueeze(1).float() / 255, labels)
