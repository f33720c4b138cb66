"""The lead of FCSG-M over Local-SCGDM against b, the tasks per client and step of federated MAML.

Local-SCGDM with one y for a step takes the query losses of all b tasks at the same y, in which the adaptation of a task
itself has the weight γ/b. So with b = 1 and γ near 1 it is nearly FCSG-M, and with growing b less and less of a task's
own adaptation is left. All runs see the same number of tasks, with the settings that the trials of Figure 2 choose for
its b (`--from` a folder of Figure 2 takes its trials from there). So that the rule can be told from the momentum,
FCSG-M is also run with the settings of Local-SCGDM.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from matplotlib.figure import Figure

from fedcso.core.algorithm import Algorithm
from fedcso.core.intervals import mean_and_interval
from fedcso.experiments import few_shot, trials
from fedcso.experiments import few_shot_report as report
from fedcso.experiments.experiment import Experiment, Runner, Settings
from fedcso.experiments.few_shot_settings import METHODS, PER_STEP, PER_TASK, FewShotSettings
from fedcso.experiments.few_shot_settings import settings as few_shot_settings
from fedcso.experiments.reproduction import FixedSections, Picture, Statement, conclude
from fedcso.problems import PROBLEMS
from fedcso.problems.few_shot_judge import ACCURACY
from fedcso.reports import figures
from fedcso.reports.looks import look
from fedcso.reports.tables import Estimate
from fedcso.runs.folder import RunFolder
from fedcso.runs.study import Unit

OURS = "FCSG-M"
THEIRS = (f"Local-SCGDM, {PER_STEP}", f"Local-SCGDM, {PER_TASK}")
ALIKE = f"{OURS}, settings of Local-SCGDM"
"""FCSG-M with the learning rate and momentum of the first of them."""
SETTINGS = {OURS: "each with its own settings", ALIKE: "with the same learning rate and momentum"}


@dataclass(frozen=True, kw_only=True)
class TaskBatchSettings(Settings):
    """The settings of the experiment."""

    figure2: FewShotSettings
    """The problem, the trials and the evaluation."""
    batches: Sequence[int] = (1, 2, 5, 10)
    """The values of b."""
    tasks: int
    """Tasks of a run, of all clients and steps together."""
    seeds: Sequence[int]

    def rounds(self, b: int) -> int:
        """Return the rounds in which the clients see all tasks."""
        return self.tasks // (self.figure2.clients * self.figure2.local_steps * b)


def settings(quick: bool) -> TaskBatchSettings:
    """Return the settings of the full experiment; `quick` is that of Figure 2, with fewer tasks and one seed."""
    figure2 = few_shot_settings(1, quick)
    return TaskBatchSettings(figure2=figure2, tasks=400 if quick else 8000, seeds=list(figure2.seeds))


def execute(folder: RunFolder, config: TaskBatchSettings) -> None:
    """Tune and run what is left, draw the figure and check the statement."""
    run, figure2 = Runner(folder, config), config.figure2
    task = PROBLEMS["maml"](**figure2.problem())
    tried = {} if figure2.chosen else few_shot.tune(figure2, task, run, (OURS, *THEIRS))
    methods = contenders(figure2.chosen or {method: trials.best(some) for method, some in tried.items()})
    units = {
        (method, b): Unit(
            f"{method} b={b}",
            few_shot.for_curves(task, figure2.curve_tasks),
            replace(few_shot.plan_of(figure2, config.rounds(b)), outer_batch=b, evaluate_every=config.rounds(b)),
            [algorithm],
            config.seeds,
            labels=figure2.problem(),
        )
        for b in config.batches
        for method, algorithm in methods.items()
    }
    found = run.outcomes(list(units.values()), few_shot.measured_on(task))
    accuracy = {
        key: [one.measured.get(ACCURACY.name, 0.0) for one in found[unit.name][0]] for key, unit in units.items()
    }
    caption = f"Accuracy on unseen characters after {config.tasks:,} tasks, against the tasks per client and step."
    table = [
        {"algorithm": method, "b": b, "steps": unit.plan.total_steps, "seeds": len(config.seeds)}
        | report.options(unit.algorithms[0])
        | {"unseen accuracy": Estimate(*mean_and_interval(accuracy[method, b]))}
        for (method, b), unit in units.items()
    ]
    conclude(
        folder,
        describe(config, max((len(some) for some in tried.values()), default=0)),
        [Picture("task-batch", draw(accuracy), caption)],
        table,
        [check(accuracy, ours) for ours in SETTINGS],
        run.seconds,
    )


def contenders(settled: Mapping[str, trials.Settings]) -> dict[str, Algorithm]:
    """Return the methods by name, with the settings that their trials chose."""
    own = {name: METHODS[name].build(settled[name]) for name in (OURS, *THEIRS)}
    alike = METHODS[OURS].build({name: settled[THEIRS[0]][name] for name in settled[OURS]})
    return {OURS: own.pop(OURS), ALIKE: alike, **own}


Accuracy = Mapping[tuple[str, int], Sequence[float]]
"""Accuracies on unseen characters by method and b, one for each seed (0 for a run that broke off)."""


def draw(accuracy: Accuracy) -> Figure:
    """Draw the accuracy against b, with a curve for each method."""
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.subplots()
    for number, method in enumerate(dict.fromkeys(method for method, _ in accuracy)):
        values = {b: mean_and_interval(some) for (own, b), some in accuracy.items() if own == method}
        means, widths = zip(*values.values(), strict=True)
        axes.errorbar(list(values), means, widths, label=method, capsize=2, **look(number).in_figure())
    axes.set_xscale("log")
    figures.plain_numbers(axes.xaxis)
    axes.set_xlabel("b, tasks per client and step")
    axes.set_ylabel("accuracy, unseen characters")
    axes.grid(True, alpha=0.25, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    figures.add_legend(figure)
    return figure


def check(accuracy: Accuracy, ours: str) -> Statement:
    """Check that the lead of FCSG-M over Local-SCGDM with one y for a step is larger at the largest b than at b = 1.

    `ours` is FCSG-M with its own settings or with those of Local-SCGDM.
    """
    batches = sorted({b for _, b in accuracy})

    def leads(other: str, b: int) -> list[float]:
        return [first - second for first, second in zip(accuracy[ours, b], accuracy[other, b], strict=True)]

    first, last = (leads(THEIRS[0], b) for b in (batches[0], batches[-1]))
    growth = Estimate(*mean_and_interval([late - early for early, late in zip(first, last, strict=True)]))
    measured = "; ".join(
        f"over {other}: " + ", ".join(f"{fmean(leads(other, b)):+.4f} at b = {b}" for b in batches) for other in THEIRS
    )
    return Statement(
        f"the lead of {OURS} over {THEIRS[0]}, {SETTINGS[ours]}, grows with the number of tasks per step",
        growth.mean - growth.half_width > 0,
        f"accuracy of {OURS} minus that of Local-SCGDM, mean over seeds: {measured}. From b = {batches[0]} to b = "
        f"{batches[-1]} the first of these leads grows by {growth}, seed by seed (the whole interval must be above 0).",
    )


def describe(config: TaskBatchSettings, trials_each: int) -> FixedSections:
    """Return the fixed sections of the page; every method had `trials_each` trials, or none."""
    figure2 = config.figure2
    steps = ", ".join(str(config.rounds(b) * figure2.local_steps) for b in config.batches)
    return FixedSections(
        title="Federated MAML: tasks per step",
        paper="The paper's Figures 2 and 3 have 5 tasks per client and step in the published code. How the lead of the "
        "FCSG methods depends on this number is not shown.",
        implemented="FCSG-M and both rules of Local-SCGDM, and FCSG-M with the learning rate and momentum of "
        "Local-SCGDM with one y for a step, on the problem of Figure 2 (5-way-1-shot) for b ∈ "
        f"{list(config.batches)} tasks per client and step; every run sees {config.tasks:,} tasks, in {steps} steps. "
        "All models are measured after adaptation, at the end.",
        data=f"{figure2.data}: {figure2.clients} clients with disjoint training characters and their rotations; "
        f"{figure2.test_tasks} test tasks of unseen characters.",
        hyper_parameters=(
            f"Those that the trials of Figure 2 choose for its {figure2.step_tasks} tasks per step ({trials_each} "
            "trials for each method); they are the same for every b"
            if trials_each
            else "Those of the quick version of Figure 2; they are the same for every b"
        )
        + f". Seeds {list(config.seeds)}.",
        expected="With b = 1 and the same settings all are alike. With growing b, Local-SCGDM with one y for a step "
        "falls behind, because a task's own adaptation has the weight γ/b; with a y for each task it has the weight γ "
        "for every b.",
    )


TASK_BATCH = Experiment("The lead of FCSG-M over Local-SCGDM against the tasks per step.", settings, execute)
