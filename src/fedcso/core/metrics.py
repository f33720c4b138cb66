"""Numbers to report: evaluation of a model, and intervals over seeds."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch

from fedcso.core.judge import Judge
from fedcso.core.task import Task
from fedcso.core.tree import Tree, norm, stack

HIGHER_IS_BETTER = frozenset({"accuracy", "average_precision", "auroc"})
"""Metrics to be maximised; all others are losses or errors."""


AT_CLIENTS = "client_"
"""Before a metric's name: its mean over what the clients measure at home."""

INTERVAL = "_interval"
"""The half-width of a metric's own interval (over test tasks, say) has the metric's name with this behind it."""

CHANCE = {"average_precision": "prevalence"}
"""What a random model gets, where a problem reports it: by metric, the name of the other one."""

DIAGNOSTIC = frozenset({"saturated"})
"""Recorded to explain what went wrong, not to be shown as a result."""

ASIDE = DIAGNOSTIC | set(CHANCE.values())
"""Metrics without a curve or a mean over clients of their own."""


class ByClient(NamedTuple):
    """Held-out data as a whole, and what each client measures at home."""

    whole: Any
    clients: Sequence[Any]
    names: Sequence[str] = ()
    """Who they are, if not the clients that train, in their order."""


def is_better(metric: str, value: float, earlier: Sequence[float]) -> bool:
    """True if a value is finite and beats all earlier ones."""
    sign = 1 if metric.removeprefix(AT_CLIENTS) in HIGHER_IS_BETTER else -1
    return math.isfinite(value) and all(sign * value > sign * e for e in earlier if math.isfinite(e))


def evaluate(task: Task, models: Sequence[Tree], weights: Sequence[float]) -> list[dict[str, float]]:
    """Return the metrics of each model: F and ‖∇F‖ where they are known, and what the judge measures on test data."""
    exact = _for_each(partial(_measure_exactly, task, weights), models, task.problem.broadcasts)
    judged = _for_each(partial(_judge, task), models, task.judge.broadcasts)
    return [known | measured for known, measured in zip(exact, judged, strict=True)]


def _for_each(
    measure: Callable[[Tree], dict[str, Any]], models: Sequence[Tree], broadcasts: bool
) -> list[dict[str, float]]:
    """Measure several models, all at once if that is possible."""
    with torch.no_grad():
        if not broadcasts or len(models) == 1:
            return [{name: float(value) for name, value in measure(x).items()} for x in models]
        joint = measure(stack(models))
    columns = {name: torch.as_tensor(values).expand(len(models)).tolist() for name, values in joint.items()}
    return [{name: column[i] for name, column in columns.items()} for i in range(len(models))]


def _measure_exactly(task: Task, weights: Sequence[float], x: Tree) -> dict[str, Any]:
    if task.problem.exact is None:
        return {}
    value, gradient = task.problem.exact(x, task.clients, weights)
    return {"loss": value, "gradient_norm": norm(gradient, torch.as_tensor(value).ndim)}


def _judge(task: Task, x: Tree) -> dict[str, Any]:
    if not isinstance(task.test, ByClient):
        return task.judge.measure(x, task.test)
    return task.judge.measure(x, task.test.whole) | mean_over_clients(at_clients(task.judge, x, task.test))


def at_clients(judge: Judge, x: Tree, test: ByClient) -> list[dict[str, Any]]:
    """Return the metrics of one model at each client."""
    with torch.no_grad():
        measured = [judge.measure(x, data) for data in test.clients]
    return [{name: value for name, value in m.items() if not name.endswith(INTERVAL)} for m in measured]


def mean_over_clients(measured: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """`client_…`: every client counts alike, and one for whom a metric is undefined (nan) is left out of it."""
    names = dict.fromkeys(name for metrics in measured for name in metrics if name not in ASIDE)
    return {
        f"{AT_CLIENTS}{name}": torch.stack(
            [torch.as_tensor(m[name], dtype=torch.float64) for m in measured if name in m]
        ).nanmean(0)
        for name in names
    }


def mean_and_interval(values: Sequence[float], level: float = 0.95) -> tuple[float, float]:
    """Mean over seeds and the half-width of its Student-t confidence interval; nan for fewer than two."""
    n = len(values)
    mean = math.fsum(values) / n
    if n < 2:
        return mean, math.nan
    from scipy import stats  # here, for it takes long to load and a site's client never needs it

    variance = math.fsum((v - mean) * (v - mean) for v in values) / (n - 1)
    return mean, float(stats.t.ppf(0.5 + level / 2, n - 1)) * math.sqrt(variance / n)
