"""Figures 2 and 3: panels, table, statements and the page's fixed sections."""

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from matplotlib.figure import Figure

from fedcso.core.algorithm import Algorithm
from fedcso.core.intervals import mean_and_interval
from fedcso.experiments.few_shot_settings import OURS, THEIRS, FewShotSettings
from fedcso.experiments.reproduction import FixedSections, Statement
from fedcso.problems.few_shot_judge import ACCURACY, LOSS
from fedcso.reports import figures, tables
from fedcso.reports.recorded import Record
from fedcso.reports.tables import Estimate

PANELS = {
    LOSS.over_clients(): "loss, training characters",
    ACCURACY.over_clients(): "accuracy, training characters",
    LOSS: "loss, unseen characters",
    ACCURACY: "accuracy, unseen characters",
}

Final = Mapping[str, Sequence[Mapping[str, float]]]
"""What was measured on the last models: by method, one for each seed; nothing for a run that broke off."""


def at_client(metric: str, number: int) -> str:
    """Return the name of a metric that a client measured."""
    return f"{metric}_at_client_{number}"


def client_rows(final: Final, seeds: Sequence[int], clients: int) -> list[dict[str, Any]]:
    """Return one row per run and client with what the client measured on the last model."""
    return [
        {"algorithm": method, "seed": seed, "client": number}
        | {name: run[at_client(name, number)] for name in (ACCURACY.name, LOSS.name)}
        for method, runs in final.items()
        for seed, run in zip(seeds, runs, strict=False)
        if run
        for number in range(clients)
    ]


def panels(rows: Sequence[dict[str, Any]], places: Mapping[str, int]) -> Figure:
    """Draw loss (left) and accuracy (right) on training characters (top) and unseen characters (bottom).

    `places` gives every method its look; a longer run has that of its method.
    """
    figure = Figure(figsize=(10.5, 7.6), layout="constrained")
    per_round = max(row["step"] for row in rows) / max(row["round"] for row in rows)
    for number, (axes, (metric, title)) in enumerate(zip(figure.subplots(2, 2).flat, PANELS.items(), strict=True)):
        for method, place in places.items():
            these = [row for row in rows if row["algorithm"] == method]
            figures.curve(axes, these, metric, method, place, x="step")
        figures.finish(axes, metric)
        axes.set_xlabel("local steps")
        axes.set_ylabel(title)
        rounds = axes.secondary_xaxis("top", functions=(lambda s: s / per_round, lambda r: r * per_round))
        rounds.set_xlabel("communication rounds" if number < 2 else "")
    figures.add_legend(figure)
    return figure


def table(
    rows: Sequence[dict[str, Any]], by_client: Sequence[dict[str, Any]], final: Final, chosen: Mapping[str, Algorithm]
) -> list[dict[str, Any]]:
    """Return a row for every method: its settings, its last model on all test tasks, and its costs."""
    costs = {line["algorithm"]: line for line in tables.summary(Record(rows))}
    lines = []
    for method, runs in final.items():
        line, algorithm = costs[method], chosen[method]
        at_home = [row[ACCURACY.name] for row in by_client if row["algorithm"] == method]
        measured = {
            "unseen accuracy": Estimate(*mean_and_interval(_values(runs, ACCURACY.name))),
            "± over tasks": f"{fmean(_values(runs, ACCURACY.half_width().name)):.4f}",
            "unseen loss": Estimate(*mean_and_interval(_values(runs, LOSS.name))),
            "training accuracy": line[ACCURACY.over_clients().name],
            "worst client": f"{min(at_home, default=math.nan):.4f}",
        }
        lines.append(
            {"algorithm": method, "seeds": len(runs)}
            | options(algorithm)
            | measured
            | {name: line[name] for name in ("rounds", "samples ξ", "gradients", "bytes sent", "seconds")}
        )
    return lines


def _values(runs: Sequence[Mapping[str, float]], name: str) -> list[float]:
    """Return a metric for every seed; nan for a run that broke off."""
    return [run.get(name, math.nan) for run in runs]


def options(algorithm: Algorithm) -> dict[str, str]:
    """Return the settings of a method as columns of a table."""
    values = {name: getattr(algorithm, name, None) for name in ("learning_rate", "momentum", "tracking")}
    return {name.replace("_", " "): "–" if value is None else f"{value:.3g}" for name, value in values.items()}


def check(final: Final, longer: Mapping[str, str]) -> list[Statement]:
    """Check what the paper states about Figures 2 and 3 on unseen characters, for each rule of Local-SCGD(M).

    `longer` names the longer runs: that of the best FCSG method, and those of the best method of each rule.
    """
    statements = []
    for rule, theirs in THEIRS.items():
        statements += [_ordered(final, rule, theirs), _margin(final, rule, theirs)]
        if longer:
            statements.append(_after_longer(final, rule, longer["FCSG"], longer[rule]))
    return statements


def best(final: Final, methods: Sequence[str]) -> str:
    """Return the method with the highest mean accuracy on validation tasks; a run that broke off counts as 0."""
    return max(methods, key=lambda method: fmean(run.get(ACCURACY.on_validation().name, 0.0) for run in final[method]))


def _level(final: Final, method: str) -> float:
    return fmean(_values(final[method], ACCURACY.name))


def _ordered(final: Final, rule: str, theirs: Sequence[str]) -> Statement:
    level = {method: _level(final, method) for method in (*OURS, *theirs)}
    return Statement(
        f"the three FCSG methods are ahead of Local-SCGD and Local-SCGDM ({rule})",
        all(level[ours] > level[other] for ours in OURS for other in theirs),
        "; ".join(f"{method} {level[method]:.4f}" for method in sorted(level, key=lambda m: -level[m]))
        + " (accuracy on unseen characters, mean over seeds; every FCSG method must be above both others).",
    )


def _margin(final: Final, rule: str, theirs: Sequence[str]) -> Statement:
    ours, other = (best(final, some) for some in (OURS, theirs))
    pairs = zip(_values(final[ours], ACCURACY.name), _values(final[other], ACCURACY.name), strict=True)
    ahead = Estimate(*mean_and_interval([a - b for a, b in pairs]))
    return Statement(
        f"their lead is larger than its confidence interval ({rule})",
        ahead.mean - ahead.half_width > 0,
        f"{ours} minus {other}, each the best of its side on validation tasks, seed by seed: {ahead} (the whole "
        "interval must be above 0).",
    )


def _after_longer(final: Final, rule: str, ours: str, other: str) -> Statement:
    (first,), (second,) = (_values(final[method], ACCURACY.name) for method in (ours, other))
    (wide,), (wide_too,) = (_values(final[method], ACCURACY.half_width().name) for method in (ours, other))
    width = math.hypot(wide, wide_too)
    return Statement(
        f"the lead remains in a run of the published length ({rule})",
        first - second > width,
        f"{ours} {first:.4f}, {other} {second:.4f}: a difference of {first - second:.4f}, which must be above "
        f"{width:.4f}, the half-width of its 95 % interval over test tasks (one seed).",
    )


def describe(config: FewShotSettings, trials_each: int) -> FixedSections:
    """Return the fixed sections of the page; every method had `trials_each` trials, or none."""
    shots, trial_steps = config.shots, config.trial_rounds * config.local_steps
    longer = (
        f" Then the best FCSG method and the best method of each rule, by the accuracy on validation characters, run "
        f"for {config.long_steps} steps with one seed."
        if config.long_steps
        else ""
    )
    return FixedSections(
        title=f"Figure {2 if shots == 1 else 3}: federated MAML, 5-way-{shots}-shot",
        paper="Training and test loss and accuracy on Omniglot with 16 clients for FCSG, FCSG-M, Acc-FCSG-M, "
        "Local-SCGD and Local-SCGDM; four convolutions with 64 filters, λ = 0.4, one adaptation step in training and "
        "three in testing, 15 query images per class, meta step sizes {0.1, 0.05, 0.01}, momenta {0.1, 0.5, 0.9}. The "
        "published code uses 5 tasks per client and step, q = 10, about 500 steps, and rotated characters as extra "
        "classes.",
        implemented=f"The same objective with exact second derivatives; {config.step_tasks} tasks per client and step, "
        f"q = {config.local_steps}, {config.rounds * config.local_steps} steps, strided convolutions with "
        f"{config.filters} filters, batch norm before ReLU, and a last layer that starts at zero.{longer} Local-SCGD "
        "and Local-SCGDM are run with both of their rules. “y per step” (Gao et al.): the query losses of all tasks of "
        "a step are taken at one tracked y, in which the adaptation of a task itself has the weight γ/b. “y per task” "
        "(the published code): each task's adapted model is blended with the last y by itself, with the weight γ. With "
        "one task per step the rules are the same, and with γ near 1 they are nearly FCSG and FCSG-M. All models, also "
        "those of Local-SCGD and Local-SCGDM, are measured after adaptation to each task. “Training” columns and "
        "panels are for tasks of the clients' own characters, evaluated like those of unseen characters; “worst "
        "client” is the lowest accuracy of any client with any seed.",
        data=f"{config.data}: {config.clients} clients with disjoint training characters"
        f"{', and their rotations by 90, 180 and 270° as further characters' if config.rotations else ''}. Curves are "
        f"over {config.curve_tasks} tasks of unseen characters, the table is over {config.test_tasks}.",
        hyper_parameters=f"Learning rates {list(config.rates)} (the paper's, and a larger one, because earlier trials "
        f"preferred values above the paper's), momentum {list(config.momentum)}, tracking weight "
        f"{list(config.tracking)}; {trials_each} trials of {trial_steps} steps for each method: first all learning "
        "rates, with the momentum and tracking weight that trials with one task per step had chosen; then, at the best "
        "rate, two more values of the others (two momenta or two tracking weights; for Local-SCGDM one of each; for "
        "FCSG, which has neither, two more rates). The lowest loss on 100 tasks of validation characters with seed "
        f"{config.trial_seed} decides; reported with the seeds {list(config.seeds)}. All trials are in `trials.csv` of "
        "the run folder."
        if trials_each
        else f"Not tuned here, but roughly those of trials on Omniglot with one task per client and step; seeds "
        f"{list(config.seeds)}.",
        expected="The three FCSG methods are far ahead of the SCGD methods; 5 shots are better than 1. (The paper "
        "shows curves without numbers.)",
    )
