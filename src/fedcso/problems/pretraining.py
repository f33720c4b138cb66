"""Few-shot learning without meta-learning: classify ALL training characters, then adapt a fresh last layer to a task.

What FedAvg can do for few-shot learning, as a baseline for `maml`: an ordinary federated classifier of all clients'
characters, whose body is then given a last layer at zero and adapted to each task as MAML's model is, with the same
steps, and measured on the same tasks.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import torch

from fedcso.core.errors import require_count
from fedcso.core.task import Task, with_plan
from fedcso.core.tree import Tree
from fedcso.datasets import Examples
from fedcso.models.conv4 import Conv4
from fedcso.problems.classification import Classification
from fedcso.problems.few_shot_tasks import Episodes, freely, images_of, load_few_shot
from fedcso.problems.maml import MAML, few_shot_judge


@with_plan(rounds=20, local_steps=10, outer_batch=80, evaluate_every=5)
def pretraining(ways: int = 5, queries: int = 15, inner_rate: float = 0.4, filters: int = 64, **where: Any) -> Task:
    """Learn to tell characters apart from few examples, by an ordinary classifier: the baseline of maml.

    Args:
        ways: classes in a task
        queries: query images of each class
        inner_rate: λ, the step size of the adaptation, of which there are 3 steps
        filters: of each of the network's four convolutions
        where: the data, see load_few_shot
    """
    require_count("filters", filters)
    few_shot = MAML(partial(Conv4, ways, filters), ways, queries, inner_rate)
    characters = load_few_shot(few_shot.episodes, freely, **where)

    adapted = few_shot_judge(few_shot)

    def evaluate(x: Tree, episodes: Episodes) -> dict[str, Any]:
        """Measure with a fresh last layer: the trained one knows classes that no task asks about."""
        fresh = {"out.weight": x["out.weight"].new_zeros(ways, filters), "out.bias": x["out.bias"].new_zeros(ways)}
        return adapted.evaluate(x | fresh, episodes)

    shares = [images_of(held) for held in characters.clients]
    sizes = [len(images) for images in shares]
    labelled = [_labelled(images, first=sum(sizes[:n])) for n, images in enumerate(shares)]
    problem = Classification(partial(Conv4, sum(sizes), filters))
    return Task(problem, labelled, characters.test, characters.validation, replace(adapted, evaluate=evaluate))


def _labelled(images: torch.Tensor, first: int) -> Examples:
    """A client's drawings with their classes' numbers, which start at `first`."""
    classes, drawings = images.shape[:2]
    labels = torch.arange(first, first + classes).repeat_interleave(drawings)
    return Examples(images.flatten(0, 1).unsqueeze(1).float() / 255, labels)
