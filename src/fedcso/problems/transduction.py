"""Classify images by an adapted few-shot model, whose batch norm takes its statistics from the images themselves.

    y = x − λ ∇L(x; support), several times;   probabilities = softmax(network(y; batch))

Batch norm has no statistics from training, so that the logits of an image depend on its batch. There are two ways:

- each query image in a batch with the support images: its prediction does not depend on other query images;
- all query images `together` in a batch, as in training and evaluation. This is transductive: a prediction depends on
  the other query images, and is a little better if there are many of all classes in equal numbers; but if most are of
  one class, batch norm takes away what they have in common, and predictions are hardly better than chance.
"""

import torch

from fedcso.core.streams import DATA, stream
from fedcso.core.tree import Tree
from fedcso.datasets.examples import Examples
from fedcso.problems.maml import MAML

MOST = 1000
"""The largest number of query images in a batch, so that memory suffices; more are divided at random."""


def adapt_and_classify(
    problem: MAML, x: Tree, support: Examples, queries: torch.Tensor, together: bool = False
) -> torch.Tensor:
    """Return the probabilities (queries, ways) after the adaptation steps of evaluation."""
    y = problem.adapt_to(x, support, problem.test_steps)
    with torch.no_grad():
        if not together:
            alone = [problem.network.apply(y, torch.cat([support.inputs, image[None]]))[-1] for image in queries]
            return torch.stack(alone).softmax(1)
        order = torch.randperm(len(queries), generator=stream(0, DATA, 1))
        parts = [part.sort().values for part in order.tensor_split(-(-len(queries) // MOST))]
        logits = torch.cat([problem.network.apply(y, queries[part]) for part in parts])
        return logits[torch.cat(parts).argsort()].softmax(1)
