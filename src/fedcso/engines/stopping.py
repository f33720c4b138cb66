"""Rules of a plan that end a run before its last round; they follow from the rows of evaluations alone."""

from collections.abc import Sequence
from typing import Any

from fedcso.core.metric import Metric
from fedcso.core.plan import Plan
from fedcso.engines.choice import choose

MEAN_GRADIENT_NORM = Metric("mean_gradient_norm", "root mean ‖∇F(x)‖² so far", higher_is_better=False)
"""The root of the mean of ‖∇F(x̄)‖² over the evaluations so far, which the theorems bound."""


def is_small_enough(plan: Plan, rows: Sequence[dict[str, Any]]) -> bool:
    """Return whether a run has reached the plan's ε."""
    last = rows[-1].get(MEAN_GRADIENT_NORM.name, "")
    return last != "" and float(last) <= plan.epsilon


def is_exhausted(plan: Plan, rows: Sequence[dict[str, Any]], deciding: Metric) -> bool:
    """Return whether the plan's patience is over: so many evaluations have followed that of the chosen model."""
    if not plan.patience:
        return False
    chosen = choose(rows, deciding)
    return chosen is not None and sum(row["round"] > chosen["round"] for row in rows) >= plan.patience
