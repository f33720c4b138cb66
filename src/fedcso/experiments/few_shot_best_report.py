"""Few-shot learning in a long run and its alternatives: the table, the figure, the statements, the fixed sections."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from matplotlib.figure import Figure

from fedcso.core.intervals import mean_and_interval
from fedcso.core.trace import Trace
from fedcso.experiments.few_shot_best_settings import TARGETS, VALIDATED, BestSettings
from fedcso.experiments.reproduction import FixedSections, Statement
from fedcso.problems.few_shot_judge import ACCURACY
from fedcso.reports import figures
from fedcso.reports.looks import look
from fedcso.reports.tables import Estimate
from fedcso.runs.study import Unit

Entry = tuple[str, str]
"""A case and a way: what has a task, trials and runs of its own."""


class Trial(NamedTuple):
    """A rate that was tried."""

    rate: float
    steps: int
    score: float
    """The accuracy on validation tasks; 0 for a trial that broke off."""


def trial_line(case: str, way: str, trial: Trial) -> dict[str, Any]:
    """Return the line of a trial."""
    return {"case": case, "way": way, "rate": trial.rate, "steps": trial.steps, VALIDATED: trial.score}


def measured(traces: Sequence[Trace], name: str) -> list[float]:
    """Return what was measured on finished runs; 0 for one that broke off."""
    return [one.measured.get(name, 0.0) for one in traces]


def lines(
    case: str,
    units: Mapping[Entry, Unit],
    rates: Mapping[Entry, float],
    found: Mapping[Entry, Sequence[Trace]],
    suffix: str = "",
) -> list[dict[str, Any]]:
    """Return the table's lines of a case."""
    own = [entry for entry in units if entry[0] == case]
    return [_line(case, entry[1] + suffix, units[entry], rates[entry], found[entry]) for entry in own]


def _line(case: str, way: str, unit: Unit, rate: float, traces: Sequence[Trace]) -> dict[str, Any]:
    costs = traces[0].costs
    return {
        "case": case,
        "way": way,
        "seeds": len(traces),
        "rate": f"{rate:.3g}",
        "unseen accuracy": Estimate(*mean_and_interval(measured(traces, ACCURACY.name))),
        "± over tasks": f"{mean_and_interval(measured(traces, ACCURACY.half_width().name))[0]:.4f}",
        "validation accuracy": Estimate(*mean_and_interval(measured(traces, VALIDATED))),
        "steps": unit.plan.total_steps,
        "samples ξ": costs.outer_samples,
        "gradients": costs.gradients,
        "bytes sent": costs.bytes_up + costs.bytes_down,
        "seconds": sum(one.rows[-1]["seconds"] for one in traces),
    }


Accuracy = Mapping[str, Mapping[str, Sequence[float]]]
"""Accuracies on unseen characters by case and way, one for each seed."""


def draw(accuracy: Accuracy, longer: Mapping[str, Trace], clients: int) -> Figure:
    """Draw the accuracy of every way, and that of the long runs against the tasks seen."""
    figure = Figure(figsize=(11.5, 4.6), layout="constrained")
    bars, curves = figure.subplots(1, 2, width_ratios=[3, 2])
    names = list(dict.fromkeys(way for by_way in accuracy.values() for way in by_way))
    for number, (case, by_way) in enumerate(accuracy.items()):
        values = {way: mean_and_interval(some) for way, some in by_way.items()}
        heights = [names.index(way) + (number - 0.5) * 0.3 for way in values]
        means, widths = zip(*values.values(), strict=True)
        bars.errorbar(means, heights, xerr=widths, label=case, capsize=2, **_dots(number))
        if case in longer:
            rows = longer[case].rows
            tasks = [row["step"] * clients for row in rows]
            curves.plot(tasks, [row[ACCURACY.name] for row in rows], label=case, **look(number).in_figure())
    bars.set_yticks(range(len(names)), names)
    bars.invert_yaxis()
    bars.set_xlabel("accuracy, unseen characters")
    curves.set_xlabel("tasks seen in training, by all clients")
    curves.set_ylabel("accuracy, unseen characters")
    for axes in (bars, curves):
        axes.grid(True, alpha=0.25, linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    figures.add_legend(figure)
    return figure


def _dots(number: int) -> dict[str, Any]:
    return look(number).in_figure() | {"linestyle": "none", "marker": "o"}


def check(config: BestSettings, accuracy: Accuracy, longer: Mapping[str, Trace]) -> list[Statement]:
    """Check what a user would hope for: that the long run reaches its target, and that sharing helps."""
    statements = []
    for case, by_way in accuracy.items():
        together, alone = (by_way[way] for way in ("MAML with Adam at the server", "MAML with Adam, one client alone"))
        gain = Estimate(*mean_and_interval([a - b for a, b in zip(together, alone, strict=True)]))
        statements.append(
            Statement(
                f"{case}: a client gains from meta-learning with the others",
                gain.mean - gain.half_width > 0,
                f"accuracy on unseen characters with all clients minus that of one client alone, seed by seed: {gain} "
                "(the whole interval must be above 0).",
            )
        )
        if case in longer:
            reached = longer[case].measured.get(ACCURACY.name, 0.0)
            half = longer[case].measured.get(ACCURACY.half_width().name, 0.0)
            statements.append(
                Statement(
                    f"{case}: at least {TARGETS[case]:.1%} on unseen characters after "
                    f"{config.long_steps * config.clients:,} tasks",
                    reached >= TARGETS[case],
                    f"{reached:.4f} ± {half:.4f} over {config.test_tasks:,} test tasks, one seed.",
                )
            )
    return statements


def describe(config: BestSettings) -> FixedSections:
    """Return the fixed sections of the page."""
    tuned = (
        f"the rate of every way is chosen on {config.validation_tasks} validation tasks, in trials with seed "
        f"{config.trial_seed}: of four rates for {config.trial_steps} steps, and of the best {config.finalists} of "
        f"them for {config.steps}"
        if config.trial_steps
        else "not tuned"
    )
    return FixedSections(
        title="Few-shot learning: how accurate it gets, and what else one could use",
        paper="Not in the paper, whose Figures 2 and 3 end after about 500 steps.",
        implemented=f"5-way tasks on {config.data}, {config.clients} clients, {config.steps:,} steps for every way, "
        "one task per client and step (the classifier: 80 images). Exchange after every step, except for Per-FedAvg, "
        "Reptile and the classifier, which exchange after 10. Clients draw new tasks in every step, with Reptile in "
        "every round, and have one task for the whole run with Per-FedAvg. All models but the nearest centroid's take "
        "three steps of adaptation before they are measured. One client alone sees as many tasks per step as all "
        "clients together, made of its own characters. The best of the first three on validation tasks is trained for "
        f"{config.long_steps:,} steps.",
        data=f"{config.data}: disjoint training characters at the clients, with rotations; {config.test_tasks:,} test "
        "tasks of unseen characters.",
        hyper_parameters=f"Rates fall along half a cosine (Per-FedAvg and Reptile: constant); {tuned}. Seeds "
        f"{list(config.seeds)}, the long run has the first one.",
        expected="MAML in one place, with 1.9 million tasks, has 98.7 % (1-shot) and 99.9 % (5-shot); no federated "
        f"result is published. Targets of the long run: {TARGETS['1-shot']:.1%} and {TARGETS['5-shot']:.1%}.",
    )
