"""The runs of Table 1: with the theory's settings, with tuned settings, and with growing numbers of clients.

All runs are stacked: settings, seeds and clients in one pass.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import NamedTuple

from fedcso.algorithms import FCSG, FCSGM, AccFCSGM, BSpiderBoost
from fedcso.core.algorithm import Algorithm
from fedcso.core.plan import Plan
from fedcso.core.task import Task
from fedcso.core.trace import Trace
from fedcso.experiments.complexity import INSTANCES, Instance, Reached, alike, reached, running_means
from fedcso.experiments.experiment import Settings
from fedcso.experiments.table1_estimators import Scaling
from fedcso.runs.study import Results, Unit
from fedcso.theory.prescribe import SINGLE_MACHINE, THEOREMS, Setting, bound, build_algorithm, prescribe

METHODS = list(THEOREMS)
FEDERATED = [method for method in METHODS if method not in SINGLE_MACHINE]
EVALUATIONS = 500
"""The approximate number of evaluations until the first term of the bound has decreased to ε²."""


@dataclass(frozen=True)
class SpeedUp:
    """The settings with which the speed-up with the number of clients is measured."""

    clients: Sequence[int]
    share: float
    """ε, as a share of ‖∇F(x_0)‖."""
    steps: int
    more_steps: int
    rate: float
    factors: Sequence[float]
    momenta: Sequence[float]
    inner: int


@dataclass(frozen=True, kw_only=True)
class Table1Settings(Settings):
    """The settings of Table 1; accuracies are shares of ‖∇F(x_0)‖, learning rates are shares of 1/S_F."""

    clients: int = 4
    seeds: Sequence[int]
    tuning_seeds: Sequence[int]
    theory: Mapping[str, Sequence[float]]
    """By problem, the accuracies to reach with the theory's settings."""
    tuned: Mapping[str, Sequence[float]]
    """By problem, the accuracies to reach with tuned settings."""
    local_steps: int = 4
    tuned_rounds: int
    period_steps: int
    inner: Sequence[int]
    rates: Sequence[float]
    momenta: Sequence[float]
    periods: Sequence[int]
    speed_up: SpeedUp
    estimators: Scaling
    """Other estimators, for a smooth f."""


class Cell(NamedTuple):
    """A measurement: the problem, the method, and the accuracy to reach as a share of ‖∇F(x_0)‖."""

    where: str
    method: str
    share: float

    def instance(self, config: Table1Settings) -> Instance:
        """Return the problem with the clients of the settings, or with one client for methods of one machine."""
        return INSTANCES[self.where](1 if self.method in SINGLE_MACHINE else config.clients)

    def reached(self, instance: Instance, trace: Trace) -> Reached:
        """Return when a run reached the accuracy; without communication every step counts as a round."""
        one = reached(trace, self.share * instance.start, len(instance.clients))
        return one._replace(rounds=one.steps) if self.method in SINGLE_MACHINE else one


Crossings = dict[Cell, list[Reached]]
"""By cell, when ε was reached with each seed."""


# ------------------------------------------------------------------------------ the theory's settings


class Prescribed(NamedTuple):
    """A setting of the theory and its run, which stops when ε is reached."""

    instance: Instance
    setting: Setting
    unit: Unit


def by_theory(config: Table1Settings) -> dict[Cell, Prescribed]:
    """Return the runs of every method with the settings that its theorem prescribes for every ε."""
    cells = [Cell(w, method, share) for w, shares in config.theory.items() for method in METHODS for share in shares]
    return {cell: _prescribed(config, cell) for cell in cells}


def _prescribed(config: Table1Settings, cell: Cell) -> Prescribed:
    instance = cell.instance(config)
    epsilon = cell.share * instance.start
    setting = prescribe(cell.method, instance.constants, len(instance.clients), epsilon=epsilon)
    descent = 2 * instance.constants.gap / (setting.learning_rate * epsilon**2)
    every = max(1, int(descent / setting.local_steps / EVALUATIONS))
    plan, algorithm = setting.plan(epsilon=epsilon, evaluate_every=every), build_algorithm(setting)
    if cell.method == "BSGD":  # with one client it is FCSG for any q: use one round between evaluations
        plan = replace(plan, rounds=math.ceil(setting.steps / every), local_steps=every, evaluate_every=1)
        algorithm = FCSG(setting.learning_rate)
    name = f"theory {cell.where} {cell.method} {cell.share:g}"
    unit = Unit(name, Task(instance.problem, instance.clients), plan, [algorithm], config.seeds)
    return Prescribed(instance, setting, unit)


def crossings(runs: dict[Cell, Prescribed], found: Results) -> Crossings:
    """Return when each run reached its ε."""
    return {
        cell: [cell.reached(run.instance, trace) for trace in found[run.unit.name][0]] for cell, run in runs.items()
    }


class Curve(NamedTuple):
    """The measured mean of ‖∇F(x̄)‖² up to each step, mean over seeds, and the theorem's bound on it."""

    steps: list[float]
    measured: list[float]
    bound: list[float]
    target: float
    """ε²."""

    @property
    def worst(self) -> float:
        """Return the largest ratio of the measured mean to the bound; above 1 the bound would be violated."""
        return max(mean / most for mean, most in zip(self.measured, self.bound, strict=True))


def curve(run: Prescribed, traces: Sequence[Trace]) -> Curve:
    """Return the curve up to the step at which the first seed stopped.

    The theorems hold for every T, with the same α, β, q, b, B and m.
    """
    length = min(len(trace.rows) for trace in traces)
    steps = [row["step"] for row in traces[0].rows[1:length]]
    means = [fmean(values) for values in zip(*(running_means(trace)[1:length] for trace in traces), strict=True)]
    settings = [replace(run.setting, steps=int(step)) for step in steps]
    bounds = [sum(bound(setting, run.instance.constants).values()) for setting in settings]
    return Curve(steps, means, bounds, run.unit.plan.epsilon**2)


# ------------------------------------------------------------------------------------ tuned settings


class Grid(NamedTuple):
    """Settings that can be run together."""

    name: str
    algorithms: list[Algorithm]
    plan: Plan


def _one_rate(config: Table1Settings, rates: list[float]) -> Iterator[Grid]:
    yield Grid("", [FCSG(rate) for rate in rates], _local(config))


def _with_momentum(
    kind: Callable[[float, float], Algorithm],
) -> Callable[[Table1Settings, list[float]], Iterator[Grid]]:
    def grids(config: Table1Settings, rates: list[float]) -> Iterator[Grid]:
        yield Grid("", [kind(rate, beta) for rate in rates for beta in config.momenta], _local(config))

    return grids


def _with_period(config: Table1Settings, rates: list[float]) -> Iterator[Grid]:
    for period in config.periods:
        algorithms: list[Algorithm] = [BSpiderBoost(rate, period, period**2) for rate in rates]
        yield Grid(f" period={period}", algorithms, Plan(config.period_steps, 1, outer_batch=period))


def _local(config: Table1Settings) -> Plan:
    return Plan(config.tuned_rounds, config.local_steps)


GRIDS = {
    "FCSG": _one_rate,
    "FCSG-M": _with_momentum(FCSGM),
    "Acc-FCSG-M": _with_momentum(AccFCSGM),
    "BSGD": _one_rate,  # with one client
    "BSpiderBoost": _with_period,
}


def tuned(config: Table1Settings) -> dict[tuple[str, str], list[Unit]]:
    """Return for every problem and method the runs with all settings to choose from."""
    seeds = [*config.tuning_seeds, *config.seeds]
    units: dict[tuple[str, str], list[Unit]] = {}
    for where in config.tuned:
        for method in METHODS:
            instance = Cell(where, method, 1.0).instance(config)
            rates = [rate / instance.constants.smoothness for rate in config.rates]
            task = Task(instance.problem, instance.clients)
            units[where, method] = []
            for m in config.inner:
                for grid in GRIDS[method](config, rates):
                    name, plan = f"tuned {where} {method} m={m}{grid.name}", replace(grid.plan, inner_batch=m)
                    units[where, method].append(Unit(name, task, plan, grid.algorithms, seeds))
    return units


def fewest(
    config: Table1Settings, units: dict[tuple[str, str], list[Unit]], found: Results, what: Callable[[Reached], float]
) -> Crossings:
    """Choose for every ε the setting that needs the fewest (samples, say) with the tuning seeds.

    Return what the chosen settings need with the other seeds.
    """
    best: Crossings = {}
    count = len(config.tuning_seeds)
    for (where, method), some in units.items():
        runs = [traces for unit in some for traces in found[unit.name]]
        for share in config.tuned[where]:
            cell = Cell(where, method, share)
            instance = cell.instance(config)
            every = [[cell.reached(instance, trace) for trace in traces] for traces in runs]
            best[cell] = min(every, key=lambda by_seed: fmean(what(one) for one in by_seed[:count]))[count:]
    return best


# -------------------------------------------------------------------------------------- more clients


def speed_up(config: Table1Settings) -> dict[tuple[str, int], Unit]:
    """Return runs of the federated methods on the same F with N clients.

    They have T/N steps and some more, learning rates around Nα, and the q of the corollary.
    """
    seeds, asked = [*config.tuning_seeds, *config.seeds], config.speed_up
    units = {}
    for method in FEDERATED:
        for clients in asked.clients:
            instance = alike(clients)
            rates = [asked.rate * clients * factor for factor in asked.factors]
            steps = asked.steps / clients + asked.more_steps
            q = max(1, math.floor((steps / clients**3) ** 0.25))
            plan = Plan(math.ceil(steps / q), q, inner_batch=asked.inner)
            (grid,) = GRIDS[method](replace(config, momenta=asked.momenta), rates)
            task = Task(instance.problem, instance.clients)
            units[method, clients] = Unit(f"speed-up {method} N={clients}", task, plan, grid.algorithms, seeds)
    return units


Steps = dict[tuple[str, int], list[float]]
"""By method and number of clients, the steps to ε with each seed."""


def fewest_steps(config: Table1Settings, units: dict[tuple[str, int], Unit], found: Results) -> Steps:
    """Return the steps to ε with the setting that was best with the tuning seeds."""
    epsilon, count = config.speed_up.share * alike(1).start, len(config.tuning_seeds)
    steps = {}
    for (method, clients), unit in units.items():
        every = [[reached(trace, epsilon, clients).steps for trace in traces] for traces in found[unit.name]]
        steps[method, clients] = min(every, key=lambda by_seed: fmean(by_seed[:count]))[count:]
    return steps
