"""Numbers to report: evaluation of a model, and intervals over seeds."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from scipy import stats

from fedcso.problem import Problem
from fedcso.tree import Tree, leaves, stack

HIGHER_IS_BETTER = frozenset({"accuracy", "average_precision", "auroc"})
"""Metrics to be maximised; all others are losses or errors."""


def is_better(metric: str, value: float, earlier: Sequence[float]) -> bool:
    """True if a value is finite and beats all earlier ones."""
    sign = 1 if metric in HIGHER_IS_BETTER else -1
    return math.isfinite(value) and all(sign * value > sign * e for e in earlier if math.isfinite(e))


def evaluate(
    problem: Problem, models: Sequence[Tree], test: Any, clients: Sequence[Any], weights: Sequence[float]
) -> list[dict[str, float]]:
    """The metrics of each model: what the problem measures on test data, and F and ‖∇F‖ where known."""
    if problem.broadcasts and len(models) > 1:
        joint = _measure(problem, stack(models), test, clients, weights)
        columns = {name: torch.as_tensor(values).expand(len(models)).tolist() for name, values in joint.items()}
        return [{name: column[i] for name, column in columns.items()} for i in range(len(models))]
    return [
        {name: float(value) for name, value in _measure(problem, x, test, clients, weights).items()} for x in models
    ]


def _measure(problem: Problem, x: Tree, test: Any, clients: Sequence[Any], weights: Sequence[float]) -> dict[str, Any]:
    metrics: dict[str, Any] = {}
    with torch.no_grad():
        truth = problem.exact(x, clients, weights)
        if truth is not None:
            value, gradient = truth
            lead = torch.as_tensor(value).ndim
            metrics["loss"] = value
            metrics["gradient_norm"] = norm(gradient, lead)
        metrics |= problem.evaluate(x, test)
    return metrics


def norm(tree: Tree, lead: int = 0) -> torch.Tensor:
    """Euclidean norm of all leaves together, for each index of their leading axes."""
    squares = [leaf.flatten(lead).square().sum(-1) if leaf.ndim > lead else leaf.square() for leaf in leaves(tree)]
    return torch.stack(squares).sum(0).sqrt()


def mean_and_interval(values: Sequence[float], level: float = 0.95) -> tuple[float, float]:
    """Mean over seeds and the half-width of its Student-t confidence interval; nan for fewer than two."""
    n = len(values)
    mean = math.fsum(values) / n
    if n < 2:
        return mean, math.nan
    variance = math.fsum((v - mean) * (v - mean) for v in values) / (n - 1)
    return mean, float(stats.t.ppf(0.5 + level / 2, n - 1)) * math.sqrt(variance / n)
