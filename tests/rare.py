"""Small data with rare positives, linear scores, and gradients of the objectives written out as explicit sums."""

from collections.abc import Sequence

import torch
from torch import nn

from fedcso.core.problem import Batch
from fedcso.core.tree import Tree
from fedcso.datasets import Examples
from fedcso.problems import AUPRC, AUROC
from fedcso.problems.auroc import auroc_judge
from fedcso.problems.scores import Scores, ranking_judge
from tests.helpers import Case

Tensor = torch.Tensor

FEATURES = 3
COUNTS = ((9, 3), (12, 2), (7, 4), (10, 1))
"""The numbers of examples and of positives of each site."""


def labelled(number: int, positives: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Examples:
    """Return random points in random order, the positives shifted a little."""
    rng = torch.Generator().manual_seed(seed)
    labels = (torch.randperm(number, generator=rng) < positives).long()
    inputs = torch.randn(number, FEATURES, generator=rng, dtype=torch.float64) + 0.7 * labels.unsqueeze(1)
    return Examples(inputs.to(dtype), labels)


def sites(*counts: tuple[int, int]) -> list[Examples]:
    return [labelled(number, positives, seed) for seed, (number, positives) in enumerate(counts or COUNTS)]


def linear() -> nn.Module:
    return nn.Linear(FEATURES, 1, dtype=torch.float64)


def identity() -> Scores:
    """Return scores that, with the weights `ITSELF`, equal the examples' only feature."""
    return Scores(nn.Linear(1, 1, bias=False, dtype=torch.float64))


ITSELF = {"weight": torch.ones(1, 1, dtype=torch.float64)}


def scored(scores: Sequence[float], labels: Sequence[int]) -> Examples:
    """Return examples with these scores."""
    return Examples(torch.tensor(scores, dtype=torch.float64).unsqueeze(1), torch.tensor(labels, dtype=torch.int64))


PAPERS_SURROGATE = {"bounded": False, "logarithm": False}
"""The options of AUPRC for which f = −g₁/g₂, as in the paper."""


def auprc_case(*counts: tuple[int, int], **options) -> Case:
    problem = AUPRC(Scores(linear), **options)
    return Case(problem, sites(*counts), labelled(30, 8, seed=99), judge=ranking_judge(problem.scores))


def auroc_case(*counts: tuple[int, int], rate: float = 0.3) -> Case:
    problem = AUROC(Scores(linear), rate)
    return Case(problem, sites(*counts), labelled(30, 8, seed=99), judge=auroc_judge(problem))


# --------------------------------------------------------------------------- a linear model as a vector


def as_vector(x: Tree) -> Tensor:
    """Return (weights, bias)."""
    return torch.cat([x["weight"].flatten(), x["bias"]])


def as_model(vector: Tensor) -> Tree:
    return {"weight": vector[:-1].unsqueeze(0), "bias": vector[-1:]}


def h(x: Tensor, z: Tensor, sigmoid: bool = True) -> tuple[Tensor, Tensor]:
    """Return an example's score and its gradient in x."""
    with_one = torch.cat([z, torch.ones(1, dtype=z.dtype)])
    logit = (x * with_one).sum()
    if not sigmoid:
        return logit, with_one
    score = 1 / (1 + torch.exp(-logit))
    return score, score * (1 - score) * with_one


# ------------------------------------------------------------------------------------ AUPRC by hand


def ghat(problem: AUPRC, x: Tensor, positive: Tensor, others: Examples) -> tuple[Tensor, Tensor]:
    """Return ĝ of one positive and its Jacobian (2, d), summed over its inner samples one by one."""
    s, own = problem.margin, problem.itself
    score, slope = h(x, positive, problem.sigmoid)
    value, jacobian = [own * s**2, own * s**2], [torch.zeros_like(x), torch.zeros_like(x)]
    for z, label in zip(*others, strict=True):
        other, other_slope = h(x, z, problem.sigmoid)
        near = max(float(s - score + other), 0.0)
        if problem.bounded and label == 1 and near > s:
            value = [before + s**2 for before in value]
            continue
        for place in (0, 1) if label == 1 else (1,):
            value[place] = value[place] + near**2
            jacobian[place] = jacobian[place] + 2 * near * (other_slope - slope)
    weight = len(others.labels) + own
    return torch.stack([torch.as_tensor(v, dtype=x.dtype) for v in value]) / weight, torch.stack(jacobian) / weight


def f_gradient(y: Tensor, logarithm: bool = False) -> Tensor:
    """Return the gradient of f(y) = −y₁/y₂, or of −log(y₁/y₂)."""
    if logarithm:
        return torch.stack([-1 / y[0], 1 / y[1]])
    return torch.stack([-1 / y[1], y[0] / y[1] ** 2])


def inner_of(batch: Batch, place: int) -> Examples:
    """Return the inner samples of one of a batch's positives."""
    return Examples(*(leaf[place if len(leaf) > 1 else 0] for leaf in batch.eta))


def auprc_gradient(problem: AUPRC, x: Tensor, batch: Batch) -> Tensor:
    """Return ∇F̂, the mean over the batch's positives."""
    total = torch.zeros_like(x)
    for place, positive in enumerate(batch.xi.inputs):
        value, jacobian = ghat(problem, x, positive, inner_of(batch, place))
        total = total + jacobian.T @ f_gradient(value, problem.logarithm)
    return total / len(batch.xi.which)


# ------------------------------------------------------------------------------------ AUROC by hand


def auroc_gradient(p: float, v: Tensor, a: Tensor, b: Tensor, y: Tensor, examples: Examples) -> tuple[Tensor, ...]:
    """Return ∂_w, ∂_a, ∂_b and ∂_y of the min-max objective, averaged over examples."""
    w_part, a_part, b_part, y_part = torch.zeros_like(v), 0.0, 0.0, 0.0
    for z, label in zip(*examples, strict=True):
        score, slope = h(v, z)
        if label == 1:
            w_part = w_part + (2 * (1 - p) * (score - a) - 2 * (1 + y) * (1 - p)) * slope
            a_part = a_part - 2 * (1 - p) * (score - a)
            y_part = y_part - 2 * (1 - p) * score
        else:
            w_part = w_part + (2 * p * (score - b) + 2 * (1 + y) * p) * slope
            b_part = b_part - 2 * p * (score - b)
            y_part = y_part + 2 * p * score
        y_part = y_part - 2 * p * (1 - p) * y
    return tuple(torch.as_tensor(part) / len(examples.labels) for part in (w_part, a_part, b_part, y_part))
