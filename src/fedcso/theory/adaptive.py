"""The diagnosis inside a run: bias and noise beside the other metrics, and a larger m where the bias misleads.

It looks at the model between rounds, with samples of its own (which cost, and are counted) from the clients of the
round to come, and leaves the run itself as it was.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from fedcso.core.costs import Costs
from fedcso.core.metric import Metric
from fedcso.core.plan import Plan
from fedcso.core.problem import Problem
from fedcso.core.tree import Tree
from fedcso.theory.diagnosis import Diagnosis, diagnose

BATCHES = 8
"""Outer samples of each client: enough to see a bias that matters, few enough not to cost much."""


BIAS = Metric("bias", "estimated bias ‖E∇F̂ − ∇F‖")
NOISE = Metric("noise", "noise of a round’s mean ∇F̂")
GRADIENT_ESTIMATE = Metric("gradient_estimate", "estimated ‖∇F(x)‖")
INNER_BATCH = Metric("inner_batch", "inner batch m")
METRICS = (BIAS, BIAS.half_width(), NOISE, GRADIENT_ESTIMATE, INNER_BATCH)
"""What a diagnosis adds to the evaluation's row; none of it tells a better model from a worse one."""


class Finding(NamedTuple):
    """What goes into the evaluation's row, and what it cost."""

    columns: dict[str, float]
    costs: Costs


def due(plan: Plan, done: int) -> bool:
    """True if there is to be a diagnosis after so many rounds."""
    return plan.diagnose_every > 0 and done % plan.diagnose_every == 0


def look(
    problem: Problem, x: Tree, data: Sequence[Any], weights: Sequence[float], plan: Plan, seed: int, done: int
) -> Finding:
    """Bias and noise of a round at x with the plan's m, and the m for the rounds to come."""
    found = diagnose(
        problem,
        x,
        data,
        [plan.inner_batch],
        samples=BATCHES * len(data),
        batches=BATCHES,
        averaged=len(data) * plan.outer_batch * plan.local_steps,
        weights=weights,
        seed=seed,
        round=done,
    )
    (size,) = found.sizes
    columns = {
        BIAS.name: size.bias.value,
        BIAS.half_width().name: (size.bias.high - size.bias.low) / 2,
        NOISE.name: found.noise(size),
        GRADIENT_ESTIMATE.name: found.gradient.value,
        INNER_BATCH.name: next_inner_batch(plan, found),
    }
    return Finding(columns, found.costs)


def next_inner_batch(plan: Plan, found: Diagnosis) -> int:
    """Twice m, if the plan allows it and the bias misleads; else m."""
    (size,) = found.sizes
    if plan.inner_batch_most is None or not found.bias_misleads(size):
        return plan.inner_batch
    return min(plan.inner_batch_most, 2 * size.m)
