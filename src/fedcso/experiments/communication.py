"""The cost of sending u: accuracy against bytes, for every way of sending it.

The paper names as a limitation that the momentum methods send twice as much as FCSG. Here the same runs send u in full,
rounded, only in some rounds, or not at all (`fedcso.codecs`), and are compared by the bytes sent.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from matplotlib.figure import Figure

from fedcso.algorithms import ALGORITHMS
from fedcso.core.evaluation import GRADIENT_NORM
from fedcso.core.intervals import mean_and_interval
from fedcso.core.plan import Plan
from fedcso.experiments.experiment import Experiment, Runner, Settings
from fedcso.experiments.reproduction import FixedSections, Picture, Statement, conclude
from fedcso.problems import PROBLEMS
from fedcso.problems.scores import AVERAGE_PRECISION
from fedcso.reports import figures, tables
from fedcso.reports.tables import Estimate
from fedcso.runs.folder import RunFolder
from fedcso.runs.methods import Method
from fedcso.runs.specs import parse_codec
from fedcso.runs.study import Results, Unit

MEASURED = {"invariant_logistic": GRADIENT_NORM, "auprc": AVERAGE_PRECISION.on_test()}
"""The metric of each problem."""

PAPERS: dict[str, dict[str, Any]] = {"auprc": {"bounded": False, "logarithm": False}}
"""Options for the paper's objective where the default is another."""

FULL = "full"

CLOSE = 0.02
"""A relative loss against sending u in full that counts as no loss."""


@dataclass(frozen=True, kw_only=True)
class CommunicationSettings(Settings):
    """The settings of the experiment."""

    problems: Mapping[str, Mapping[str, Any]]
    """The problems with their options."""
    methods: Sequence[str]
    ways: Sequence[str]
    """The ways of sending u."""
    rounds: int
    local_steps: int = 10
    batches: Mapping[str, Sequence[int]]
    """b and m of each problem."""
    rates: Mapping[str, float]
    momentum: float = 0.1
    seeds: Sequence[int]


def settings(quick: bool) -> CommunicationSettings:
    """Return the settings of the full experiment, or of the quick version."""
    return CommunicationSettings(
        problems={
            "invariant_logistic": {"unlike_truth": 0.5, "test_points": 10_000},
            "auprc": {"data": "digits"},
        },
        methods=["FCSG-M", "Acc-FCSG-M"],
        ways=[FULL, "bfloat16", "int8", "every(5)", "inferred"],
        rounds=10 if quick else 100,
        batches={"invariant_logistic": [1, 10], "auprc": [8, 32]},
        rates={"invariant_logistic": 0.05, "auprc": 0.1},
        seeds=[0, 1] if quick else [0, 1, 2],
    )


class Cell(NamedTuple):
    """A problem, a method, and its way of sending u."""

    problem: str
    method: str
    way: str

    @property
    def full(self) -> "Cell":
        """Return the cell of the same problem and method with u sent in full."""
        return self._replace(way=FULL)


Rows = dict[Cell, list[dict[str, Any]]]
"""The evaluations in each cell."""


def execute(folder: RunFolder, config: CommunicationSettings) -> None:
    """Run what is left, draw the figures and check the statements."""
    run = Runner(folder, config)
    units = [unit for problem in config.problems for unit in _units(config, problem)]
    found = run(units)
    rows = {_cell(unit): _with_megabytes(found, unit) for unit in units}
    folder.write("metrics.csv", tables.as_csv([row for some in rows.values() for row in some]))
    table = [_line(config, cell, rows) for cell in rows]
    pictures = [
        Picture(f"communication-{problem}", _panels(config, problem, rows), _caption(problem))
        for problem in config.problems
    ]
    conclude(folder, describe(config), pictures, table, check(config, table), run.seconds)


def _units(config: CommunicationSettings, problem: str) -> list[Unit]:
    task = PROBLEMS[problem](**PAPERS.get(problem, {}), **config.problems[problem])
    b, m = config.batches[problem]
    rounds = config.rounds
    plan = Plan(rounds, config.local_steps, b, m, evaluate_every=max(1, rounds // 20))
    rate = {"learning_rate": config.rates[problem]}
    cells = {Cell(problem, "FCSG", FULL): Method(ALGORITHMS["FCSG"](**rate))}
    for method in config.methods:
        algorithm = ALGORITHMS[method](**rate | {"momentum": config.momentum})
        for way in config.ways:
            cells[Cell(problem, method, way)] = Method(algorithm, parse_codec("way", way))
    return [
        Unit(
            f"{cell.method}, {cell.way}, {problem}",
            task,
            plan,
            [algorithm],
            config.seeds,
            codec=codec,
            labels=cell._asdict(),
        )
        for cell, (algorithm, codec) in cells.items()
    ]


def _cell(unit: Unit) -> Cell:
    return Cell(*(str(unit.labels[name]) for name in Cell._fields))


def _with_megabytes(found: Results, unit: Unit) -> list[dict[str, Any]]:
    rows = tables.metric_rows({unit.name: found[unit.name]}, unit.seeds)
    return [row | {"megabytes": (row["bytes_up"] + row["bytes_down"]) / 1e6} for row in rows]


def _line(config: CommunicationSettings, cell: Cell, rows: Rows) -> dict[str, Any]:
    last, full = ([row for row in rows[one] if row["round"] == config.rounds] for one in (cell, cell.full))
    metric = MEASURED[cell.problem].name
    return {
        "problem": cell.problem,
        "method": cell.method,
        "u sent": cell.way if cell.method != "FCSG" else "no u",
        "megabytes": last[0]["megabytes"],
        "bytes vs. full": f"{last[0]['megabytes'] / full[0]['megabytes']:.0%}",
        metric: Estimate(*mean_and_interval([row[metric] for row in last])),
    }


def _panels(config: CommunicationSettings, problem: str, rows: Rows) -> Figure:
    figure = Figure(figsize=(5.6 * len(config.methods), 4.2), layout="constrained")
    metric = MEASURED[problem]
    panels = figure.subplots(1, len(config.methods), squeeze=False)[0]
    for axes, method in zip(panels, config.methods, strict=True):
        shown = {"FCSG": Cell(problem, "FCSG", FULL)} | {way: Cell(problem, method, way) for way in config.ways}
        for place, (label, cell) in enumerate(shown.items()):
            figures.curve(axes, [row for row in rows[cell] if row["round"]], metric, label, place, x="megabytes")
        figures.finish(axes, metric)
        axes.set_xscale("log")  # half the bytes are the same distance to the left everywhere
        figures.plain_numbers(axes.xaxis)
        axes.set_xlabel("megabytes sent, up and down")
        axes.set_title(f"{method}, {problem}")
    figures.add_legend(figure)
    return figure


def _caption(problem: str) -> str:
    return f"{MEASURED[problem].name.replace('_', ' ').capitalize()} against bytes on {problem}; 95 % bands over seeds."


def check(config: CommunicationSettings, table: Sequence[dict[str, Any]]) -> list[Statement]:
    """Check for each problem and method which ways of sending u save bytes without loss."""
    statements = []
    for problem in config.problems:
        metric, sign = MEASURED[problem].name, 1 if MEASURED[problem].higher_is_better else -1
        for method in config.methods:
            lines = {line["u sent"]: line for line in table if (line["problem"], line["method"]) == (problem, method)}
            full = lines[FULL][metric].mean
            fine = [
                f"{way} ({line['bytes vs. full']} of the bytes)"
                for way, line in lines.items()
                if way != FULL and sign * line[metric].mean >= sign * full - CLOSE * abs(full)
            ]
            statements.append(
                Statement(
                    f"{method} on {problem}: u can be sent with fewer bytes at a loss of at most {CLOSE:.0%}.",
                    bool(fine),
                    f"{', '.join(fine) or 'none'}; with u sent in full, {metric.replace('_', ' ')} is {full:.4g}.",
                )
            )
    return statements


def describe(config: CommunicationSettings) -> FixedSections:
    """Return the fixed sections of the page."""
    return FixedSections(
        title="The cost of sending u",
        paper="The section on limitations: the momentum methods send x and u, twice as much as FCSG.",
        implemented="u is sent in full; in bfloat16 or int8, with error feedback at clients and server; in every 5th "
        "round only; or not at all, but inferred from (x̄_start − x̄_end)/Σα. Bytes are those of the messages in both "
        "directions.",
        data="Invariant logistic regression with clients that differ; average precision with rare positives on digits.",
        hyper_parameters=f"Learning rates {config.rates}, momentum {config.momentum}, q = {config.local_steps}, "
        f"{config.rounds} rounds, seeds {config.seeds}; not tuned, and the same for all ways of sending u.",
        expected="Rounding at least halves the bytes of u and changes nothing else; inferring u costs no accuracy "
        "where u is smooth.",
    )


COMMUNICATION = Experiment("Accuracy against bytes for several ways of sending u.", settings, execute)
