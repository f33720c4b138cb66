"""Choose the estimator of a run by a look at its start (`--estimator auto`).

    error of a round = √( bias² + noise² ),      noise: that of the mean of the round's N·b·q estimates

Bias and noise of each candidate are measured at x_0 with the plan's m, all on the same samples. The rule:

- `plain` where no other can be used, where there is nothing to gain (no inner samples, or a linear f), or where the
  look would cost more than a fixed share of the run's inner samples;
- `extrapolated`, unless another candidate has an error that is more than a tenth smaller: then that one.

Extrapolation is preferred because it costs nothing where x_0 shows no difference: many problems start at x = 0, where g
does not depend on η yet and no estimator is biased. `fedcso reproduce bias` measures how good the choice is. Not among
the candidates are `independent_jacobian`, which diverges on some problems in a way that x_0 does not show, and the
multilevel estimators, which draw other numbers of samples.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from fedcso.core.costs import Costs
from fedcso.core.errors import FedcsoError
from fedcso.core.estimator import Estimator
from fedcso.core.plan import Plan
from fedcso.core.problem import Problem
from fedcso.core.streams import stream
from fedcso.core.tree import Tree
from fedcso.estimators import ESTIMATORS
from fedcso.theory.diagnosis import diagnose

PREFERRED = "extrapolated"
CANDIDATES = ("plain", PREFERRED, "three_level")
CLEARLY_SMALLER = 0.9
MOST_SHARE = 0.05
"""The largest part of a run's inner samples that the look may cost."""
BATCHES = 16
MOST_EACH = 4
"""Outer samples of a client in each batch, if the share allows as many."""


class Error(NamedTuple):
    """What is wrong with the mean gradient of a round."""

    bias: float
    noise: float

    @property
    def size(self) -> float:
        """√(bias² + noise²)."""
        return math.hypot(self.bias, self.noise)


class Choice(NamedTuple):
    """An estimator, why it was chosen, and what the look cost."""

    estimator: str
    reason: str
    costs: Costs = Costs()

    def __str__(self) -> str:
        return f"{self.estimator}, because {self.reason}"


def choose_estimator(
    problem: Problem, x: Tree, clients: Sequence[Any], plan: Plan, weights: Sequence[float], seed: int = 0
) -> Choice:
    """Choose the estimator of a run that starts at x; the clients are those of its first round, with their weights."""
    m, b, q = plan.inner_batch, plan.outer_batch, plan.local_steps
    if not problem.inner_samples(1, m):
        return Choice("plain", "the problem has no inner samples")
    if problem.outer_degree == 1:
        return Choice("plain", "f is linear, so no estimator is biased")
    usable, refusals = _usable(problem, clients[0], m)
    if PREFERRED not in usable:
        return Choice("plain", f"others can't be used: {refusals[PREFERRED]}")
    whole = plan.rounds * q * len(clients) * problem.inner_samples(b, m)
    each = _outer_samples(problem, m, MOST_SHARE * whole / (BATCHES * len(clients)))
    if not each:
        return Choice("plain", f"the run is so short that a look would cost more than {MOST_SHARE:.0%} of its samples")
    found = {
        name: diagnose(
            problem,
            x,
            clients,
            [m],
            samples=each * BATCHES * len(clients),
            batches=BATCHES,
            averaged=len(clients) * b * q,
            weights=weights,
            seed=seed,
            estimator=estimator,
        )
        for name, estimator in usable.items()
    }
    errors = {name: Error(one.sizes[0].bias.value, one.noise(one.sizes[0])) for name, one in found.items()}
    total = sum((one.costs for one in found.values()), Costs())
    drawn = found["plain"].costs  # all candidates look at the same samples, which count once
    costs = replace(total, outer_samples=drawn.outer_samples, inner_samples=drawn.inner_samples)
    spent = f"the look cost {costs.inner_samples:,} inner samples, {costs.inner_samples / whole:.1%} of a run's"
    return Choice(by_rule(errors), f"{_told(errors)}; {spent}", costs)


def by_rule(errors: Mapping[str, Error]) -> str:
    """Return the preferred estimator, or another one with a clearly smaller error."""
    best = min(errors, key=lambda name: errors[name].size)
    return best if errors[best].size < CLEARLY_SMALLER * errors[PREFERRED].size else PREFERRED


def _usable(problem: Problem, data: Any, m: int) -> tuple[dict[str, Estimator], dict[str, str]]:
    """Return the candidates that can be used with this problem and m, and why the others can't."""
    usable, refusals = {}, {}
    for name in CANDIDATES:
        try:
            ESTIMATORS[name].check(m)
            ESTIMATORS[name].draw(problem, data, stream(0, 0, 0), 1, 1, m)
        except FedcsoError as reason:
            refusals[name] = str(reason)
        else:
            usable[name] = ESTIMATORS[name]
    return usable, refusals


def _outer_samples(problem: Problem, m: int, allowed: float) -> int:
    """Return how many outer samples with 2m inner samples each are allowed in a batch of a client."""
    return max((each for each in range(1, MOST_EACH + 1) if problem.inner_samples(each, 2 * m) <= allowed), default=0)


def _told(errors: Mapping[str, Error]) -> str:
    each = [f"{name} {one.size:.3g} (bias {one.bias:.2g}, noise {one.noise:.2g})" for name, one in errors.items()]
    return f"the error of a round at x_0 is {', '.join(each)}"
