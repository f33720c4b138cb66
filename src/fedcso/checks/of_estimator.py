"""What is expected of an estimator: its losses, its samples, and how its bias falls with m."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import torch

from fedcso.algorithms.fcsg import FCSG
from fedcso.checks.finding import Check, Finding, remark
from fedcso.checks.randomness import find_other_sources
from fedcso.checks.running import apart_from_reference
from fedcso.checks.trials import TASKS, KnownBias
from fedcso.core.errors import FedcsoError
from fedcso.core.estimator import Drawn, Estimator
from fedcso.core.oracle import Oracle
from fedcso.core.plan import Plan
from fedcso.core.problem import split_steps
from fedcso.core.streams import stream
from fedcso.core.task import Task
from fedcso.core.tree import leaves
from fedcso.engines import stacked
from fedcso.engines.job import Job

SIZES = (1, 2, 3, 4, 5, 6, 8, 16)
STEPS, OUTER = 2, 3
BATCHES, PER_BATCH = 20, 5000
"""For a mean with its standard error: many samples in a few batches."""
METHOD = FCSG(learning_rate=0.05)
"""The method that estimators are tried with."""
ERRORS = 4.0
"""Standard errors by which a mean may be off."""


@dataclass(frozen=True)
class EstimatorSpecimen:
    """An estimator under examination."""

    estimator: Estimator

    @cached_property
    def sizes(self) -> list[int]:
        """The inner batch sizes that it accepts."""
        return [m for m in SIZES if self._accepts(m)]

    def _accepts(self, m: int) -> bool:
        try:
            self.estimator.check(m)
        except FedcsoError:
            return False
        return True

    def draw(self, task: Task, seed: int = 0, outer: int = OUTER, m: int | None = None) -> Drawn:
        """Draw samples for two steps."""
        size = self.sizes[-1] if m is None else m
        return self.estimator.draw(task.problem, task.clients[0], stream(seed, 0, 0), STEPS, outer, size)


def find_sizes(specimen: EstimatorSpecimen) -> Iterator[Finding]:
    """Ask which m it accepts."""
    if not specimen.sizes:
        yield Finding(f"its check refuses every m of {', '.join(map(str, SIZES))}: let it accept one of them")
    elif specimen.sizes != list(SIZES):
        yield remark(
            f"of the inner batch sizes {', '.join(map(str, SIZES))} it accepts {', '.join(map(str, specimen.sizes))}"
        )


def find_in_draws(specimen: EstimatorSpecimen) -> Iterator[Finding]:
    """Check what is drawn, and what it counts."""
    for name in ("nested_quadratic", "classification"):
        task = TASKS[name]()
        drawn: Any = specimen.draw(task)  # whatever a user's function returns
        if not isinstance(drawn, Drawn):
            yield Finding(f"draw returns a {type(drawn).__name__}: return fedcso.core.estimator.Drawn(batch, costs)")
            return
        for leaf in leaves(drawn.batch):
            if leaf.shape[:1] != (STEPS,):
                yield Finding(
                    f"draw returns shape {tuple(leaf.shape)} for {STEPS} steps on {name}: the first axis of every "
                    "tensor in the batch is that of the steps"
                )
                return
        if drawn.costs.outer_samples <= 0:
            yield Finding(f"draw counts no outer samples on {name}: return Drawn(batch, Costs(outer_samples=…, …))")
        yield from find_other_sources("draw", lambda task=task: tuple(specimen.draw(task).batch))  # type: ignore[misc]


def find_in_losses(specimen: EstimatorSpecimen) -> Iterator[Finding]:
    """Check that losses and gradients are there and finite; the mean gradient is checked where it is known."""
    for name in ("nested_quadratic", "classification"):
        task = TASKS[name]()
        batch = split_steps(specimen.draw(task).batch, STEPS)[0]
        x = task.starting_point(stream(0, 0, 0))
        losses = specimen.estimator(task.problem, x, batch)
        if losses.ndim != 1:
            yield Finding(
                f"losses returns shape {tuple(losses.shape)} for {OUTER} outer samples on {name}: return one loss "
                "for each ξ"
            )
            return
        if not torch.isfinite(losses).all():
            yield Finding(f"losses are not finite on {name}: look for a division by 0")
            return
        gradient = Oracle(task.problem, specimen.estimator).grad(x, batch)
        if not all(torch.isfinite(leaf).all() for leaf in leaves(gradient)):
            yield Finding(f"the gradient of the losses is not finite on {name}: look for sqrt or a norm at 0")
        elif not any(leaf.any() for leaf in leaves(gradient)):
            yield Finding(f"the gradient of the losses is 0 on {name}: look for .detach() or torch.no_grad")


def find_linear_bias(specimen: EstimatorSpecimen) -> Iterator[Finding]:
    """Compare the mean gradient with the exact one for a linear f, where no mean over η can be biased."""
    for m in specimen.sizes[-2:]:
        found = measure_bias(specimen, 1, m)
        if abs(found.bias) > ERRORS * found.error + 1e-9:
            yield Finding(
                f"for a linear f the mean gradient is {1 + found.bias:.3g} ± {found.error:.2g} where it is exactly 1 "
                f"(m = {m}): the weights of its terms must sum to 1"
            )
            return


def find_bias_order(specimen: EstimatorSpecimen) -> Iterator[Finding]:
    """Compare how the bias falls from a small to a large m with the order that the estimator declares."""
    order = specimen.estimator.bias_order
    if order <= 0 or len(specimen.sizes) < 2:
        return
    small, large = specimen.sizes[-min(3, len(specimen.sizes))], specimen.sizes[-1]
    first, last = (measure_bias(specimen, 4, m) for m in (small, large))
    allowed = 2 * abs(first.bias) * (small / large) ** order + ERRORS * math.hypot(first.error, last.error)
    if abs(last.bias) > allowed:
        yield Finding(
            f"its bias falls from {abs(first.bias):.3g} at m = {small} to {abs(last.bias):.3g} at m = {large}, more "
            f"slowly than 1/m^{order}: declare a smaller bias_order, or correct the estimator"
        )


def find_in_engines(specimen: EstimatorSpecimen) -> Iterator[Finding]:
    """Compare clients in one pass with one after the other."""
    plan = Plan(rounds=2, local_steps=2, outer_batch=2, inner_batch=specimen.sizes[-1])
    for name in ("nested_quadratic", "classification"):
        task = TASKS[name]()
        if not stacked.possible(Job(METHOD, task, plan, estimator=specimen.estimator)):
            yield remark(
                f"clients run in threads on {name}, not stacked, because torch.func.vmap can't map it over clients"
            )
        elif (apart := apart_from_reference(METHOD, task, plan, specimen.estimator)) > 1e-6:
            yield Finding(
                f"clients in one pass end {apart:.1%} away from one after the other on {name}: use the batch alone"
            )


class Bias(NamedTuple):
    """The difference of a mean gradient from the exact one, and its standard error."""

    bias: float
    error: float


def measure_bias(specimen: EstimatorSpecimen, degree: int, m: int) -> Bias:
    """Measure the bias where the exact gradient is 1."""
    task = Task(KnownBias(degree), [None])
    oracle = Oracle(task.problem, specimen.estimator)
    found = []
    for seed in range(BATCHES):
        batches = split_steps(specimen.draw(task, seed, PER_BATCH // STEPS, m).batch, STEPS)
        found += [float(oracle.grad(torch.ones((), dtype=torch.float64), batch)) for batch in batches]
    values = torch.tensor(found, dtype=torch.float64)
    return Bias(float(values.mean()) - 1, float(values.std()) / math.sqrt(len(values)))


ESTIMATOR_CHECKS: tuple[Check[EstimatorSpecimen], ...] = (
    Check("inner batch sizes", "it accepts some", find_sizes),
    Check(
        "samples",
        "they come from the given generator, have an axis of steps, and are counted",
        find_in_draws,
        ["inner batch sizes"],
    ),
    Check("losses", "there is one for each ξ, with a finite gradient", find_in_losses, ["samples"]),
    Check("linear f", "the mean gradient is the exact one", find_linear_bias, ["losses"]),
    Check("bias order", "the bias falls with m as declared", find_bias_order, ["linear f"]),
    Check("engines", "clients in one pass and one after the other agree", find_in_engines, ["losses"]),
)
"""In the order in which they are carried out."""
