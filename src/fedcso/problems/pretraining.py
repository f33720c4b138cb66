"""Few-shot learning without meta-learning: classify ALL training characters, then adapt a new last layer to each task.

This is what FedAvg can do for few-shot learning, the baseline of `maml`. An ordinary federated classifier of all
clients' characters is trained; its last layer is replaced by zeros, and the network is adapted to each task with the
same steps as MAML's model and measured on the same tasks. Or it is not adapted at all: an image belongs to the class
with the nearest mean of the support images' features (`centroids`).
"""

from typing import Any

import torch

from fedcso.core.recommended import with_methods, with_plan
from fedcso.core.task import Task
from fedcso.core.tree import Tree
from fedcso.datasets import Examples
from fedcso.problems.classification import Classification
from fedcso.problems.few_shot_classes import load_few_shot
from fedcso.problems.few_shot_judge import classify_by_centroids, judge_tasks
from fedcso.problems.few_shot_model import FewShotModel
from fedcso.problems.few_shot_tasks import images_of, keep_classes
from fedcso.problems.maml import MAML, build_network, scale_pixels


@with_methods("FedAvg", learning_rate="cosine(0.3)")
@with_plan(rounds=20, local_steps=10, outer_batch=80, evaluate_every=5)
def pretraining(
    ways: int = 5,
    queries: int = 15,
    inner_rate: float = 0.4,
    filters: int = 64,
    centroids: bool = False,
    **where: Any,
) -> Task:
    """Learn to tell classes of images apart from few examples, by an ordinary classifier: the baseline of maml.

    Args:
        ways: number of classes in a task
        queries: number of query images of each class
        inner_rate: λ, the step size of the adaptation, which takes 3 steps
        filters: number of filters of each of the network's four convolutions
        centroids: classify by the nearest mean of the support images' features, instead of adapting the network
        where: the data, see load_few_shot
    """
    classes = load_few_shot(**where)
    model = FewShotModel(ways, inner_rate, MAML.test_steps, classes.source.form, filters, fresh_last_layer=True)
    few_shot = MAML(build_network(model, ways), ways, queries, inner_rate)
    classes.require_enough(ways, queries)
    drawn = classes.draw(few_shot.episodes, keep_classes)

    def adapted(x: Tree, support: torch.Tensor, images: torch.Tensor) -> torch.Tensor:
        fresh = _with_last_layer(x, torch.zeros(ways, filters))
        return few_shot.network.apply(few_shot.adapt(fresh, support, few_shot.test_steps), images)

    def features(x: Tree, images: torch.Tensor) -> torch.Tensor:
        return few_shot.network.apply(_with_last_layer(x, torch.eye(filters)), images)

    classify = classify_by_centroids(features) if centroids else adapted
    shares = [images_of(held) for held in drawn.clients]
    sizes = [len(images) for images in shares]
    examples = [_label(images, first=sum(sizes[:n])) for n, images in enumerate(shares)]
    return Task(
        Classification(build_network(model, sum(sizes))),
        examples,
        drawn.test,
        drawn.validation,
        judge_tasks(classify, few_shot.query_labels),
        classes.names,
        classes.source.notes,
        model.files(),
    )


def _label(images: torch.Tensor, first: int) -> Examples:
    """Return a client's images, labelled by the numbers of their classes, which start at `first`."""
    classes, drawings = images.shape[:2]
    labels = torch.arange(first, first + classes).repeat_interleave(drawings)
    return Examples(scale_pixels(images.flatten(0, 1)), labels)


def _with_last_layer(x: Tree, weight: torch.Tensor) -> Tree:
    """Return the network with another last layer: the trained one belongs to classes that are not in the tasks."""
    weight = weight.to(x["out.weight"])
    return x | {"out.weight": weight, "out.bias": weight.new_zeros(len(weight))}
