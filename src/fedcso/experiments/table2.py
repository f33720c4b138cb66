"""Table 2: average precision with rare positives at 16 clients, on MNIST and CIFAR-10.

All methods have the same network, the same number of examples per step, and the same number of trials on validation
data to choose their settings, including the clipping of gradients. Then the best FCSG method and the best other method
(on validation data) are run once more for longer.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from statistics import fmean
from typing import Any

from fedcso.core.algorithm import Algorithm
from fedcso.core.plan import Plan
from fedcso.core.task import Task
from fedcso.core.trace import Trace
from fedcso.experiments import trials
from fedcso.experiments.experiment import Experiment, Runner
from fedcso.experiments.rare_positives import (
    METHODS,
    OTHERS,
    OURS,
    Curve,
    Method,
    Table2Settings,
    build,
    check,
    describe,
    line,
    panels,
)
from fedcso.experiments.reproduction import Picture, conclude
from fedcso.experiments.trials import Space
from fedcso.problems import PROBLEMS
from fedcso.problems.scores import AVERAGE_PRECISION
from fedcso.reports import tables
from fedcso.runs.folder import RunFolder
from fedcso.runs.study import Unit


def settings(quick: bool) -> Table2Settings:
    """Return the settings of the full experiment; `quick` has the embedded digits and no tuning."""
    return Table2Settings(
        data=["digits"] if quick else ["mnist", "cifar10"],
        sigmoid={"digits": True, "mnist": True, "cifar10": False},
        margin={"digits": 0.5, "mnist": 0.5, "cifar10": 1.0},
        # A mirrored digit is another digit, or no digit at all.
        mirrored={"digits": False, "mnist": False, "cifar10": True},
        moved={"digits": 0, "mnist": 0, "cifar10": 2},
        rounds={"digits": 40, "mnist": 15, "cifar10": 30},
        long_rounds={"digits": 0, "mnist": 80, "cifar10": 350},
        trial_rounds={"digits": 0, "mnist": 5, "cifar10": 12},
        trial_turns=0 if quick else 2,
        rates=[0.3] if quick else [0.02, 0.1, 0.5],
        clip=[1.0] if quick else [0.3, 1.0, 0.0],
        momentum=[0.5] if quick else [0.1, 0.5, 0.9],
        proximity=[0.01] if quick else [0.001, 0.01, 0.1],
    )


def execute(folder: RunFolder, config: Table2Settings) -> None:
    """Tune and run what is left, draw the figures and check the statements."""
    run = Runner(folder, config)
    curves: list[Curve] = []
    longer: list[Curve] = []
    table: list[dict[str, Any]] = []
    tuning: list[dict[str, Any]] = []
    precision: dict[str, dict[str, list[float]]] = {}
    for data in config.data:
        tasks = {method: _task(config, data, what) for method, what in METHODS.items()}
        tried = _tuned(config, data, tasks, run)
        chosen = {method: trials.best(some) for method, some in tried.items()}
        plan = partial(_unit, config, data, tasks, chosen)
        units = {method: plan(method, config.rounds[data], config.seeds) for method in METHODS}
        found = run(list(units.values()))
        by_method = {method: found[unit.name][0] for method, unit in units.items()}
        precision[data] = {
            method: [one.rows[-1][AVERAGE_PRECISION.name] for one in runs] for method, runs in by_method.items()
        }
        here, long = [Curve.of(unit, found) for unit in units.values()], []
        if rounds := config.long_rounds[data]:
            validated = {
                method: fmean(_validated(tasks[method], one) for one in by_method[method]) for method in METHODS
            }
            leaders = [max(side, key=validated.__getitem__) for side in (OURS, OTHERS)]
            more = [plan(method, rounds, config.seeds[:1], longer=True) for method in leaders]
            found = run(more)
            long = [Curve.of(unit, found) for unit in more]
        curves, longer = [*curves, *here], [*longer, *long]
        table += [line(curve, chosen[curve.method]) for curve in (*here, *long)]
        tuning += [{"data": data, **row} for row in trials.as_rows(tried, "minus_validation_ap")]
    rows = [{"data": curve.data, **row} for curve in (*curves, *longer) for row in curve.rows]
    folder.write("metrics.csv", tables.as_csv(rows))
    folder.write("trials.csv", tables.as_csv(tuning))
    pictures = [Picture("table2", panels(curves), "Test average precision; mean over seeds with 95 % bands.")]
    if longer:
        pictures.append(
            Picture(
                "table2-long",
                panels(longer),
                "Longer runs of the best FCSG method and the best other method, with one seed.",
            )
        )
    trials_each = len(tuning) // len(config.data) // len(METHODS)
    conclude(folder, describe(config, trials_each), pictures, table, check(precision), run.seconds)


def _task(config: Table2Settings, data: str, what: Method) -> Task:
    names = ("mirrored", "moved", "margin", "sigmoid") if what.problem == "auprc" else ("mirrored", "moved")
    options = dict(what.options) | {name: getattr(config, name)[data] for name in names}
    return PROBLEMS[what.problem](data=data, clients=config.clients, removed=config.removed, **options)


def _unit(
    config: Table2Settings,
    data: str,
    tasks: dict[str, Task],
    chosen: dict[str, trials.Settings],
    method: str,
    rounds: int,
    seeds: Sequence[int],
    longer: bool = False,
) -> Unit:
    """Return a run of a method with the settings that its trials chose, evaluated on test data."""
    task = tasks[method].for_reporting()
    plan, algorithms = _prepared(config, method, chosen[method], rounds)
    plan = replace(plan, evaluate_every=max(1, rounds // config.evaluations))
    more = f", {plan.total_steps} steps" if longer else ""
    labels = {"data": data, "method": method, "title": f"{method}{more}"}
    return Unit(f"{method} on {data}{more}", task, plan, algorithms, seeds, labels=labels)


def _prepared(
    config: Table2Settings, method: str, settings: trials.Settings, rounds: int
) -> tuple[Plan, list[Algorithm]]:
    """Return the plan and the method with settings."""
    what = METHODS[method]
    plan = Plan(
        rounds,
        config.local_steps,
        # All methods see the same number of examples per step: b positives and m others, or b + m.
        config.outer_batch + (0 if what.problem == "auprc" else config.inner_batch),
        config.inner_batch,
        evaluate_every=rounds,
        clip=settings["clip"],
    )
    return plan, [build(what, settings, plan)]


def _tuned(config: Table2Settings, data: str, tasks: dict[str, Task], run: Runner) -> dict[str, list[trials.Trial]]:
    """Return all trials of every method, scored on validation data."""

    def turn(number: int, asked: dict[str, list[trials.Settings]]) -> dict[str, list[float]]:
        if not config.trial_turns and all(len(some) == 1 for some in asked.values()):
            return {method: [0.0] for method in asked}  # there is nothing to choose
        units = {
            (method, place): Unit(
                f"trial {number} {method} on {data} {place}",
                tasks[method].for_tuning(),
                *_prepared(config, method, settings, config.trial_rounds[data]),
                [config.trial_seed],
            )
            for method, some in asked.items()
            for place, settings in enumerate(some)
        }
        found = run(list(units.values()))
        scores = {key: _score(found[unit.name][0][0]) for key, unit in units.items()}
        return {method: [scores[method, place] for place in range(len(some))] for method, some in asked.items()}

    spaces = {
        method: Space(config.rates, {name: getattr(config, name) for name in ("clip", *what.others)})
        for method, what in METHODS.items()
    }
    return trials.search(spaces, config.trial_turns, turn)


def _score(run: Trace) -> float:
    return float("inf") if run.failure else -run.rows[-1][AVERAGE_PRECISION.on_validation().name]


def _validated(task: Task, run: Trace) -> float:
    return float(task.judge.measure(run.last, task.validation)[AVERAGE_PRECISION.name])


TABLE2 = Experiment("Average precision with rare positives on MNIST and CIFAR-10.", settings, execute)
