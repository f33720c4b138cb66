"""Few-shot learning on Omniglot: how accurate it gets in a long run, and what else one could use.

All ways see the same number of steps of 16 tasks (or as many images), and have the same trials for their rate on
validation tasks: all rates for a few steps, and the best two again for as many steps as the run has. The best way of
federated meta-learning is then trained for longer.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from fedcso.core.intervals import mean_and_interval
from fedcso.core.task import Task
from fedcso.core.trace import Trace
from fedcso.experiments import few_shot
from fedcso.experiments import few_shot_best_report as report
from fedcso.experiments.experiment import Experiment, Runner
from fedcso.experiments.few_shot_best_report import Entry, Trial
from fedcso.experiments.few_shot_best_settings import SHOTS, VALIDATED, BestSettings, settings
from fedcso.experiments.few_shot_ways import LONG, WAYS, rates
from fedcso.experiments.reproduction import Picture, conclude
from fedcso.problems import PROBLEMS
from fedcso.problems.few_shot_judge import ACCURACY
from fedcso.reports import tables
from fedcso.runs.folder import RunFolder
from fedcso.runs.study import Part, Unit


def execute(folder: RunFolder, config: BestSettings) -> None:
    """Tune and run what is left, draw the figure and check the statements."""
    run = Runner(folder, config)
    tasks = {(case, way): _task(config, case, way) for case in config.cases for way in WAYS}
    tried = _tune(config, tasks, run)
    chosen = {entry: rates_by_score(some)[0] for entry, some in tried.items()}
    units = {entry: _unit(config, entry, task, chosen[entry]) for entry, task in tasks.items()}
    found = _outcomes(run, units, tasks)
    best = [_best(case, found) for case in config.cases if config.long_steps]
    long_units = {entry: _unit(config, entry, tasks[entry], chosen[entry], config.long_steps) for entry in best}
    long = _outcomes(run, long_units, tasks)

    table: list[dict[str, Any]] = []
    tuning: list[dict[str, Any]] = []
    for case in config.cases:
        table += report.lines(case, units, chosen, found)
        table += report.lines(case, long_units, chosen, long, f", {config.long_steps:,} steps")
        tuning += [report.trial_line(case, way, trial) for way in WAYS for trial in tried[case, way]]
    folder.write("trials.csv", tables.as_csv(tuning))
    caption = (
        "Accuracy on tasks of unseen characters, with intervals over seeds (left); during the long run, against the "
        "tasks that all clients have seen (right)."
    )
    accuracy = {case: {way: report.measured(found[case, way], ACCURACY.name) for way in WAYS} for case in config.cases}
    longer = {case: traces[0] for (case, _), traces in long.items()}
    pictures = [Picture("few-shot", report.draw(accuracy, longer, config.clients), caption)]
    conclude(folder, report.describe(config), pictures, table, report.check(config, accuracy, longer), run.seconds)


def _task(config: BestSettings, case: str, way: str) -> Task:
    return WAYS[way].who_trains(PROBLEMS[WAYS[way].problem](**config.problem(case, way)))


def rates_by_score(tried: Sequence[Trial]) -> list[float]:
    """Return the rates of the longest of some trials, the best first."""
    longest = max(trial.steps for trial in tried)
    finals = [trial for trial in tried if trial.steps == longest]
    return [trial.rate for trial in sorted(finals, key=lambda trial: -trial.score)]


def _tune(config: BestSettings, tasks: Mapping[Entry, Task], run: Runner) -> dict[Entry, list[Trial]]:
    """Return the trials of every entry: of all rates, then of the best ones for as long as the run is."""
    if not config.trial_steps:
        return {(case, way): [Trial(rates(way)[1], 0, 0.0)] for case, way in tasks}
    first = _try(config, tasks, run, {entry: rates(entry[1]) for entry in tasks}, config.trial_steps)
    best = {entry: rates_by_score(some)[: config.finalists] for entry, some in first.items()}
    finals = _try(config, tasks, run, best, config.steps)
    return {entry: first[entry] + finals[entry] for entry in tasks}


def _try(
    config: BestSettings, tasks: Mapping[Entry, Task], run: Runner, asked: Mapping[Entry, Sequence[float]], steps: int
) -> dict[Entry, list[Trial]]:
    """Run trials of the rates of every entry; the score is the accuracy on validation tasks."""
    units = {entry: [_trial(config, entry, tasks[entry], rate, steps) for rate in asked[entry]] for entry in asked}
    found = run.outcomes([unit for some in units.values() for unit in some])
    scores = {entry: [_score(found[unit.name][0][0]) for unit in some] for entry, some in units.items()}
    return {
        entry: [Trial(rate, steps, score) for rate, score in zip(asked[entry], scores[entry], strict=True)]
        for entry in asked
    }


def _trial(config: BestSettings, entry: Entry, task: Task, rate: float, steps: int) -> Unit:
    case, way = entry
    return Unit(
        f"{case} trial of {steps} steps {way} {rate:.3g}",
        task.for_tuning(),
        WAYS[way].plan(steps, SHOTS[case], config.clients),
        [WAYS[way].method(rate)],
        [config.trial_seed],
        labels=config.labels(case, way),
    )


def _score(trace: Trace) -> float:
    return 0.0 if trace.failure else trace.rows[-1][VALIDATED]


def _unit(config: BestSettings, entry: Entry, task: Task, rate: float, long_steps: int = 0) -> Unit:
    """Return the runs of an entry with the chosen rate; a long run has one seed."""
    case, way = entry
    plan = WAYS[way].plan(long_steps or config.steps, SHOTS[case], config.clients, 10 if long_steps else 1)
    return Unit(
        f"{case} {way}" + f", {long_steps} steps" * bool(long_steps),
        few_shot.for_curves(task, config.curve_tasks),
        plan,
        [WAYS[way].method(rate)],
        list(config.seeds[:1] if long_steps else config.seeds),
        labels=config.labels(case, way),
    )


def _outcomes(run: Runner, units: Mapping[Entry, Unit], tasks: Mapping[Entry, Task]) -> dict[Entry, Sequence[Trace]]:
    """Run units, several side by side, and measure each on all test tasks of its own."""
    entries = {unit.name: entry for entry, unit in units.items()}

    def measure(part: Part, trace: Trace) -> dict[str, float]:
        return few_shot.measured_on(tasks[entries[part.unit.name]])(part, trace)

    found = run.outcomes(list(units.values()), measure)
    return {entry: found[unit.name][0] for entry, unit in units.items()}


def _best(case: str, found: Mapping[Entry, Sequence[Trace]]) -> Entry:
    """Return the way of `LONG` with the highest mean accuracy on validation tasks."""

    def validated(entry: Entry) -> float:
        return mean_and_interval(report.measured(found[entry], VALIDATED))[0]

    return max(((case, way) for way in LONG), key=validated)


FEW_SHOT = Experiment("How accurate few-shot learning gets, and what else one could use.", settings, execute)
