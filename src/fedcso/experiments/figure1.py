"""Figure 1: invariant logistic regression under three noise ratios and three inner batch sizes.

Besides the test accuracy of the paper the true gradient norm is shown, because the accuracy does not depend on the bias
(the minimiser of the biased objective has the same direction), and also for runs with the mean outside f.
"""

from collections.abc import Sequence
from statistics import fmean

from fedcso.core.algorithm import Algorithm
from fedcso.core.evaluation import GRADIENT_NORM
from fedcso.core.plan import Plan
from fedcso.core.task import Task
from fedcso.core.trace import Trace
from fedcso.engines.loop import declare
from fedcso.estimators.mean_outside import mean_outside
from fedcso.experiments import figure1_report as report
from fedcso.experiments import steadiness
from fedcso.experiments.experiment import Experiment, Runner
from fedcso.experiments.figure1_settings import (
    METHODS,
    MOMENTA,
    OUTSIDE,
    PANELS,
    RATIOS,
    Cell,
    Figure1Settings,
    Panel,
    at_end,
    grid,
    settings,
)
from fedcso.experiments.reproduction import Picture, conclude
from fedcso.problems import PROBLEMS
from fedcso.problems.invariant_logistic import ACCURACY
from fedcso.reports import tables
from fedcso.runs.folder import RunFolder
from fedcso.runs.study import Unit


def execute(folder: RunFolder, config: Figure1Settings) -> None:
    """Tune and run what is left, draw the figures and check the statements."""
    run = Runner(folder, config)
    tasks = {
        ratio: PROBLEMS["invariant_logistic"](clients=config.clients, noise=ratio, test_points=config.test_points)
        for ratio in RATIOS
    }
    tried = _tuning(config, tasks)
    tuning = run(list(tried.values()))
    tuned = {key: tuning[unit.name] for key, unit in tried.items()}
    chosen = {
        (method, panel): _best(grid(method, config), tuned.get((method, panel)))
        for panel in PANELS
        for method in METHODS
    }
    units = _final(config, tasks, chosen)
    found = run(list(units.values()))

    steady = _steadiness(config, tasks, chosen, run)

    folder.write("metrics.csv", tables.as_csv(tables.metric_rows(found, config.seeds)))
    folder.write("tuning.csv", tables.as_csv(report.tuning_table(config, tuned)))
    by_cell = {key: found[unit.name][0] for key, unit in units.items()}
    rows = {key: tables.metric_rows({unit.name: found[unit.name]}, unit.seeds) for key, unit in units.items()}
    pictures = [
        Picture(
            "figure1-accuracy",
            report.panels(rows, ACCURACY.on_test(), METHODS),
            "Test accuracy against communication rounds; mean over seeds with 95 % bands.",
        ),
        Picture(
            "figure1-gradient-norm",
            report.panels(rows, GRADIENT_NORM, METHODS),
            "The true gradient norm ‖∇F(x̄)‖ of the same runs, which shows the bias of a small m.",
        ),
        Picture(
            "figure1-mean-outside",
            report.panels(rows, GRADIENT_NORM, ("FCSG-M", OUTSIDE)),
            "FCSG-M with the mean over η inside f, which is correct, and outside f, which is not.",
        ),
        steadiness.picture(steady),
    ]
    declared = declare(tasks[RATIOS[0]].for_reporting())
    statements = [*report.check(by_cell), steadiness.check(steady, config.local_steps)]
    conclude(folder, report.describe(config), pictures, report.table(rows, declared, chosen), statements, run.seconds)


def _plan(config: Figure1Settings, panel: Panel, evaluate_every: int) -> Plan:
    return Plan(config.rounds, config.local_steps, inner_batch=panel.m, evaluate_every=evaluate_every)


def _tuning(config: Figure1Settings, tasks: dict[float, Task]) -> dict[Cell, Unit]:
    units = {}
    for panel in PANELS:
        task, plan = tasks[panel.ratio], _plan(config, panel, 2)
        for method in METHODS:
            choices = grid(method, config)
            if len(choices) > 1:
                name = f"tune {method} {panel}"
                units[method, panel] = Unit(name, task.for_tuning(), plan, choices, config.tuning_seeds)
    return units


def _final(config: Figure1Settings, tasks: dict[float, Task], chosen: dict[Cell, Algorithm]) -> dict[Cell, Unit]:
    units = {}
    for panel in PANELS:
        task, plan = tasks[panel.ratio].for_reporting(), _plan(config, panel, 1)
        for method in METHODS:
            units[method, panel] = Unit(f"{method} {panel}", task, plan, [chosen[method, panel]], config.seeds)
        name, momentum = f"{OUTSIDE} {panel}", [chosen["FCSG-M", panel]]
        units[OUTSIDE, panel] = Unit(name, task, plan, momentum, config.seeds, mean_outside)
    return units


def _steadiness(
    config: Figure1Settings, tasks: dict[float, Task], chosen: dict[Cell, Algorithm], run: Runner
) -> dict[float, dict[float, list[Trace]]]:
    """Return runs with m = 1 and the learning rate of FCSG, by noise ratio and β."""
    units = {
        ratio: steadiness.unit(
            tasks[ratio].for_reporting(),
            _plan(config, Panel(1, ratio), 1),
            chosen["FCSG", Panel(1, ratio)].learning_rate,  # type: ignore[attr-defined]
            MOMENTA,
            config.seeds,
            ratio,
        )
        for ratio in RATIOS
    }
    found = run(list(units.values()))
    return {
        ratio: dict(zip((*MOMENTA, steadiness.FCSG), found[unit.name], strict=True)) for ratio, unit in units.items()
    }


def _best(settings: Sequence[Algorithm], traces: Sequence[Sequence[Trace]] | None) -> Algorithm:
    """Return the setting with the best mean validation accuracy at the end; the first of equal ones."""
    if traces is None:
        return settings[0]  # the only one
    validated = ACCURACY.on_validation()
    scores = [fmean(0.0 if run.failure else at_end(run, validated) for run in setting) for setting in traces]
    return settings[scores.index(max(scores))]


FIGURE1 = Experiment(
    "Invariant logistic regression for three noise ratios and three inner batch sizes.",
    settings,
    execute,
)
