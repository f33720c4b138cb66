"""Evaluate models: the exact objective where it is known, and the judge's metrics on test and validation data."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch

from fedcso.core.errors import FedcsoError
from fedcso.core.judge import ByClient
from fedcso.core.metric import Metric
from fedcso.core.task import Task
from fedcso.core.tree import Tree, norm, stack

OBJECTIVE = Metric("loss", "loss F(x)", higher_is_better=False)
GRADIENT_NORM = Metric("gradient_norm", "true gradient norm ‖∇F(x)‖", higher_is_better=False, log=True)


def declare_metrics(task: Task) -> list[Metric]:
    """Return the metrics that `evaluate` measures for a task, in the order in which reports show them."""
    judged = task.judge.metrics
    shown: list[Metric] = []
    if task.test is not None:
        shown += [metric.on_test() for metric in judged]
    if isinstance(task.test, ByClient):
        shown += [metric.over_clients() for metric in judged if metric.curve]
    if task.problem.exact is not None:
        shown += [OBJECTIVE, GRADIENT_NORM]
    if task.validation is None:
        return shown
    # On validation data, only the metric that models are chosen by is shown; the others are recorded.
    validated = [metric if metric.name == task.judge.select else metric.hidden() for metric in judged]
    if isinstance(task.validation, ByClient):
        validated += [metric.over_clients().hidden() for metric in judged if metric.curve]
    return shown + [metric.on_validation() for metric in validated]


def evaluate(task: Task, models: Sequence[Tree], weights: Sequence[float]) -> list[dict[str, float]]:
    """Return the metrics of each model; `weights` are those of `task.seen`.

    They are F and ‖∇F‖ if the problem knows them exactly, and the judge's metrics on test and on validation data.
    """
    exact = _for_each(partial(_measure_exactly, task, weights), models, task.problem.broadcasts)
    tested = _for_each(lambda x: task.judge.measure(x, task.test), models, task.judge.broadcasts)
    validated = evaluate_validation(task, models)
    return [merge_metrics(*parts) for parts in zip(exact, tested, validated, strict=True)]


def evaluate_validation(task: Task, models: Sequence[Tree]) -> list[dict[str, float]]:
    """Return the judge's metrics of each model on validation data."""
    measured = _for_each(lambda x: task.judge.measure(x, task.validation), models, task.judge.broadcasts)
    return [{task.judge.metric(name).on_validation().name: value for name, value in one.items()} for one in measured]


def merge_metrics(*parts: Mapping[str, float]) -> dict[str, float]:
    """Merge the parts of an evaluation; raise `FedcsoError` if two of them use the same name."""
    whole: dict[str, float] = {}
    for part in parts:
        if common := whole.keys() & part.keys():
            raise FedcsoError(
                f"two metrics are called {min(common)!r}: rename the one that the judge's evaluate returns"
            )
        whole |= part
    return whole


def _for_each(
    measure: Callable[[Tree], dict[str, Any]], models: Sequence[Tree], broadcasts: bool
) -> list[dict[str, float]]:
    """Measure several models, in one call if `measure` broadcasts over leading axes."""
    with torch.no_grad():
        if not broadcasts or len(models) == 1:
            return [{name: float(value) for name, value in measure(x).items()} for x in models]
        joint = measure(stack(models))
    columns = {name: torch.as_tensor(values).expand(len(models)).tolist() for name, values in joint.items()}
    return [{name: column[i] for name, column in columns.items()} for i in range(len(models))]


def _measure_exactly(task: Task, weights: Sequence[float], x: Tree) -> dict[str, Any]:
    if task.problem.exact is None:
        return {}
    value, gradient = task.problem.exact(x, *_merge_same(task.seen, weights))
    return {OBJECTIVE.name: value, GRADIENT_NORM.name: norm(gradient, torch.as_tensor(value).ndim)}


def _merge_same(clients: Sequence[Any], weights: Sequence[float]) -> tuple[list[Any], list[float]]:
    """Return different clients only: those whose data are the same object count as one, with their weights added."""
    held, total = {}, dict[int, float]()
    for data, weight in zip(list(clients), weights, strict=True):
        held[id(data)] = data
        total[id(data)] = total.get(id(data), 0.0) + weight
    return list(held.values()), list(total.values())
