"""Which model of a run is chosen: validation data choose, or without them the training objective; test data never do.

A run keeps three models: the last iterate, the chosen (“best”) iterate, and the iterate at a uniformly random step,
of which the theorems speak. The chosen one is what is exported, what clients measure at the end, and what
precision-recall curves are drawn of.

The chosen iterate of a run is, among the iterates that were evaluated, the one with the best value of the deciding
metric, the first of equals. While that value is undefined (nan), the newest iterate counts. The deciding metric is

1. the judge's `select`, measured on validation data, where the task has validation data;
2. F, where the problem knows it exactly;
3. the training loss.

The exported model of a method is the chosen iterate of one of its seeds: where validation data decide, the seed whose
chosen iterate has the best value, the first of equals; otherwise the first seed.

All of this follows from the rows of evaluations, so reports made from files speak of the same models.
"""

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any

from fedcso.core.evaluation import OBJECTIVE
from fedcso.core.metric import DeclaredMetrics, Metric
from fedcso.core.task import Task
from fedcso.engines.server import TRAIN_LOSS

Row = dict[str, Any]
"""One evaluation."""


def deciding_metric(task: Task) -> Metric:
    """Return the metric that decides which iterate is chosen."""
    if task.validates:
        return task.judge.metric(str(task.judge.select)).on_validation()
    return TRAIN_LOSS if task.problem.exact is None else OBJECTIVE


def prefers(metric: Metric, value: float, chosen: float) -> bool:
    """True if an iterate with this value of the deciding metric is chosen instead of the one chosen so far."""
    return not math.isfinite(chosen) or metric.is_better(value, chosen)


def choose(rows: Sequence[Row], metric: Metric) -> Row | None:
    """Return the evaluation of the chosen iterate; None if the deciding metric was never recorded."""
    chosen, best = None, math.nan
    for row in rows:
        if row.get(metric.name) in (None, ""):  # evaluated by a version that did not measure it
            continue
        value = float(row[metric.name])
        if prefers(metric, value, best):
            chosen, best = row, value
    return chosen


def choose_by_seed(rows: Sequence[Row], declared: DeclaredMetrics) -> dict[str, dict[Any, Row]]:
    """Return by method and seed the evaluation of the chosen iterate, of rows that name both."""
    if not declared.deciding:
        return {}
    runs: dict[tuple[str, Any], list[Row]] = {}
    for row in rows:
        runs.setdefault((row["algorithm"], row["seed"]), []).append(row)
    found: dict[str, dict[Any, Row]] = {}
    for (name, seed), own in runs.items():
        if chosen := choose(own, declared[declared.deciding]):
            found.setdefault(name, {})[seed] = chosen
    return found


def choose_exported(rows: Sequence[Row], declared: DeclaredMetrics) -> dict[str, Row]:
    """Return by method the evaluation of the model that is exported; its `seed` says which run it belongs to."""

    def better(one: Row, other: Row) -> Row:
        before, value = (float(row[declared.deciding]) for row in (one, other))
        wins = declared.validated and declared[declared.deciding].is_better(value, before)
        return other if wins else one

    return {name: reduce(better, by_seed.values()) for name, by_seed in choose_by_seed(rows, declared).items()}
