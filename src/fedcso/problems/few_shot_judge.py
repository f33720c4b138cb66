"""How few-shot models are judged: by the accuracy on the query images of tasks of unseen classes."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from fedcso.core.judge import Judge
from fedcso.core.metric import Metric
from fedcso.core.tree import Tree
from fedcso.core.workers import pool
from fedcso.problems.few_shot_tasks import Episodes

ACCURACY = Metric("accuracy", higher_is_better=True, share=True)
LOSS = Metric("loss", higher_is_better=False)

Classify = Callable[[Tree, torch.Tensor, torch.Tensor], torch.Tensor]
"""(x, support images (m, ways, channels, height, width), query images) → logits of the query images."""


def judge_tasks(classify: Classify, query_labels: Callable[[torch.Tensor], torch.Tensor]) -> Judge:
    """Return a judge that classifies the query images of each task; `query_labels` returns their labels."""

    def evaluate(x: Tree, test: Episodes) -> dict[str, Any]:
        """Return mean query loss and accuracy over the tasks, and the half-width of the accuracy's 95 % interval."""

        def measure_task(task: int) -> tuple[torch.Tensor, torch.Tensor]:
            images = test.xi.images[task]
            with torch.no_grad():  # worker threads do not inherit it
                logits = classify(x, test.eta[task], images)
            labels = query_labels(images)
            return F.cross_entropy(logits, labels), (logits.argmax(-1) == labels).double().mean()

        with pool() as workers:
            losses, accuracies = zip(*workers.map(measure_task, range(len(test.eta))), strict=True)
        accuracy = torch.stack(accuracies)
        spread = accuracy.std(correction=min(1, len(accuracy) - 1))
        return {
            LOSS.name: torch.stack(losses).mean(),
            ACCURACY.name: accuracy.mean(),
            ACCURACY.half_width().name: 1.96 * spread / len(accuracy) ** 0.5,
        }

    return Judge(evaluate, [ACCURACY, ACCURACY.half_width(), LOSS])


def classify_by_centroids(features: Callable[[Tree, torch.Tensor], torch.Tensor]) -> Classify:
    """Return a classifier by the nearest mean of a class's support features, without any adaptation.

    Logits are minus squared distances. Support and query images go through the network in one batch, so that batch norm
    treats them alike.
    """

    def classify(x: Tree, support: torch.Tensor, queries: torch.Tensor) -> torch.Tensor:
        shots, ways = support.shape[:2]
        found = features(x, torch.cat([support.flatten(0, 1), queries]))
        shown, asked = found[: shots * ways], found[shots * ways :]
        return -torch.cdist(asked, shown.view(shots, ways, -1).mean(0)).square()

    return classify
