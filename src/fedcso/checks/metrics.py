"""What the judge measures: names, directions, ranges."""

import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

import torch

from fedcso.checks.finding import Finding, remark
from fedcso.checks.randomness import find_other_sources
from fedcso.checks.specimen import Specimen
from fedcso.core.judge import ByClient, Judge
from fedcso.core.metric import Metric

HIGHER = frozenset({"accuracy", "auc", "auprc", "auroc", "ap", "precision", "recall", "f1", "r2", "hits", "likelihood"})
LOWER = frozenset({"loss", "error", "mse", "mae", "rmse", "distance", "regret", "perplexity", "risk"})
"""Words in the names of metrics that say which direction is better."""


def find_in_metrics(specimen: Specimen) -> Iterator[Finding]:
    """Check what the judge returns for x_0 against what it declares."""
    task = specimen.task
    judge = task.judge
    held_out = {name: _whole(data) for name, data in (("test", task.test), ("validation", task.validation))}
    held_out = {name: data for name, data in held_out.items() if data is not None}
    if not held_out:
        if judge.metrics:
            yield remark(
                "the task has no test and no validation data, so nothing is measured: give it some, Task(…, test=…)"
            )
        return
    for name, data in held_out.items():
        found: Any = judge.evaluate(specimen.x, data)  # whatever a user's function returns
        if not isinstance(found, dict):
            yield Finding(f"evaluate returns a {type(found).__name__} where a dict of metrics by name is needed")
            return
        yield from _compare(judge, found, f"on the {name} data")
        yield from find_other_sources("evaluate", lambda data=data: judge.evaluate(specimen.x, data), draws=False)  # type: ignore[misc]
    if task.validation is not None and judge.select is None:
        yield Finding(
            "there are validation data, but no metric to choose models by: declare one with its direction, as in "
            f"Judge(…, metrics=[Metric({next(iter(found), 'accuracy')!r}, higher_is_better=True)])"
        )


def _compare(judge: Judge, found: dict[str, Any], where: str) -> Iterator[Finding]:
    """Check the metrics that `evaluate` returned."""
    for name in (metric.name for metric in judge.metrics if metric.name not in found):
        close = get_close_matches(name, found, n=1)
        instead = f"did you mean {close[0]!r}?" if close else "use the same name in both"
        yield Finding(f"the judge declares {name!r}, but evaluate returns {', '.join(found) or 'nothing'}: {instead}")
    for name, value in found.items():
        yield from _compare_one(judge.metric(name), value, where)
    undeclared = [name for name in found if name not in {metric.name for metric in judge.metrics}]
    if undeclared:
        yield remark(
            f"{', '.join(undeclared)} can't choose models, because evaluate returns it undeclared: add a Metric"
        )


def _compare_one(metric: Metric, value: Any, where: str) -> Iterator[Finding]:
    try:
        number = float(torch.as_tensor(value))
    except (RuntimeError, TypeError, ValueError):
        yield Finding(f"{metric.name} is not a single number {where}: return a number for each metric")
        return
    if metric.share and not -1e-6 <= number <= 1 + 1e-6:
        yield Finding(
            f"{metric.name} = {number:.4g} {where}, but is declared as a share: leave out share=True, or divide"
        )
    words = set(re.split(r"[\W_]+", metric.name.lower()))
    usual = {True: words & HIGHER, False: words & LOWER}
    against = usual[not metric.higher_is_better] if metric.higher_is_better is not None else set()
    if against and not usual[bool(metric.higher_is_better)]:
        other = not metric.higher_is_better
        yield Finding(
            f"{metric.name} is declared with higher_is_better={metric.higher_is_better}, so the worst model would be "
            f"chosen: declare it with {other}, or rename it if it is no usual {min(against)}"
        )


def _whole(data: Any) -> Any:
    return data.whole if isinstance(data, ByClient) else data
