"""What is expected of a method: its stages, what it sends, and that engines agree on it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import torch

from fedcso.checks.finding import Check, Finding, remark
from fedcso.checks.randomness import find_other_sources
from fedcso.checks.running import apart_from_reference, resumes
from fedcso.checks.specimen import difference, tolerance
from fedcso.checks.stages import find_in_rounds
from fedcso.checks.trials import TASKS, Trial, trials_for
from fedcso.core.algorithm import Algorithm
from fedcso.core.streams import START, stream
from fedcso.core.task import Task
from fedcso.core.tree import leaves, named_leaves
from fedcso.engines import run, run_grid

ELEMENTWISE = (
    "write each stage as elementwise arithmetic on pytrees (fedcso.core.tree) and calls of the oracle: no norms, "
    "indices, or comparisons of single numbers, because leaves may have axes for settings and clients in front"
)


@dataclass(frozen=True)
class MethodSpecimen:
    """A method under examination."""

    make: Callable[[], Algorithm]
    on: Task | None = None
    """A task to try it on; by default two small ones that it accepts."""

    @cached_property
    def method(self) -> Algorithm:
        """The method with its settings."""
        return self.make()

    @cached_property
    def trials(self) -> list[Trial]:
        """Tasks that it accepts."""
        given = self.on
        return trials_for(self.method, TASKS if given is None else {"your task": lambda: given})


def find_in_settings(specimen: MethodSpecimen) -> Iterator[Finding]:
    """Check that the method is a frozen dataclass of settings, each with a default."""
    try:
        method = specimen.method
    except TypeError as error:
        yield Finding(f"it can't be made without settings ({error}): give every hyper-parameter a default")
        return
    parameters = getattr(method, "__dataclass_params__", None)
    if parameters is None or not parameters.frozen:
        yield Finding("it is no frozen dataclass, so settings could change during a run: use @dataclass(frozen=True)")


def find_refusals(specimen: MethodSpecimen) -> Iterator[Finding]:
    """Find tasks to try the method on."""
    if not specimen.trials:
        yield Finding(
            "its check refuses all problems that methods are tried on: name one that it accepts, as in `fedcso check "
            "my.py:Method --on my.py:task`, or let it accept more"
        )
    elif len(specimen.trials) == 1 and specimen.on is None:
        yield remark(f"it accepts only {specimen.trials[0].name} of the small problems, so it was tried on this one")


def find_in_stages(specimen: MethodSpecimen) -> Iterator[Finding]:
    """Go through a round, stage by stage."""
    for trial in specimen.trials:
        found = list(find_in_rounds(specimen.method, trial))
        yield from found
        if any(one.wrong for one in found):
            return


def find_standstill(specimen: MethodSpecimen) -> Iterator[Finding]:
    """Check that the model moves and stays finite."""
    for name, task, plan in specimen.trials:
        trace = run(specimen.method, task, plan, engine="reference")
        if not all(torch.isfinite(leaf).all() for leaf in leaves(trace.shared)):
            yield Finding(f"its state is not finite after {plan.rounds} rounds on {name}: look for a division by 0")
        elif difference(trace.last, task.starting_point(stream(0, START, 0))) == 0:
            yield Finding(f"x has not moved after {plan.rounds} rounds on {name}: return the new x in State(shared=…)")


def find_in_engines(specimen: MethodSpecimen) -> Iterator[Finding]:
    """Compare clients and settings in one pass with one after the other."""
    method = specimen.method
    if not method.stacks:
        yield remark("clients are never stacked in one pass, because it says so (stacks is False)")
        return
    for name, task, plan in specimen.trials:
        if (apart := apart_from_reference(method, task, plan)) > tolerance(task.problem.init(torch.Generator())):
            yield Finding(f"clients in one pass end {apart:.1%} away from one after the other on {name}: {ELEMENTWISE}")
            return
        settings = [method, scale(method, 0.5)]
        grid = run_grid(settings, task, plan, engine="stacked")
        for setting, (trace,) in zip(settings, grid, strict=True):
            alone = run(setting, task, plan, engine="reference")
            if (apart := difference(trace.shared, alone.shared)) > tolerance(alone.shared):
                yield Finding(
                    f"two settings in one pass end {apart:.1%} away from one after the other on {name}: {ELEMENTWISE}"
                )
                return


def find_in_resuming(specimen: MethodSpecimen) -> Iterator[Finding]:
    """Interrupt a run after its first round."""
    for name, task, plan in specimen.trials:
        if not resumes(specimen.method, task, plan):
            yield Finding(
                f"a run that is interrupted and resumed ends elsewhere on {name}: keep everything that the next round "
                "depends on in shared, local or kept, and nothing in the method itself"
            )


def find_in_draws(specimen: MethodSpecimen) -> Iterator[Finding]:
    """Run twice, with other global generators."""
    name, task, plan = specimen.trials[0]

    def short_run() -> Any:
        return run(specimen.method, task, plan, engine="reference").shared

    for found in find_other_sources(f"a run on {name}", short_run):
        yield Finding(f"{found.sentence.partition(':')[0]}: use the samples of the batch alone")


def find_what_travels(specimen: MethodSpecimen) -> Iterator[Finding]:
    """Say what a client sends."""
    name, task, plan = specimen.trials[0]
    trace = run(specimen.method, task, plan, engine="reference")
    messages = sum(trace.participation.values())
    kinds = ", ".join(dict.fromkeys(path.partition(".")[0] for path, _ in named_leaves(trace.shared)))
    yield remark(f"a client sends {kinds}: {trace.costs.bytes_up // messages} bytes a round on {name}")


def scale(method: Algorithm, factor: float) -> Algorithm:
    """Return a method with all its real hyper-parameters scaled, also those of a method inside."""

    def scaled(value: Any) -> Any:
        return scale(value, factor) if isinstance(value, Algorithm) else value * factor

    given = {field.name: getattr(method, field.name) for field in fields(method)}  # type: ignore[arg-type]
    changed = {name: scaled(value) for name, value in given.items() if isinstance(value, float | Algorithm)}
    return replace(method, **changed)  # type: ignore[type-var]


METHOD_CHECKS: tuple[Check[MethodSpecimen], ...] = (
    Check("settings", "it is a frozen dataclass whose settings have defaults", find_in_settings),
    Check("problems", "it accepts small problems to be tried on", find_refusals, ["settings"]),
    Check("stages", "each stage of a round returns what the next one expects", find_in_stages, ["problems"]),
    Check("progress", "x moves and stays finite", find_standstill, ["stages"]),
    Check("messages", "what is sent is counted", find_what_travels, ["stages"]),
    Check("random numbers", "a run draws nothing but its samples", find_in_draws, ["stages"]),
    Check("engines", "clients and settings in one pass and one after the other agree", find_in_engines, ["stages"]),
    Check("resume", "an interrupted run goes on to the same bits", find_in_resuming, ["random numbers"]),
)
"""In the order in which they are carried out."""
