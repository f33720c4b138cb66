"""How much a search tries within some minutes.

The amount of work follows from a fixed model of costs, not from a clock, so the same seed gives the same result:

    seconds of a step         OVERHEAD + 3 · flops · examples · sites / SPEED
    seconds of an evaluation  validation rows · (flops / SPEED + RANKING)

(forward and backward pass are three forward passes). The constants are those of two ordinary cores. On a slower
machine the search is cut off by its limit instead, and says so.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import nn

from fedcso.core.errors import require_positive
from fedcso.datasets.tables.sites import Sites
from fedcso.fitting.objectives import OBJECTIVES, OTHERS, POSITIVES, RATES
from fedcso.fitting.thinning import choosing_share
from fedcso.fitting.train import EVALUATIONS
from fedcso.problems.site_tasks import build_scores

OVERHEAD = 5e-4
SPEED = 3e10
RANKING = 1e-6
"""Seconds to sort a row by its score and to measure average precision and AUROC."""

LEAST_STEPS, MOST_STEPS = 100, 1000
"""T, the steps of the last rung. Small data are overfitted before the most; the winner may be trained for longer."""

MUCH_CHEAPER = 4
"""If there is little time, networks are not tried whose steps cost so many times those of another one."""

SEARCHING = 0.6
"""The share of the time for the search; the rest is for what it is compared with, the page and the export."""


@dataclass(frozen=True)
class Cost:
    """The modelled seconds of a step of all sites, and of an evaluation on validation data."""

    step: float
    evaluation: float

    def of_run(self, steps: float, evaluations: int) -> float:
        """Return the seconds of a run."""
        return steps * self.step + evaluations * self.evaluation


class Rung(NamedTuple):
    """A stage of the search."""

    number: int
    name: str
    share: float
    """Of the T steps."""
    until: float
    """The share of the time after which no further setting is begun."""
    evaluations: int = EVALUATIONS
    """How often a run is evaluated on validation data."""


FIRST = Rung(0, "first", 1 / 4, 0.5, 5)
SECOND = Rung(1, "second", 1 / 2, 0.75)
LAST = Rung(2, "last", 1.0, 1.0)


@dataclass(frozen=True)
class Budget:
    """The size of a search."""

    steps: int
    """T, the steps of runs in the last rung."""
    objectives: tuple[str, ...]
    """The objectives that are tried, by name in `OBJECTIVES`."""
    rates: tuple[float, ...]
    """The learning rates that are tried first."""
    seeds: tuple[int, int, int]
    """The number of seeds in each rung."""
    finer: bool
    """True to try learning rates around the best one."""
    decays: tuple[float, ...]
    """The weight decays that are tried in the second rung; without any there is no second rung."""
    nets: tuple[str, ...] = ()
    """The networks that are tried."""
    cost: Cost = Cost(0.0, 0.0)
    """The most expensive network's."""
    seconds: float = 0.0
    """The limit of the search, in seconds of computing."""

    def runs(self) -> dict[Rung, float]:
        """Return how many runs each rung has."""
        groups = len(self.objectives) * len(self.nets)
        around = (3, 2) if self.finer else (1, 1)
        return {
            FIRST: groups * len(self.rates) * self.seeds[0],
            SECOND: (groups / 3 + 1) * around[0] * len(self.decays) * self.seeds[1],
            LAST: (3 if self.decays else 2) * around[1] * self.seeds[2],
        }

    def affordable_steps(self) -> int:
        """Return T so that all runs together take as long as the limit."""
        runs = self.runs()
        left = self.seconds - sum(number * self.cost.of_run(0, rung.evaluations) for rung, number in runs.items())
        return int(left / self.cost.step / sum(number * rung.share for rung, number in runs.items()))


EVERYTHING = tuple(OBJECTIVES)
THOROUGH = Budget(MOST_STEPS, EVERYTHING, RATES, (1, 2, 3), True, (0.0, 1e-3, 1e-2))
LEAN = Budget(MOST_STEPS, EVERYTHING, (0.3, 1.0), (1, 1, 1), False, (0.0, 1e-2))
BRIEF = Budget(MOST_STEPS, ("auprc", "joint", "balanced"), (0.3, 1.0), (1, 1, 1), False, ())


def plan_search(minutes: float, sites: Sites, nets: Sequence[str]) -> Budget:
    """Return the size of the search that fits into some minutes: fewer settings rather than very few steps."""
    require_positive("minutes", minutes)
    costs = {net: cost_of(sites, net) for net in nets}
    cheap = MUCH_CHEAPER * min(cost.step for cost in costs.values())
    for size in (THOROUGH, LEAN, BRIEF):
        tried = [net for net in nets if size is not BRIEF or costs[net].step < cheap]
        cost = max((costs[net] for net in tried), key=lambda one: one.step)
        size = replace(size, nets=tuple(tried), cost=cost, seconds=60 * minutes * SEARCHING)
        steps = size.affordable_steps()
        if steps >= MOST_STEPS // 2:
            break
    return replace(size, steps=min(max(steps, LEAST_STEPS), MOST_STEPS))


def cost_of(sites: Sites, net: str) -> Cost:
    """Return the modelled seconds of one step of all sites and of one evaluation."""
    shape = sites.train[0].inputs.shape[1:]
    flops = count_flops(build_scores(net, sites).network.module, torch.zeros(1, *shape))
    step = OVERHEAD + 3 * flops * (POSITIVES + OTHERS) * len(sites.train) / SPEED
    rows = choosing_share(sites.validation) * sum(len(part.labels) for part in sites.validation)
    return Cost(step, rows * (flops / SPEED + RANKING))


def count_flops(network: nn.Module, example: torch.Tensor) -> int:
    """Return the multiplications and additions of a forward pass, in layers that have a weight matrix or kernel."""
    total = 0

    def count(layer: nn.Module, inputs: Any, output: torch.Tensor) -> None:
        nonlocal total
        weight = getattr(layer, "weight", None)
        if isinstance(weight, torch.Tensor) and weight.ndim > 1:  # each output is a product with one row or kernel
            total += 2 * output.numel() * weight[0].numel()

    handles = [layer.register_forward_hook(count) for layer in network.modules()]
    try:
        with torch.no_grad():
            network(example)
    finally:
        for handle in handles:
            handle.remove()
    return total
