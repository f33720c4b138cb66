"""Less bias for the same samples (not in the paper): all estimators with all methods on five problems.

The error is the true ‖∇F(x̄)‖ after a number of inner samples that is the same for all. A second question is whether a
look at x_0 finds a good estimator beforehand (`--estimator auto`).
"""

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from fedcso.core.evaluation import GRADIENT_NORM
from fedcso.core.plan import Plan, round_half_up
from fedcso.core.streams import START, stream
from fedcso.core.task import Task
from fedcso.core.trace import Trace
from fedcso.estimators import ESTIMATORS
from fedcso.experiments import bias_report as report
from fedcso.experiments import trials
from fedcso.experiments.bias_settings import BiasSettings, Cell, Contender, settings
from fedcso.experiments.experiment import Experiment, Runner
from fedcso.experiments.reproduction import Picture, conclude
from fedcso.problems import PROBLEMS
from fedcso.reports import tables
from fedcso.runs.folder import RunFolder
from fedcso.runs.study import Unit
from fedcso.theory.choice import Choice, choose_estimator


def execute(folder: RunFolder, config: BiasSettings) -> None:
    """Tune and run what is left, draw the figures and check the statements."""
    run = Runner(folder, config, warns=False)
    tasks = {
        name: PROBLEMS[name](clients=config.clients, **options).without_held_out()
        for name, options in config.problems.items()
    }
    tried = tune(config, tasks, run)
    rates = {cell: trials.best(some)["learning_rate"] for cell, some in tried.items()}
    units = {cell: _unit(config, tasks, cell, [rates[cell]], config.seeds) for cell in config.cells()}
    found = run.outcomes(list(units.values()))
    curves = {cell: report.Curve.of(found[unit.name][0], config.clients) for cell, unit in units.items()}
    choices = {name: look(config, task) for name, task in tasks.items()}
    folder.write("metrics.csv", tables.as_csv(tables.metric_rows(found, config.seeds)))
    folder.write("trials.csv", tables.as_csv(trials.as_rows({c.name: some for c, some in tried.items()}, "error")))
    folder.write("choices.md", "\n".join(f"- {name}: {choice}" for name, choice in choices.items()) + "\n")
    chosen = {name: Contender(choice.estimator, config.contenders[0].m) for name, choice in choices.items()}
    finals = {cell: curve.final for cell, curve in curves.items()}
    samples = f"{config.samples:,} inner samples of a client"
    pictures = [
        Picture(
            "bias-estimators",
            report.draw_finals(curves),
            f"True gradient norm after {samples} for every problem (panels), estimator (lines) and method (markers), "
            "mean over seeds with 95 % intervals; further left is better.",
        ),
        Picture(
            "bias-samples",
            report.draw_curves(curves, "FCSG-M"),
            "True gradient norm of FCSG-M against the inner samples of a client, mean over seeds.",
        ),
    ]
    statements = report.check(finals, chosen)
    conclude(folder, report.describe(config), pictures, report.table(finals, chosen), statements, run.seconds)


def tune(config: BiasSettings, tasks: Mapping[str, Task], run: Runner) -> dict[Cell, list[trials.Trial]]:
    """Return the trials of every cell: runs of full length with each learning rate, scored by the error at the end."""
    candidates = [{"learning_rate": rate} for rate in config.rates]
    if len(candidates) == 1:
        return {cell: [trials.Trial(candidates[0], math.nan)] for cell in config.cells()}
    units = {cell: _unit(config, tasks, cell, config.rates, config.trial_seeds) for cell in config.cells()}
    found = run.outcomes(list(units.values()))
    return {
        cell: [trials.Trial(*pair) for pair in zip(candidates, map(_error, found[unit.name]), strict=True)]
        for cell, unit in units.items()
    }


def look(config: BiasSettings, task: Task) -> Choice:
    """Return what `--estimator auto` chooses for a run of the first contender, from its x_0."""
    first = config.contenders[0]
    plan = Plan(rounds(config, task, first), config.local_steps, config.outer_batch, first.m)
    x = task.starting_point(stream(config.seeds[0], START, 0))
    return choose_estimator(task.problem, x, task.clients, plan, [1.0] * config.clients, config.seeds[0])


def rounds(config: BiasSettings, task: Task, contender: Contender) -> int:
    """Return the rounds in which a client draws its samples, or nearly so."""
    steps = 200
    tried = ESTIMATORS[contender.estimator].draw(
        task.problem, task.clients[0], stream(0, 0, 0), steps, config.outer_batch, contender.m
    )
    return max(1, round_half_up(config.samples * steps / (config.local_steps * tried.costs.inner_samples)))


def _unit(
    config: BiasSettings, tasks: Mapping[str, Task], cell: Cell, rates: Sequence[float], seeds: Sequence[int]
) -> Unit:
    """Return the runs of a cell with some learning rates and seeds; trials are evaluated at the end only."""
    task, contender = tasks[cell.problem], cell.contender
    number, trial = rounds(config, task, contender), len(rates) > 1
    every = number if trial else max(1, number // config.evaluations)
    labels: dict[str, Any] = {"estimator": contender.estimator, "clients": config.clients}
    return Unit(
        f"trial {cell.name}" if trial else cell.name,
        task,
        Plan(number, config.local_steps, config.outer_batch, contender.m, evaluate_every=every),
        [config.build(cell.method, rate) for rate in rates],
        seeds,
        estimator=ESTIMATORS[contender.estimator],
        labels=labels | dict(config.problems[cell.problem]),
    )


def _error(runs: Sequence[Trace]) -> float:
    """Return the mean error at the end; infinity if a run broke off."""
    return fmean(math.inf if one.failure else one.rows[-1][GRADIENT_NORM.name] for one in runs)


BIAS = Experiment("Estimators with less bias for the same samples, and the choice of one at x_0.", settings, execute)
