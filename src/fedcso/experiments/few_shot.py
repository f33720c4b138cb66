"""Figures 2 and 3: federated MAML on Omniglot, 5-way-1-shot and 5-way-5-shot.

The figures show loss and accuracy on tasks of the clients' training characters and of unseen characters, against steps
and rounds. The settings of every method are chosen with the same number of trials. A longer run shows what the best
method reaches.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean
from typing import Any

from matplotlib.figure import Figure

from fedcso.algorithms import ALGORITHMS
from fedcso.core.intervals import mean_and_interval
from fedcso.core.plan import Plan
from fedcso.core.schedules import Cosine
from fedcso.core.task import Task
from fedcso.core.trace import Trace
from fedcso.core.tree import index
from fedcso.experiments import trials
from fedcso.experiments.experiment import Experiment, Runner, Settings
from fedcso.experiments.reproduction import FixedSections, Picture, Statement, conclude
from fedcso.experiments.trials import Space
from fedcso.problems import PROBLEMS
from fedcso.problems.maml import ACCURACY, LOSS
from fedcso.reports import figures, tables
from fedcso.reports.recorded import Record
from fedcso.reports.tables import Estimate
from fedcso.runs.folder import RunFolder
from fedcso.runs.study import Unit

METHODS = {
    "FCSG": (),
    "FCSG-M": ("momentum",),
    "Acc-FCSG-M": ("momentum",),
    "Local-SCGD": ("tracking",),
    "Local-SCGDM": ("tracking", "momentum"),
}
"""The methods, and their settings besides the learning rate."""
FOUND = {
    "FCSG": {"learning_rate": 0.4},
    "FCSG-M": {"learning_rate": 0.9, "momentum": 0.1},
    "Acc-FCSG-M": {"learning_rate": 0.3, "momentum": 0.9},
    "Local-SCGD": {"learning_rate": 0.3, "tracking": 0.9},
    "Local-SCGDM": {"learning_rate": 0.5, "tracking": 0.9, "momentum": 0.1},
}
"""The settings of the quick version: roughly those chosen by the trials of Figure 2 on Omniglot."""
OURS = ("FCSG", "FCSG-M", "Acc-FCSG-M")
PANELS = {
    LOSS.over_clients(): "loss, training characters",
    ACCURACY.over_clients(): "accuracy, training characters",
    LOSS: "loss, unseen characters",
    ACCURACY: "accuracy, unseen characters",
}


@dataclass(frozen=True, kw_only=True)
class FewShotSettings(Settings):
    """The settings of the experiment."""

    shots: int
    data: str
    clients: int = 16
    filters: int
    local_steps: int = 10
    rotations: bool = False
    rounds: int
    long_steps: int
    """Steps of the longer run at the end; 0 for no such run."""
    seeds: Sequence[int]
    evaluate_every: int
    curve_tasks: int
    client_tasks: int = 4
    test_tasks: int
    trial_rounds: int
    trial_turns: int = 2
    trial_seed: int = 1000
    rates: Sequence[float] = (0.01, 0.05, 0.1, 0.5)
    momentum: Sequence[float] = (0.1, 0.5, 0.9)
    tracking: Sequence[float] = (0.1, 0.5, 0.9)
    chosen: Mapping[str, trials.Settings]
    """The settings of every method; if empty, they are chosen by trials."""

    def values(self, name: str) -> Sequence[float]:
        """Return the values that may be chosen for a setting other than the learning rate."""
        return {"momentum": self.momentum, "tracking": self.tracking}[name]


def settings(shots: int, quick: bool) -> FewShotSettings:
    """Return the settings of the full experiment; `quick` has embedded glyphs, a smaller network, and no tuning."""
    return FewShotSettings(
        shots=shots,
        data="glyphs" if quick else "omniglot",
        filters=32 if quick else 64,
        rounds=(8 if quick else 15) if shots == 1 else (6 if quick else 10),
        long_steps=0 if quick else 800,
        seeds=[0] if quick else [0, 1, 2],
        evaluate_every=2 if quick else 3,
        curve_tasks=60 if quick else 100,
        test_tasks=200 if quick else 1000,
        trial_rounds=4 if shots == 1 else 3,
        chosen=FOUND if quick else {},
    )


def execute(folder: RunFolder, config: FewShotSettings) -> None:
    """Tune and run what is left, draw the figures and check the statements."""
    run = Runner(folder, config)
    task = PROBLEMS["maml"](
        data=config.data,
        clients=config.clients,
        shots=config.shots,
        filters=config.filters,
        rotations=config.rotations,
        client_tasks=config.client_tasks,
        test_tasks=config.test_tasks,
    )

    def run_trials(turn: int, settings: dict[str, list[trials.Settings]]) -> dict[str, list[float]]:
        plan = replace(_plan(config, config.trial_rounds), evaluate_every=config.trial_rounds)
        units = {
            method: Unit(
                f"trial {turn} {method}",
                task.for_tuning(),
                plan,
                [ALGORITHMS[method](**one) for one in some],
                [config.trial_seed],
            )
            for method, some in settings.items()
        }
        found = run(list(units.values()))
        return {method: [_loss(runs[0]) for runs in found[unit.name]] for method, unit in units.items()}

    spaces = {
        method: Space(config.rates, {name: config.values(name) for name in more}) for method, more in METHODS.items()
    }
    tried = {} if config.chosen else trials.search(spaces, config.trial_turns, run_trials)
    settled = config.chosen or {method: trials.best(some) for method, some in tried.items()}
    chosen = {method: ALGORITHMS[method](**settings) for method, settings in settled.items()}
    some = task.test._replace(whole=index(task.test.whole, slice(config.curve_tasks)))
    for_curves = replace(task.for_reporting(), test=some)
    found = run(
        [
            Unit(method, for_curves, _plan(config, config.rounds), [algorithm], config.seeds)
            for method, algorithm in chosen.items()
        ]
    )
    rows = tables.metric_rows(found, config.seeds)
    name = "figure2" if config.shots == 1 else "figure3"
    pictures = [
        Picture(
            name,
            _panels(rows),
            "Means over seeds with 95 % bands, against rounds (top axis) and local steps (bottom axis).",
        )
    ]
    if config.long_steps:
        leader = max(OURS, key=lambda method: fmean(_validated(task, one) for one in found[method][0]))
        longer = _longer(config, for_curves, leader, chosen[leader])
        long = run([longer])
        found, chosen[longer.name] = found | long, longer.algorithms[0]
        more_rows = tables.metric_rows(long, config.seeds)
        pictures.append(Picture(f"{name}-long", _panels(more_rows), f"A longer run with one seed: {longer.name}."))
        rows += more_rows

    final = {
        method: [task.judge.measure(one.last, task.test.whole) for one in runs] for method, (runs,) in found.items()
    }
    folder.write("metrics.csv", tables.as_csv(rows))
    by_client = tables.client_rows(found, config.seeds, task, lambda run: run.last)
    folder.write("clients.csv", tables.as_csv(by_client))
    if tried:
        folder.write("trials.csv", tables.as_csv(trials.as_rows(tried, "validation_loss")))
    conclude(
        folder,
        describe(config, max((len(some) for some in tried.values()), default=0)),
        pictures,
        _table(rows, by_client, final, chosen),
        check(final),
        run.seconds,
    )


def _plan(config: FewShotSettings, rounds: int) -> Plan:
    return Plan(rounds, config.local_steps, inner_batch=config.shots, evaluate_every=config.evaluate_every)


def _loss(run: Trace) -> float:
    return float("inf") if run.failure else run.rows[-1][LOSS.on_validation().name]


def _validated(task: Task, run: Trace) -> float:
    return float(task.judge.measure(run.last, task.validation)[ACCURACY.name])


def _longer(config: FewShotSettings, task: Task, method: str, algorithm: Any) -> Unit:
    """Return a longer run of a method that averages after every step and has a decaying learning rate.

    The other runs are limited by noise: a client's step follows a single task, and q such steps in a row go astray.
    """
    plan = replace(_plan(config, config.long_steps), local_steps=1, evaluate_every=config.long_steps // 10)
    decaying = replace(algorithm, learning_rate=Cosine(algorithm.learning_rate, plan.total_steps, floor=0.05))
    return Unit(f"{method}, q = 1, {plan.total_steps} steps", task, plan, [decaying], config.seeds[:1])


def _panels(rows: Sequence[dict[str, Any]]) -> Figure:
    """Draw loss (left) and accuracy (right) on training characters (top) and unseen characters (bottom)."""
    figure = Figure(figsize=(10.5, 7.6), layout="constrained")
    per_round = max(row["step"] for row in rows) / max(row["round"] for row in rows)
    for number, (axes, (metric, title)) in enumerate(zip(figure.subplots(2, 2).flat, PANELS.items(), strict=True)):
        for place, method in enumerate(dict.fromkeys(row["algorithm"] for row in rows)):
            these = [row for row in rows if row["algorithm"] == method]
            figures.curve(axes, these, metric, method, place, x="step")
        figures.finish(axes, metric)
        axes.set_xlabel("local steps")
        axes.set_ylabel(title)
        rounds = axes.secondary_xaxis("top", functions=(lambda s: s / per_round, lambda r: r * per_round))
        rounds.set_xlabel("communication rounds" if number < 2 else "")
    figures.add_legend(figure)
    return figure


def _table(
    rows: Sequence[dict[str, Any]],
    by_client: Sequence[dict[str, Any]],
    final: dict[str, list[dict[str, Any]]],
    chosen: dict[str, Any],
) -> list[dict[str, Any]]:
    """Return a row for every method: its settings, its last model on all test tasks, and its costs."""
    costs = {line["algorithm"]: line for line in tables.summary(Record(rows))}
    table = []
    for method, runs in final.items():
        line, algorithm = costs[method], chosen[method]
        options = {
            name.replace("_", " "): _format(getattr(algorithm, name, None))
            for name in ("learning_rate", "momentum", "tracking")
        }
        measured = {
            "unseen accuracy": Estimate(*mean_and_interval([float(run["accuracy"]) for run in runs])),
            "± over tasks": f"{fmean(float(run['accuracy_interval']) for run in runs):.4f}",
            "unseen loss": Estimate(*mean_and_interval([float(run["loss"]) for run in runs])),
            "training accuracy": line["client_accuracy"],
            "worst client": f"{min(row['accuracy'] for row in by_client if row['algorithm'] == method):.4f}",
        }
        table.append(
            {"algorithm": method, "seeds": len(runs)}
            | options
            | measured
            | {name: line[name] for name in ("rounds", "samples ξ", "gradients", "bytes sent", "seconds")}
        )
    return table


def _format(value: Any) -> str:
    if isinstance(value, Cosine):
        return f"{value.start:.3g}, decaying"
    return "–" if value is None else f"{value:.3g}"


def check(final: dict[str, list[dict[str, Any]]]) -> list[Statement]:
    """Check what the paper states about Figures 2 and 3, on unseen characters."""
    accuracy = {method: [float(run["accuracy"]) for run in runs] for method, runs in final.items()}
    level = {method: fmean(values) for method, values in accuracy.items()}
    theirs = [method for method in METHODS if method not in OURS]
    best_of_ours, best_of_theirs = max(OURS, key=level.__getitem__), max(theirs, key=level.__getitem__)
    pairs = zip(accuracy[best_of_ours], accuracy[best_of_theirs], strict=True)
    ahead = Estimate(*mean_and_interval([a - b for a, b in pairs]))
    ordered = Statement(
        "the three FCSG methods are ahead of Local-SCGD and Local-SCGDM",
        min(level[method] for method in OURS) > max(level[method] for method in theirs),
        "; ".join(f"{method} {level[method]:.4f}" for method in sorted(METHODS, key=lambda m: -level[m]))
        + " (accuracy on unseen characters, mean over seeds; every FCSG method must be above both others).",
    )
    margin = Statement(
        "their lead is larger than its confidence interval",
        ahead.mean - ahead.half_width > 0,
        f"{best_of_ours} minus {best_of_theirs}, the best of each side, seed by seed: {ahead} (the whole interval must "
        "be above 0).",
    )
    return [ordered, margin]


def describe(config: FewShotSettings, trials_each: int) -> FixedSections:
    """Return the fixed sections of the page; every method had `trials_each` trials, or none."""
    shots = config.shots
    return FixedSections(
        title=f"Figure {2 if shots == 1 else 3}: federated MAML, 5-way-{shots}-shot",
        paper="Training and test loss and accuracy on Omniglot with 16 clients for FCSG, FCSG-M, Acc-FCSG-M, "
        "Local-SCGD and Local-SCGDM; four convolutions with 64 filters, λ = 0.4, one adaptation step in training and "
        "three in testing, 15 query images per class, meta step sizes {0.1, 0.05, 0.01}, momenta {0.1, 0.5, 0.9}. The "
        "published code uses 5 tasks per client and step, q = 10, about 500 steps, and rotated characters as extra "
        "classes.",
        implemented=f"The same objective with exact second derivatives; one task per client and step, "
        f"q = {config.local_steps}, {config.rounds * config.local_steps} steps, strided convolutions with "
        f"{config.filters} filters, batch norm before ReLU, and a last layer that starts at zero. "
        "“Training” columns and panels are for tasks of the clients' own characters, evaluated like those of unseen "
        "characters; “worst client” is the lowest accuracy of any client with any seed. All methods are limited by "
        "noise: a client's step follows a single task, and q such steps in a row go astray. Therefore the best FCSG "
        "method (on validation data) is run once more for longer, with averaging after every step and a learning rate "
        "that decays along half a cosine.",
        data=f"{config.data}: {config.clients} clients with disjoint training characters"
        f"{', and their rotations by 90, 180 and 270° as further characters' if config.rotations else ''}. Curves are "
        f"over {config.curve_tasks} tasks of unseen characters, the table is over {config.test_tasks}.",
        hyper_parameters=f"Learning rates {config.rates}, momentum {config.momentum}, tracking weight "
        f"{config.tracking}; {trials_each} trials of {config.trial_rounds} rounds for each method (first the learning "
        "rates, then the other settings one at a time; methods without other settings try more learning rates), chosen "
        f"by the loss on 100 tasks of validation characters with seed {config.trial_seed}; reported with the seeds "
        f"{config.seeds}. All trials are in `trials.csv` of the run folder."
        if trials_each
        else f"Not tuned here, but taken from the trials of the full Figure 2; seeds {config.seeds}.",
        expected="The three FCSG methods are far ahead of the SCGD methods; 5 shots are better than 1. (The paper "
        "shows curves without numbers.)",
    )


FIGURE2 = Experiment("Federated MAML on Omniglot, 5-way-1-shot.", partial(settings, 1), execute)
FIGURE3 = Experiment("Federated MAML on Omniglot, 5-way-5-shot.", partial(settings, 5), execute)
