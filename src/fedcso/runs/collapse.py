"""Detect runs that collapse: they improve, then lose what they had gained."""

from collections.abc import Sequence
from typing import Any

from fedcso.core.metric import DeclaredMetrics

LEARNT = 0.05
"""A metric must first have improved by this much."""

LOST = 0.5
"""A run has collapsed when it keeps less than this share of its best improvement."""


def collapse(rows: Sequence[dict[str, Any]], declared: DeclaredMetrics) -> str | None:
    """Say what happened in the evaluations of one run so far; None unless it has collapsed.

    Looks at the metric by which models are chosen: on validation data where they decide, else on test data. It must
    be a share, because only of that it is known how much is a lot. The first evaluation that shows it is told.
    """
    name = declared.deciding if declared.validated else declared.headline
    # The first evaluations of a run that an earlier version started have no metrics on validation data.
    evaluated = [row for row in rows if row.get(name) not in (None, "")]
    if not evaluated or not (metric := declared[name]).share or metric.higher_is_better is None:
        return None
    sign = 1 if metric.higher_is_better else -1
    start = best = evaluated[0]
    for row in evaluated:
        value, before, first = (sign * float(one[metric.name]) for one in (row, best, start))
        if value > before:
            best, before = row, value
        gained = before - first
        if gained > LEARNT and value < first + LOST * gained:
            return (
                f"collapsed: {metric.name} was {float(best[metric.name]):.4f} after round {best['round']} and is "
                f"{float(row[metric.name]):.4f} after round {row['round']}; {_cause(row, declared)}"
            )
    return None


def _cause(row: dict[str, Any], declared: DeclaredMetrics) -> str:
    for metric in declared.metrics:
        value = float(row.get(metric.name) or 0.0)
        if metric.symptom and value > metric.symptom.above:
            return f"{value:.0%} {metric.symptom.says}"
    return "try a smaller learning rate, a decreasing one (cosine), or --clip"
