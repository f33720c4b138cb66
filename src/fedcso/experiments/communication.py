"""What it costs to send u: accuracy against bytes, for every way of sending it.

The paper names it as a limitation that the momentum methods send twice as much as FCSG. Here the same runs are done
with u sent in full, rounded, now and then, or not at all (`fedcso.codecs`), and judged by what travelled.
"""

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from fedcso.algorithms import ALGORITHMS
from fedcso.core.algorithm import Algorithm
from fedcso.core.codec import Codec, full
from fedcso.core.metrics import GRADIENT_NORM, mean_and_interval
from fedcso.core.plan import Plan
from fedcso.experiments.reproduction import About, Picture, Statement, conclude
from fedcso.problems import PROBLEMS
from fedcso.problems.scores import AVERAGE_PRECISION
from fedcso.reports import figures, tables
from fedcso.reports.tables import Estimate
from fedcso.runs.config import Config, study_of
from fedcso.runs.execute import execute_study
from fedcso.runs.folder import RunFolder
from fedcso.runs.specs import SEND_U, parse_value
from fedcso.runs.study import Unit

MEASURED = {"invariant_logistic": GRADIENT_NORM, "auprc": AVERAGE_PRECISION.on_test()}
"""By problem, what a model is judged by."""

FULL = "full"

CLOSE = 0.02
"""Relative difference to sending u in full that counts as none."""


def settings(quick: bool) -> Config:
    """All that the experiment depends on."""
    return {
        "problems": {
            "invariant_logistic": {"unlike_truth": 0.5, "test_points": 10_000},
            "auprc": {"data": "digits"},
        },
        "methods": ["FCSG-M", "Acc-FCSG-M"],
        "ways": [FULL, "bfloat16", "int8", "every(5)", "inferred"],
        "rounds": 10 if quick else 100,
        "local_steps": 10,
        "batches": {"invariant_logistic": [1, 10], "auprc": [8, 32]},
        "rates": {"invariant_logistic": 0.05, "auprc": 0.1},
        "momentum": 0.1,
        "seeds": [0, 1] if quick else [0, 1, 2],
        "checkpoint_rounds": 0,
        "checkpoint_seconds": 30.0,
        "track": "none",
    }


def carry_out(folder: RunFolder) -> int:
    """Run, draw, compare; goes on where it was interrupted."""
    config = folder.config()
    units = [unit for problem in config["problems"] for unit in _units(config, problem)]
    found = execute_study(folder, study_of(config, units, folder.path), "none")
    rows = [
        row | {"megabytes": (row["bytes_up"] + row["bytes_down"]) / 1e6}
        for row in tables.metric_rows(found, config["seeds"])
    ]
    folder.write("metrics.csv", tables.as_csv(rows))
    table = [_line(config, unit.name, rows) for unit in units]
    pictures = [
        Picture(f"communication-{problem}", _panels(config, problem, rows), _caption(problem))
        for problem in config["problems"]
    ]
    seconds = sum(run.rows[-1]["seconds"] for every in found.values() for runs in every for run in runs)
    conclude(folder, _about(config), pictures, table, check(config, table), seconds)
    return 0


def _name(problem: str, method: str, way: str) -> str:
    return f"{method}, {way}, {problem}"


def _units(config: Config, problem: str) -> list[Unit]:
    task = PROBLEMS[problem](**config["problems"][problem]).for_reporting()
    b, m = config["batches"][problem]
    rounds = config["rounds"]
    plan = Plan(rounds, config["local_steps"], b, m, evaluate_every=max(1, rounds // 20))
    rate = {"learning_rate": config["rates"][problem]}
    every: dict[str, tuple[Algorithm, Codec]] = {_name(problem, "FCSG", FULL): (ALGORITHMS["FCSG"](**rate), full)}
    for method in config["methods"]:
        algorithm = ALGORITHMS[method](**rate | {"momentum": config["momentum"]})
        for way in config["ways"]:
            every[_name(problem, method, way)] = algorithm, parse_value(SEND_U, way)
    return [Unit(name, task, plan, [one], config["seeds"], codec=codec) for name, (one, codec) in every.items()]


def _last(config: Config, rows: Sequence[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [row for row in rows if row["algorithm"] == name and row["round"] == config["rounds"]]


def _line(config: Config, name: str, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    method, way, problem = name.split(", ")
    last = _last(config, rows, name)
    full = _last(config, rows, _name(problem, method, FULL))
    metric = MEASURED[problem].name
    return {
        "problem": problem,
        "method": method,
        "u sent": way if method != "FCSG" else "has none",
        "megabytes": last[0]["megabytes"],
        "bytes, of full": f"{last[0]['megabytes'] / full[0]['megabytes']:.0%}",
        metric: Estimate(*mean_and_interval([row[metric] for row in last])),
    }


def _panels(config: Config, problem: str, rows: Sequence[dict[str, Any]]) -> Figure:
    figure = Figure(figsize=(5.6 * len(config["methods"]), 4.2), layout="constrained")
    metric = MEASURED[problem]
    for axes, method in zip(
        figure.subplots(1, len(config["methods"]), squeeze=False)[0], config["methods"], strict=True
    ):
        shown = {"FCSG": _name(problem, "FCSG", FULL)} | {way: _name(problem, method, way) for way in config["ways"]}
        for place, (label, name) in enumerate(shown.items()):
            these = [row for row in rows if row["algorithm"] == name and row["round"]]
            figures.curve(axes, these, metric, label, place, x="megabytes")
        figures.finish(axes, metric)
        axes.set_xscale("log")  # who sends half as much is the same distance to the left everywhere
        figures.plain_numbers(axes.xaxis)
        axes.set_xlabel("megabytes sent, up and down")
        axes.set_title(f"{method}, {problem}")
    figures.add_legend(figure)
    return figure


def _caption(problem: str) -> str:
    return f"{MEASURED[problem].name.replace('_', ' ').capitalize()} against bytes on {problem}; 95 % bands over seeds."


def check(config: Config, table: Sequence[dict[str, Any]]) -> list[Statement]:
    """Which ways save bytes without hurting, for each problem and method."""
    statements = []
    for problem in config["problems"]:
        metric, sign = MEASURED[problem].name, 1 if MEASURED[problem].higher_is_better else -1
        for method in config["methods"]:
            lines = {line["u sent"]: line for line in table if (line["problem"], line["method"]) == (problem, method)}
            full = lines[FULL][metric].mean
            fine = [
                f"{way} ({line['bytes, of full']} of the bytes)"
                for way, line in lines.items()
                if way != FULL and sign * line[metric].mean >= sign * full - CLOSE * abs(full)
            ]
            statements.append(
                Statement(
                    f"{method} on {problem}: u can be sent for less without hurting (by more than {CLOSE:.0%}).",
                    bool(fine),
                    f"{', '.join(fine) or 'none'}; in full {metric.replace('_', ' ')} is {full:.4g}.",
                )
            )
    return statements


def _about(config: Config) -> About:
    return About(
        title="What it costs to send u",
        paper="Its limitations section: the momentum methods send x and u, twice as much as FCSG.",
        implemented="u in full; in bfloat16 or int8 with error feedback at clients and server; averaged every 5th "
        "round only; or inferred from (x̄_start − x̄_end)/Σα. Bytes are those of the messages, both ways.",
        data="Invariant logistic regression with unlike clients; average precision with rare positives on digits.",
        hyper_parameters=f"Rates {config['rates']}, momentum {config['momentum']}, q = {config['local_steps']}, "
        f"{config['rounds']} rounds, seeds {config['seeds']}; not tuned, the same for all ways.",
        expected="Rounding halves the price of u or more and changes nothing; inferring it costs nothing where u is "
        "smooth.",
    )
