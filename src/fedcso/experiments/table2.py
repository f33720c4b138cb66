"""Table 2: average precision with rare positives at 16 clients, on MNIST and CIFAR-10.

Methods differ in WHAT they minimise: FedAvg the cross-entropy, CODA+ a surrogate of AUROC, the FCSG methods one of
AUPRC. All have the same network, the same number of examples a step, and the same number of trials to choose their
settings on validation data, among them how long a gradient may be.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from statistics import fmean
from typing import Any, NamedTuple

from matplotlib.figure import Figure

from fedcso import figures, results
from fedcso.algorithm import Algorithm
from fedcso.algorithms import ALGORITHMS
from fedcso.commands.common import carry_out as execute
from fedcso.experiments import trials
from fedcso.experiments.reproduction import About, Picture, Statement, conclude
from fedcso.experiments.trials import Settings, Space
from fedcso.folder import RunFolder
from fedcso.metrics import mean_and_interval
from fedcso.plan import Plan
from fedcso.problems import PROBLEMS
from fedcso.results import Estimate
from fedcso.schedules import Cosine
from fedcso.settings import Config, study_of
from fedcso.specs import hyper_parameters
from fedcso.study import Results, Unit
from fedcso.task import Task
from fedcso.trace import Trace


class Method(NamedTuple):
    """Which method minimises what, and what it has to choose besides its learning rate and the clipping."""

    algorithm: str
    problem: str
    others: tuple[str, ...] = ()
    options: tuple[tuple[str, Any], ...] = ()


METHODS = {
    "FedAvg": Method("FedAvg", "cross_entropy"),
    "FedAvg, weighted": Method("FedAvg", "cross_entropy", options=(("weighted", True),)),
    "CODA+": Method("CODA+", "auroc", ("proximity",)),
    "FCSG": Method("FCSG", "auprc"),
    "FCSG-M": Method("FCSG-M", "auprc", ("momentum",)),
    "Acc-FCSG-M": Method("Acc-FCSG-M", "auprc", ("momentum",)),
}
OURS = ("FCSG", "FCSG-M", "Acc-FCSG-M")
PAPER = {
    "mnist": {"FedAvg": 0.9357, "CODA+": 0.9733, "FCSG": 0.9868, "FCSG-M": 0.9878, "Acc-FCSG-M": 0.9879},
    "cifar10": {"FedAvg": 0.5059, "CODA+": 0.6039, "FCSG": 0.7130, "FCSG-M": 0.7157, "Acc-FCSG-M": 0.7184},
}
"""What the paper's Table 2 says."""


def settings(quick: bool) -> Config:
    """All that the experiment depends on; `quick` has the embedded digits, and does not tune."""
    return {
        "data": ["digits"] if quick else ["mnist", "cifar10"],
        "clients": 16,
        "removed": 0.8,
        "local_steps": 10,
        "outer_batch": 8,
        "inner_batch": 32,
        "margin": 0.5,
        "rounds": {"digits": 40, "mnist": 60, "cifar10": 200},
        "trial_rounds": {"digits": 0, "mnist": 15, "cifar10": 25},
        "seeds": [0, 1, 2],
        "trial_seed": 1000,
        "trial_turns": 0 if quick else 2,
        "rates": [0.3] if quick else [0.01, 0.05, 0.2],
        "clip": [1.0] if quick else [0.3, 1.0, 0.0],
        "momentum": [0.5] if quick else [0.1, 0.5, 0.9],
        "proximity": [0.01] if quick else [0.001, 0.01, 0.1],
        "evaluations": 20,
        "checkpoint_rounds": 0,
        "checkpoint_seconds": 30.0,
        "track": "none",
    }


def carry_out(folder: RunFolder) -> int:
    """Tune, run, draw, check; goes on where it was interrupted."""
    config = folder.config()
    seconds = 0.0

    def play(units: Sequence[Unit]) -> Results:
        nonlocal seconds
        found = execute(folder, study_of(config, list(units), folder.path), "none")
        seconds += sum(max(run.rows[-1]["seconds"] for runs in settings for run in runs) for settings in found.values())
        return found

    rows: list[dict[str, Any]] = []
    table: list[dict[str, Any]] = []
    tuning: list[dict[str, Any]] = []
    accuracy: dict[str, dict[str, list[float]]] = {}
    for data in config["data"]:
        tasks = {method: _task(config, data, what) for method, what in METHODS.items()}
        tried = trials.search(
            {
                method: Space(config["rates"], {name: config[name] for name in ("clip", *what.others)})
                for method, what in METHODS.items()
            },
            config["trial_turns"],
            partial(_play_trials, config, data, tasks, play),
        )
        chosen = {method: trials.best(some) for method, some in tried.items()}
        found = play(
            [
                _unit(config, f"{method} on {data}", tasks[method], method, chosen[method], config["rounds"][data])
                for method in METHODS
            ]
        )
        accuracy[data] = {
            method: [run.rows[-1]["average_precision"] for run in found[f"{method} on {data}"][0]] for method in METHODS
        }
        these = results.metric_rows(found, config["seeds"])
        table += _lines(data, these, accuracy[data], chosen)
        rows += [{"data": data, **row} for row in these]
        tuning += [{"data": data, **row} for row in trials.as_rows(tried, "minus_validation_ap")]
    folder.write("metrics.csv", results.as_csv(rows))
    folder.write("trials.csv", results.as_csv(tuning))
    picture = Picture("table2", _panels(rows), "Test average precision; mean over seeds with 95 % bands.")
    each = len(tuning) // len(config["data"]) // len(METHODS)
    conclude(folder, _about(config, each), [picture], table, check(accuracy), seconds)
    return 0


def _task(config: Config, data: str, what: Method) -> Task:
    options = dict(what.options) | ({"margin": config["margin"]} if what.problem == "auprc" else {})
    return PROBLEMS[what.problem](data=data, clients=config["clients"], removed=config["removed"], **options)


def _unit(
    config: Config, name: str, task: Task, method: str, settings: Settings, rounds: int, trial: bool = False
) -> Unit:
    """A method with its settings; the learning rate falls along half a cosine, for all methods alike."""
    what = METHODS[method]
    kind = ALGORITHMS[what.algorithm]
    plan = Plan(
        rounds,
        config["local_steps"],
        # All methods see as many examples a step: b positives and m others, or b + m.
        config["outer_batch"] + (0 if what.problem == "auprc" else config["inner_batch"]),
        config["inner_batch"],
        evaluate_every=rounds if trial else max(1, rounds // config["evaluations"]),
        clip=settings["clip"],
    )
    algorithm: Algorithm = kind(**{k: v for k, v in settings.items() if k in hyper_parameters(kind)})
    if what.algorithm == "CODA+":  # brings its own: stages
        algorithm = replace(algorithm, stage_steps=max(1, plan.total_steps // 3))  # type: ignore[type-var]
    else:
        rate = Cosine(settings["learning_rate"], plan.total_steps, floor=0.05)
        algorithm = replace(algorithm, learning_rate=rate)  # type: ignore[type-var]
    seeds = [config["trial_seed"]] if trial else config["seeds"]
    test = task.validation if trial else task.test
    return Unit(name, task, plan, [algorithm], seeds, test)


def _play_trials(
    config: Config,
    data: str,
    tasks: dict[str, Task],
    play: Callable[[Sequence[Unit]], Results],
    turn: int,
    asked: dict[str, list[Settings]],
) -> dict[str, list[float]]:
    if all(len(some) == 1 for some in asked.values()) and turn == 0:
        return {method: [0.0] for method in asked}  # there is no choice
    names = {
        (method, number): f"trial {turn} {method} on {data} {number}"
        for method, some in asked.items()
        for number in range(len(some))
    }
    rounds = config["trial_rounds"][data]
    found = play(
        [
            _unit(config, name, tasks[method], method, asked[method][number], rounds, trial=True)
            for (method, number), name in names.items()
        ]
    )
    return {
        method: [_score(found[names[method, number]][0][0]) for number in range(len(some))]
        for method, some in asked.items()
    }


def _score(run: Trace) -> float:
    return float("inf") if run.failure else -run.rows[-1]["average_precision"]


def _lines(
    data: str, rows: Sequence[dict[str, Any]], accuracy: dict[str, list[float]], chosen: dict[str, Settings]
) -> list[dict[str, Any]]:
    """What stands in the table of one data set."""
    summary = {line["algorithm"]: line for line in results.summary(rows)}
    lines = []
    for method, values in accuracy.items():
        line = summary[f"{method} on {data}"]
        lines.append(
            {"method": method, "data": data, "seeds": len(values)}
            | {"average precision": Estimate(*mean_and_interval(values))}
            | {"paper": PAPER.get(data, {}).get(method, "–"), "chance": f"{line['prevalence'].mean:.3f}"}
            | {"mean over clients": line["client_average_precision"], "AUROC": line["auroc"]}
            | {"settings": ", ".join(f"{name.replace('_', ' ')} {v:.3g}" for name, v in chosen[method].items())}
            | {name: line[name] for name in ("rounds", "samples ξ", "samples η", "gradients", "bytes sent", "seconds")}
        )
    return lines


def _panels(rows: Sequence[dict[str, Any]]) -> Figure:
    names = list(dict.fromkeys(row["data"] for row in rows))
    figure = Figure(figsize=(5.6 * len(names), 4.2), layout="constrained")
    for axes, data in zip(figure.subplots(1, len(names), squeeze=False)[0], names, strict=True):
        for place, method in enumerate(METHODS):
            these = [row for row in rows if row["algorithm"] == f"{method} on {data}"]
            figures.curve(axes, these, "average_precision", method, place)
        axes.axhline(these[0]["prevalence"], color="#8A8A8A", linewidth=1, linestyle=":", label="chance")
        figures.finish(axes, "average_precision")
        axes.set_title(data)
    return figure


def check(accuracy: dict[str, dict[str, list[float]]]) -> list[Statement]:
    """The paper's statement for each data set: the FCSG family is ahead of FedAvg and of CODA+."""
    statements = []
    for data, by_method in accuracy.items():
        level = {method: fmean(values) for method, values in by_method.items()}
        others = [method for method in METHODS if method not in OURS]
        ours, theirs = max(OURS, key=level.__getitem__), max(others, key=level.__getitem__)
        pairs = zip(by_method[ours], by_method[theirs], strict=True)
        ahead = Estimate(*mean_and_interval([a - b for a, b in pairs]))
        statements.append(
            Statement(
                f"on {data} the FCSG methods have a higher average precision than FedAvg and CODA+",
                min(level[m] for m in OURS) > max(level[m] for m in others) and ahead.mean - ahead.half_width > 0,
                "; ".join(f"{method} {level[method]:.4f}" for method in sorted(level, key=lambda m: -level[m]))
                + f"; {ours} minus {theirs}, seed by seed: {ahead} (every FCSG method must be above all others, and "
                "this interval above 0).",
            )
        )
    return statements


def _about(config: Config, each: int) -> About:
    return About(
        title="Table 2: average precision with rare positives",
        paper="Final test average precision on MNIST and CIFAR-10: classes 5–9 positive, 80 % of the training "
        "positives removed, test data untouched; FedAvg (cross-entropy), CODA+, FCSG, FCSG-M, Acc-FCSG-M. Network, "
        "batch sizes, steps and settings are not stated.",
        implemented=f"The same split over {config['clients']} clients, alike; the networks of the authors' related "
        f"work; {config['outer_batch']} positives and {config['inner_batch']} others a client and step (as many "
        f"examples for the other methods), q = {config['local_steps']}, margin {config['margin']}, sigmoid scores, the "
        "positive itself counted among its inner samples, learning rates that fall along half a cosine (CODA+: by its "
        "stages). FedAvg also with both classes weighted alike.",
        data=f"{', '.join(config['data'])}; a tenth of the training data, not thinned, for validation.",
        hyper_parameters=f"Rates {config['rates']}, clipping {config['clip']} (0: none), momentum "
        f"{config['momentum']}, proximity {config['proximity']}; {each} trials for each method and data set of "
        f"{config['trial_rounds']} rounds by validation average precision with seed {config['trial_seed']}; reported "
        f"with the seeds {config['seeds']}, after {config['rounds']} rounds. All trials are in `trials.csv` of the "
        "run folder."
        if each > 1
        else f"Not tuned: rate {config['rates'][0]}, clipping {config['clip'][0]}, momentum {config['momentum'][0]}; "
        f"seeds {config['seeds']}.",
        expected="MNIST: FedAvg 0.9357, CODA+ 0.9733, FCSG 0.9868, FCSG-M 0.9878, Acc-FCSG-M 0.9879. CIFAR-10: 0.5059, "
        "0.6039, 0.7130, 0.7157, 0.7184. A random score has 0.486 and 0.500.",
    )
