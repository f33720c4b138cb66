"""Table 2: average precision with rare positives at 16 clients, on MNIST and CIFAR-10.

All methods have the same network, the same number of examples per step, and the same number of trials on validation
data to choose their learning rate, which last a quarter of a run.
"""

from dataclasses import replace
from statistics import fmean
from typing import Any

from fedcso.core.algorithm import Algorithm
from fedcso.core.plan import Plan
from fedcso.core.task import Task
from fedcso.core.trace import Trace
from fedcso.experiments import trials
from fedcso.experiments.experiment import Experiment, Runner
from fedcso.experiments.rare_positives import (
    TABLE2_METHODS,
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
        rounds={"digits": 40, "mnist": 50, "cifar10": 200},
        trial_rounds={"digits": 0, "mnist": 13, "cifar10": 50},
        trial_turns=0,
        # Sigmoid scores can saturate, which depends on the seed.
        trial_seeds={"digits": [1000], "mnist": [1000, 1001], "cifar10": [1000]},
        rates=[0.3] if quick else [0.3, 1.0, 3.0],
        clip=[1.0],
        momentum=[0.5],
        proximity=[0.01],
    )


def execute(folder: RunFolder, config: Table2Settings) -> None:
    """Tune and run what is left, draw the figures and check the statements."""
    run = Runner(folder, config)
    curves: list[Curve] = []
    table: list[dict[str, Any]] = []
    tuning: list[dict[str, Any]] = []
    precision: dict[str, dict[str, list[float]]] = {}
    for data in config.data:
        tasks = {method: _task(config, data, what) for method, what in TABLE2_METHODS.items()}
        tried = _tuned(config, data, tasks, run)
        chosen = {method: trials.best(some) for method, some in tried.items()}
        units = {method: _unit(config, data, tasks[method], chosen[method], method) for method in TABLE2_METHODS}
        found = run.outcomes(list(units.values()))
        precision[data] = {
            method: [one.rows[-1][AVERAGE_PRECISION.name] for one in found[unit.name][0]]
            for method, unit in units.items()
        }
        here = [Curve.of(unit, found) for unit in units.values()]
        curves += here
        table += [line(curve, chosen[curve.method]) for curve in here]
        tuning += [{"data": data, **row} for row in trials.as_rows(tried, "minus_validation_ap")]
    folder.write("metrics.csv", tables.as_csv([{"data": curve.data, **row} for curve in curves for row in curve.rows]))
    folder.write("trials.csv", tables.as_csv(tuning))
    pictures = [Picture("table2", panels(curves), "Test average precision; mean over seeds with 95 % bands.")]
    trials_each = len(tuning) // len(config.data) // len(TABLE2_METHODS)
    conclude(folder, describe(config, trials_each), pictures, table, check(precision), run.seconds)


def _task(config: Table2Settings, data: str, what: Method) -> Task:
    return PROBLEMS[what.problem](**_options(config, data, what))


def _options(config: Table2Settings, data: str, what: Method) -> dict[str, Any]:
    """Return the options of a method's problem."""
    names = ("mirrored", "moved", "margin", "sigmoid") if what.problem == "auprc" else ("mirrored", "moved")
    common = {"data": data, "clients": config.clients, "removed": config.removed}
    return common | {name: getattr(config, name)[data] for name in names} | dict(what.options)


def _labels(config: Table2Settings, data: str, method: str) -> dict[str, Any]:
    """Return what a unit stands for: the method, its problem and the problem's options."""
    what = TABLE2_METHODS[method]
    return {"method": method, "problem": what.problem} | _options(config, data, what)


def _unit(config: Table2Settings, data: str, task: Task, chosen: trials.Settings, method: str) -> Unit:
    """Return the runs of a method with the settings that its trials chose, evaluated on test data."""
    plan, algorithms = _prepared(config, method, chosen, config.rounds[data])
    plan = replace(plan, evaluate_every=max(1, config.rounds[data] // config.evaluations))
    labels = _labels(config, data, method)
    return Unit(f"{method} on {data}", task.for_reporting(), plan, algorithms, config.seeds, labels=labels)


def _prepared(
    config: Table2Settings, method: str, settings: trials.Settings, rounds: int
) -> tuple[Plan, list[Algorithm]]:
    """Return the plan and the method with settings."""
    what = TABLE2_METHODS[method]
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
    seeds = config.trial_seeds[data]

    def turn(number: int, asked: dict[str, list[trials.Settings]]) -> dict[str, list[float]]:
        if not config.trial_turns and all(len(some) == 1 for some in asked.values()):
            return {method: [0.0] for method in asked}  # there is nothing to choose
        units = {
            (method, place, seed): Unit(
                f"trial {number} {method} on {data} {place}, seed {seed}",
                tasks[method].for_tuning(),
                *_prepared(config, method, settings, config.trial_rounds[data]),
                [seed],
                labels=_labels(config, data, method),
            )
            for method, some in asked.items()
            for place, settings in enumerate(some)
            for seed in seeds
        }
        found = run.outcomes(list(units.values()))
        scores = {key: _score(found[unit.name][0][0]) for key, unit in units.items()}
        return {
            method: [fmean(scores[method, place, seed] for seed in seeds) for place in range(len(some))]
            for method, some in asked.items()
        }

    spaces = {
        method: Space(config.rates, {name: getattr(config, name) for name in ("clip", *what.others)})
        for method, what in TABLE2_METHODS.items()
    }
    return trials.search(spaces, config.trial_turns, turn)


def _score(run: Trace) -> float:
    return float("inf") if run.failure else -run.rows[-1][AVERAGE_PRECISION.on_validation().name]


TABLE2 = Experiment("Average precision with rare positives on MNIST and CIFAR-10.", settings, execute)
