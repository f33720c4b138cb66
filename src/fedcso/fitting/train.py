"""Train an objective with a network and several learning rates: on all sites, on pooled data, or at one site."""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

import torch

from fedcso.core.judge import Network
from fedcso.core.plan import Plan
from fedcso.core.task import Task
from fedcso.core.trace import Trace
from fedcso.core.tree import Tree
from fedcso.datasets.tables.sites import Sites
from fedcso.engines.choice import choose, deciding_metric
from fedcso.fitting.objectives import OBJECTIVES, RATES, Objective
from fedcso.fitting.thinning import choosing_rows
from fedcso.problems.site_tasks import build_scores, make_site_task
from fedcso.runs.study import Results, Unit, seconds

LOCAL_STEPS = 10
"""q, the steps between two communications."""

EVALUATIONS = 20
"""How often a run is evaluated on validation data, unless told otherwise."""

CLIP = 1.0
"""The largest norm of a gradient."""

LATE = 0.75
"""A run whose chosen iterate is from after this share of its steps was still improving: learning rates are so small
then that what follows differs little."""


@dataclass(frozen=True)
class Group:
    """An objective with a network; its settings differ in the learning rate, and are run together."""

    key: str
    """The objective's name in `OBJECTIVES`."""
    net: str
    first_rate: float | None = None
    """The learning rate of the objective that is minimised first, once it is chosen."""
    weight_decay: float = 0.0

    @property
    def objective(self) -> Objective:
        """The objective."""
        return OBJECTIVES[self.key]

    @property
    def title(self) -> str:
        """The name for people."""
        return f"{self.objective.title} ({self.net})"


@dataclass(frozen=True)
class Tried:
    """A setting that was run for some seeds, and the model of its best seed."""

    group: Group
    rate: float
    steps: int
    value: float
    """The validation value of the chosen iterates, mean over seeds; −inf if a run failed."""
    seed: int
    """The seed with the best validation value."""
    model: Tree = field(repr=False)
    """The chosen iterate of that seed."""
    improving: bool
    """True if it is from the end of its run, so that more steps may make it better."""
    task: Task = field(repr=False)
    traces: Sequence[Trace] = field(repr=False)

    @property
    def total_steps(self) -> int:
        """The steps of the run, with those of the objective that was minimised first."""
        return self.steps if self.group.first_rate is None else 2 * self.steps

    def network(self) -> Network:
        """Return the network of the model."""
        assert self.task.judge.network is not None
        return self.task.judge.network(self.model, self.task.clients[0])


@dataclass
class Trainer:
    """Trains on the data of some sites and counts the seconds of computing; `run` executes units of work."""

    sites: Sites
    run: Callable[[Sequence[Unit]], Results]
    prefix: str = ""
    """Begins the names of all units of work."""
    seconds: float = 0.0

    def train(
        self,
        name: str,
        group: Group,
        rates: Sequence[float],
        steps: int,
        seeds: Sequence[int],
        train_on: str = "sites",
        evaluations: int = EVALUATIONS,
    ) -> list[Tried]:
        """Run a group with several learning rates; `name` is unique, because checkpoints are kept under it.

        Two objectives of which one is minimised after the other share the steps. Test data are not used.
        """
        task = self._task(group, train_on)
        if group.objective.after is None:
            return self._play(name, group, task, rates, steps, seeds, evaluations)
        half = whole_rounds(steps / 2)
        before = replace(group, key=group.objective.after, first_rate=None)
        first_rates = RATES if group.first_rate is None else (group.first_rate,)
        first_task = self._task(before, train_on)
        started = self._play(f"{name}, start", before, first_task, first_rates, half, seeds, evaluations)
        start = max(started, key=lambda one: one.value)
        continued = task.starting_from(start.network().module)
        return self._play(name, replace(group, first_rate=start.rate), continued, rates, half, seeds, evaluations)

    @cached_property
    def _choosing(self) -> Sites:
        """The sites without test rows, and with the validation rows that choose: tasks share these."""
        rows = choosing_rows(self.sites.validation)
        return self.sites._replace(validation=[rows], test=[rows.select(torch.arange(0))])

    def _task(self, group: Group, train_on: str) -> Task:
        return make_task(group.key, group.net, self._choosing, train_on).for_tuning()

    def _play(
        self,
        name: str,
        group: Group,
        task: Task,
        rates: Sequence[float],
        steps: int,
        seeds: Sequence[int],
        evaluations: int,
    ) -> list[Tried]:
        algorithms = [group.objective.algorithm(rate, steps) for rate in rates]
        unit = Unit(self.prefix + name, task, plan_of(group, steps, evaluations), algorithms, seeds)
        found = self.run([unit])
        self.seconds += seconds([unit], found)
        settings = zip(rates, found[unit.name], strict=True)
        return [_judge(group, rate, steps, seeds, task, traces) for rate, traces in settings]


def plan_of(group: Group, steps: int, evaluations: int = EVALUATIONS) -> Plan:
    """Return the plan of a run."""
    rounds = steps // LOCAL_STEPS
    return Plan(
        rounds,
        LOCAL_STEPS,
        group.objective.outer_batch,
        group.objective.inner_batch,
        weights="size",
        clip=CLIP,
        weight_decay=group.weight_decay,
        evaluate_every=max(1, rounds // evaluations),
    )


def make_task(key: str, net: str, sites: Sites, train_on: str = "sites") -> Task:
    """Return the task of an objective with all its data, test data included."""
    problem, judge = OBJECTIVES[key].build(build_scores(net, sites), sites)
    return make_site_task(problem, judge, sites, train_on)


def run_settings(group: Group, rate: float, steps: int) -> dict[str, Any]:
    """Return a setting as a flat configuration of `fedcso run`, without the data."""
    objective = group.objective
    spec = objective.spec()
    algorithm = spec.spell(spec.build({}, objective.settings(rate, steps)))
    plan = {name: value for name, value in asdict(plan_of(group, steps)).items() if value is not None}
    return {"problem": objective.problem, "algorithm": [algorithm], "net": group.net, **objective.options, **plan}


def whole_rounds(steps: float) -> int:
    """Return the number of steps, rounded down to whole rounds, at least one."""
    return max(LOCAL_STEPS, int(steps) // LOCAL_STEPS * LOCAL_STEPS)


def _judge(group: Group, rate: float, steps: int, seeds: Sequence[int], task: Task, traces: Sequence[Trace]) -> Tried:
    metric = deciding_metric(task)

    def value(trace: Trace, row: dict[str, Any] | None) -> float:
        found = math.nan if row is None or trace.failure else float(row[metric.name])
        return found if math.isfinite(found) else -math.inf

    chosen = [choose(trace.rows, metric) for trace in traces]
    values = [value(trace, row) for trace, row in zip(traces, chosen, strict=True)]
    best = max(range(len(values)), key=values.__getitem__)
    row, mean = chosen[best], sum(values) / len(values)
    improving = row is not None and row["step"] >= LATE * steps
    return Tried(group, rate, steps, mean, seeds[best], traces[best].best, improving, task, traces)
