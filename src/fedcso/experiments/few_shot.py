"""Figures 2 and 3: federated MAML on Omniglot, 5-way-1-shot and 5-way-5-shot.

The figures show loss and accuracy on tasks of the clients' training characters and of unseen characters, against steps
and rounds. All models are measured after adaptation, in the same way. The settings of every method are chosen with the
same number of trials. The best method of each side runs for the published number of steps.
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from fedcso.core.algorithm import Algorithm
from fedcso.core.plan import Plan
from fedcso.core.task import Task
from fedcso.core.trace import Trace
from fedcso.core.tree import index
from fedcso.experiments import few_shot_report as report
from fedcso.experiments import trials
from fedcso.experiments.experiment import Experiment, Runner
from fedcso.experiments.few_shot_settings import METHODS, OURS, THEIRS, FewShotSettings, settings
from fedcso.experiments.outcomes import Measure
from fedcso.experiments.reproduction import Picture, conclude
from fedcso.problems import PROBLEMS
from fedcso.problems.few_shot_judge import ACCURACY, LOSS
from fedcso.reports import tables
from fedcso.runs.folder import RunFolder
from fedcso.runs.study import Part, Results, Unit


def execute(folder: RunFolder, config: FewShotSettings) -> None:
    """Tune and run what is left, draw the figures and check the statements."""
    run = Runner(folder, config)
    task = PROBLEMS["maml"](**config.problem())
    tried = {} if config.chosen else tune(config, task, run)
    settled = config.chosen or {method: trials.best(some) for method, some in tried.items()}
    chosen = {method: METHODS[method].build(values) for method, values in settled.items()}

    plan, curves, measure = plan_of(config, config.rounds), for_curves(task, config.curve_tasks), measured_on(task)
    found = run.outcomes(
        [
            Unit(method, curves, plan, [algorithm], config.seeds, labels=config.problem())
            for method, algorithm in chosen.items()
        ],
        measure,
    )
    final = _measured(found)
    rows = tables.metric_rows(found, config.seeds)
    name = "figure2" if config.shots == 1 else "figure3"
    caption = "Means over seeds with 95 % bands, against rounds (top axis) and local steps (bottom axis)."
    places = {method: place for place, method in enumerate(chosen)}
    pictures = [Picture(name, report.panels(rows, places), caption)]
    longer: dict[str, str] = {}
    if config.long_steps:
        sides = {"FCSG": OURS} | THEIRS
        longer = {side: report.best(final, some) for side, some in sides.items()}
        units = [_longer(config, curves, method, chosen[method]) for method in longer.values()]
        places = {unit.name: places[method] for unit, method in zip(units, longer.values(), strict=True)}
        long = run.outcomes(units, measure)
        final |= _measured(long)
        chosen |= {unit.name: unit.algorithms[0] for unit in units}
        longer = {side: unit.name for side, unit in zip(longer, units, strict=True)}
        more_rows = tables.metric_rows(long, config.seeds)
        caption = f"{config.long_steps} steps with one seed: the best FCSG method, and the best of each rule."
        pictures.append(Picture(f"{name}-long", report.panels(more_rows, places), caption))
        rows += more_rows

    folder.write("metrics.csv", tables.as_csv(rows))
    by_client = report.client_rows(final, config.seeds, config.clients)
    folder.write("clients.csv", tables.as_csv(by_client))
    if tried:
        folder.write("trials.csv", tables.as_csv(trials.as_rows(tried, "validation_loss")))
    conclude(
        folder,
        report.describe(config, max((len(some) for some in tried.values()), default=0)),
        pictures,
        report.table(rows, by_client, final, chosen),
        report.check(final, longer),
        run.seconds,
    )


def tune(
    config: FewShotSettings, task: Task, run: Runner, methods: Iterable[str] = METHODS
) -> dict[str, list[trials.Trial]]:
    """Return the trials of each method, scored by the loss on validation tasks."""
    plan = replace(plan_of(config, config.trial_rounds), evaluate_every=config.trial_rounds)

    def run_trials(turn: int, asked: dict[str, list[trials.Settings]]) -> dict[str, list[float]]:
        units = {
            method: Unit(
                f"trial {turn} {method}",
                task.for_tuning(),
                plan,
                [METHODS[method].build(one) for one in some],
                [config.trial_seed],
                labels=config.problem(),
            )
            for method, some in asked.items()
        }
        found = run.outcomes(list(units.values()))
        return {method: [_loss(runs[0]) for runs in found[unit.name]] for method, unit in units.items()}

    return trials.search({method: config.space(method) for method in methods}, config.trial_turns, run_trials)


def plan_of(config: FewShotSettings, rounds: int) -> Plan:
    """Return the plan of a run."""
    return Plan(
        rounds,
        config.local_steps,
        outer_batch=config.step_tasks,
        inner_batch=config.shots,
        evaluate_every=config.evaluate_every,
    )


def for_curves(task: Task, tasks: int) -> Task:
    """Return the task with the first of its test tasks only, which are measured several times in a run."""
    return replace(task.for_reporting(), test=task.test._replace(whole=index(task.test.whole, slice(tasks))))


def measured_on(task: Task) -> Measure:
    """Return the function that measures a finished run: on all test tasks, on validation tasks, and at the clients."""

    def measure(part: Part, trace: Trace) -> dict[str, float]:
        found = dict(task.judge.measure(trace.last, task.test.whole))
        found[ACCURACY.on_validation().name] = task.judge.measure(trace.last, task.validation)[ACCURACY.name]
        for number, metrics in enumerate(task.judge.measure_at_clients(trace.last, task.test)):
            found |= {report.at_client(name, number): value for name, value in metrics.items()}
        return {name: float(value) for name, value in found.items()}

    return measure


def _measured(found: Results) -> dict[str, list[dict[str, float]]]:
    """Return what was measured on the last models, by method, one for each seed."""
    return {method: [one.measured for one in runs] for method, (runs,) in found.items()}


def _loss(run: Trace) -> float:
    return float("inf") if run.failure else run.rows[-1][LOSS.on_validation().name]


def _longer(config: FewShotSettings, task: Task, method: str, algorithm: Algorithm) -> Unit:
    """Return a run of the published length, with one seed."""
    rounds = config.long_steps // config.local_steps
    plan = replace(plan_of(config, rounds), evaluate_every=max(1, rounds // 10))
    name = f"{method}, {plan.total_steps} steps"
    return Unit(name, task, plan, [algorithm], config.seeds[:1], labels=config.problem())


FIGURE2 = Experiment("Federated MAML on Omniglot, 5-way-1-shot.", partial(settings, 1), execute)
FIGURE3 = Experiment("Federated MAML on Omniglot, 5-way-5-shot.", partial(settings, 5), execute)
