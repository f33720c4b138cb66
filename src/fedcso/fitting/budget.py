"""How much a search tries within some minutes.

The amount of work follows from a fixed model of costs, not from a clock, so the same seed gives the same result:

    seconds of a step = OVERHEAD + 3 · flops · examples · sites / SPEED

(forward and backward pass are three forward passes). OVERHEAD and SPEED are those of two ordinary cores. On a slower
machine the search is cut off by its limit instead, and says so.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from fedcso.core.errors import require_positive
from fedcso.datasets.tables.sites import Sites
from fedcso.fitting.objectives import OBJECTIVES, OTHERS, POSITIVES, RATES
from fedcso.problems.site_tasks import build_scores

OVERHEAD = 5e-4
SPEED = 3e10

LEAST_STEPS, MOST_STEPS = 100, 1000
"""The steps of the longest runs. More than the most rarely help: small data are overfitted before."""

SEARCHING = 0.6
"""The share of the time for the search; the rest is for what it is compared with, the page and the export."""


@dataclass(frozen=True)
class Budget:
    """The size of a search."""

    steps: int
    """T, the steps of the longest runs."""
    rates: tuple[float, ...]
    """The learning rates that are tried first."""
    seeds: tuple[int, int, int]
    """The number of seeds in each rung."""
    finer: bool
    """True to try learning rates around the best one."""
    decays: tuple[float, ...]
    """The weight decays that are tried in the second rung."""
    seconds: float
    """The limit of the search, in seconds of computing."""

    def run_steps(self, nets: int) -> float:
        """Return the number of steps of all runs, as a multiple of T."""
        groups = len(OBJECTIVES) * nets
        around = (3, 2) if self.finer else (1, 1)
        first = groups * len(self.rates) * self.seeds[0] / 4
        second = (groups / 3 + 1) * around[0] * len(self.decays) * self.seeds[1] / 2
        return first + second + 3 * around[1] * self.seeds[2]


THOROUGH = Budget(MOST_STEPS, RATES, (1, 2, 3), True, (0.0, 1e-3), 0.0)
LEAN = Budget(MOST_STEPS, (0.3, 1.0), (1, 1, 1), False, (0.0, 1e-3), 0.0)


def plan_search(minutes: float, sites: Sites, nets: Sequence[str]) -> Budget:
    """Return the size of the search that fits into some minutes: thorough if possible, else lean."""
    require_positive("minutes", minutes)
    limit = 60 * minutes * SEARCHING
    cost = max(seconds_per_step(sites, net) for net in nets)
    for size in (THOROUGH, LEAN):
        steps = int(limit / cost / size.run_steps(len(nets)))
        if steps >= MOST_STEPS // 2:
            break
    return replace(size, steps=min(max(steps, LEAST_STEPS), MOST_STEPS), seconds=limit)


def seconds_per_step(sites: Sites, net: str) -> float:
    """Return the estimated seconds of one step of all sites."""
    shape = sites.train[0].inputs.shape[1:]
    flops = count_flops(build_scores(net, sites).network.module, torch.zeros(1, *shape))
    return OVERHEAD + 3 * flops * (POSITIVES + OTHERS) * len(sites.train) / SPEED


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
