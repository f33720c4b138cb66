"""The diagnosis inside a run: bias and noise of the gradient estimate beside the other metrics.

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
from fedcso.theory.diagnosis import diagnose

BATCHES = 8
"""Outer samples of each client: enough to see a bias that matters, few enough not to cost much."""


BIAS = Metric("bias", "estimated bias ‖E∇F̂ − ∇F‖")
NOISE = Metric("noise", "noise of a round’s mean ∇F̂")
GRADIENT_ESTIMATE = Metric("gradient_estimate", "estimated ‖∇F(x)‖")
METRICS = (BIAS, BIAS.half_width(), NOISE, GRADIENT_ESTIMATE)
"""What a diagnosis adds to the evaluation's row; none of it tells a better model from a worse one."""


class Finding(NamedTuple):
    """What goes into the evaluation's row, and what it cost."""

    columns: dict[str, float]
    costs: Costs


def due(plan: Plan, done: int) -> bool:
    """Return whether there is to be a diagnosis after so many rounds."""
    return plan.diagnose_every > 0 and done % plan.diagnose_every == 0


def look(
    problem: Problem, x: Tree, data: Sequence[Any], weights: Sequence[float], plan: Plan, seed: int, done: int
) -> Finding:
    """Measure bias and noise of a round at x with the plan's m."""
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
    }
    return Finding(columns, found.costs)
