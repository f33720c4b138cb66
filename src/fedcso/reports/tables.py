"""Results as rows and tables: metrics.csv, clients.csv and table.{csv,md,tex}."""

import csv
import io
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from statistics import fmean
from typing import Any, NamedTuple

from fedcso.core.intervals import mean_and_interval
from fedcso.core.judge import ByClient
from fedcso.core.task import Task
from fedcso.core.trace import Trace
from fedcso.core.tree import Tree
from fedcso.reports.recorded import Record, has
from fedcso.runs.study import Results
from fedcso.runs.tables import Row

COSTS = {
    "rounds": ("round",),
    "samples ξ": ("outer_samples",),
    "samples η": ("inner_samples",),
    "gradients": ("gradients",),
    "bytes sent": ("bytes_up", "bytes_down"),
}
"""Cost columns of tables, and the columns of an evaluation that each of them sums."""


def runs(results: Results, seeds: Sequence[int]) -> Iterator[tuple[str, int, Trace]]:
    """Yield the name, seed and trace of every run; settings of a unit are numbered if there are several."""
    for name, settings in results.items():
        for number, traces in enumerate(settings):
            label = name if len(settings) == 1 else f"{name}#{number}"
            for seed, trace in zip(seeds, traces, strict=False):
                yield label, seed, trace


def as_csv(rows: Sequence[dict[str, Any]]) -> str:
    """Format rows as CSV, with all digits of floats and empty cells for missing values."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def metric_rows(results: Results, seeds: Sequence[int]) -> list[dict[str, Any]]:
    """Return one row per evaluation."""
    return [
        {"algorithm": name, "seed": seed, **row} for name, seed, trace in runs(results, seeds) for row in trace.rows
    ]


def random_rows(results: Results, seeds: Sequence[int]) -> list[Row]:
    """Return one row for the random iterate of every run that has one."""
    return [
        {"algorithm": name, "seed": seed, **trace.output_row}
        for name, seed, trace in runs(results, seeds)
        if trace.output_row
    ]


def client_rows(
    results: Results, seeds: Sequence[int], task: Task, model: Callable[[Trace], Tree] | None = None
) -> list[Row]:
    """Return one row per run and client: its data size, the rounds it took part in, and how often it was dropped.

    Where there are test data of each client, they measure a `model` of the run by them, also who does not train.
    """
    names = [task.names[n] if task.names else str(n) for n in task.sample]
    rows = []
    for name, seed, trace in runs(results, seeds):
        found: dict[str, dict[str, Any]] = {}
        dropped = Counter(fault.client for fault in trace.dropped)
        for number, client, data in zip(task.sample, names, task.seen, strict=True):
            rounds = trace.participation[number]
            found[client] = {"size": task.problem.size(data), "rounds": rounds, "dropped": dropped[number]}
        if isinstance(task.test, ByClient) and model is not None:
            tested = task.test.names or list(found)
            for client, metrics in zip(tested, task.judge.measure_at_clients(model(trace), task.test), strict=True):
                found.setdefault(client, {"size": 0, "rounds": 0, "dropped": 0})
                found[client] |= {metric: _defined(value) for metric, value in metrics.items()}
        rows += [{"algorithm": name, "seed": seed, "client": client, **about} for client, about in found.items()]
    return rows


def client_summary(record: Record) -> list[dict[str, Any]]:
    """Return one row per client: its number of examples, and the main metric of every method, mean over seeds.

    A client that draws from a distribution has no examples; if it has not measured anything either, it has no row.
    """
    metric = record.at_clients()
    table: dict[Any, dict[str, Any]] = {}
    for row in record.clients:
        examples = {"examples": row["size"]} if has(row, "size") else {}
        line = table.setdefault(row["client"], {"client": str(row["client"])} | examples)
        if metric:
            line.setdefault(f"{metric.name} of {row['algorithm']}", []).append(row.get(metric.name, ""))
    for line in table.values():
        for name, values in line.items():
            if isinstance(values, list):
                numbers = [float(value) for value in values if value not in ("", "undefined")]
                line[name] = _over_seeds(numbers) if numbers else "undefined"
    return [line for line in table.values() if len(line) > 1]


def _over_seeds(values: Sequence[float]) -> "Estimate":
    """Return the mean; without an interval if all seeds agree, as they do at a client with a single positive."""
    return Estimate(values[0], math.nan) if len(set(values)) == 1 else Estimate(*mean_and_interval(values))


def _defined(value: Any) -> float | str:
    """Return the number, or “undefined” if it is not finite."""
    return float(value) if math.isfinite(float(value)) else "undefined"


class Estimate(NamedTuple):
    """A mean over seeds with the half-width of its 95 % confidence interval."""

    mean: float
    half_width: float

    def __str__(self) -> str:
        if math.isnan(self.mean):
            return "–"
        digits = 4 if 1e-3 <= abs(self.mean) < 1e4 or self.mean == 0 else 3
        form = f".{digits}f" if digits == 4 else f".{digits}e"
        return f"{self.mean:{form}}" + ("" if math.isnan(self.half_width) else f" ± {self.half_width:{form}}")


def results(record: Record, rounds: int | None = None) -> list[dict[str, Any]]:
    """Return one row per algorithm and iterate (last, best, random): mean ± interval over seeds, and the costs so far.

    A run that broke off, short of all `rounds`, counts with its last evaluation, and is counted as broken off.
    """
    return [
        {"algorithm": name, "iterate": iterate, **_broken_off(record, iterates["last"], rounds), **_line(record, rows)}
        for name, iterates in record.iterates().items()
        for iterate, rows in iterates.items()
        if rows
    ]


def summary(record: Record, rounds: int | None = None) -> list[dict[str, Any]]:
    """Return one row per algorithm for its last iterate, as in `results`."""
    return [
        {"algorithm": name, **_broken_off(record, iterates["last"], rounds), **_line(record, iterates["last"])}
        for name, iterates in record.iterates().items()
    ]


def _broken_off(record: Record, last: Sequence[Row], rounds: int | None) -> dict[str, int]:
    """Return the number of seeds, and of failed runs if there are any."""
    rounds = rounds or max(row["round"] for row in record.rows)
    broken = sum(row["round"] < rounds and (row["algorithm"], row["seed"]) not in record.stopped for row in last)
    return {"seeds": len(last)} | ({"broke off": broken} if broken else {})


def _line(record: Record, evaluations: Sequence[Row]) -> dict[str, Any]:
    """Return the metrics of one iterate over all seeds, and the mean costs up to it as far as they are known."""
    line: dict[str, Any] = {}
    for metric in record.metrics():
        values = [float(row[metric.name]) for row in evaluations if has(row, metric.name)]
        if values and metric.tabulated:
            line[metric.name] = Estimate(*mean_and_interval(values))
    for title, columns in COSTS.items():
        if all(has(row, column) for row in evaluations for column in columns):
            line[title] = round(fmean(sum(row[column] for column in columns) for row in evaluations))
    if all(has(row, "seconds") for row in evaluations):
        line["seconds"] = max(float(row["seconds"]) for row in evaluations)
    return line


def cell(value: Any) -> str:
    """Format a value for a table."""
    if isinstance(value, int):
        return f"{value:,}".replace(",", "\u202f")
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def as_markdown(table: Sequence[dict[str, Any]]) -> str:
    """Format a table as Markdown."""
    columns = list(dict.fromkeys(key for row in table for key in row))
    lines = [
        "| " + " | ".join(columns) + " |",
        "|" + "|".join([" --- ", *[" ---: "] * (len(columns) - 1)]) + "|",
    ]
    lines += ["| " + " | ".join(cell(row.get(column, "")) for column in columns) + " |" for row in table]
    return "\n".join(lines) + "\n"


def as_latex(table: Sequence[dict[str, Any]]) -> str:
    """Format a table as LaTeX with `booktabs`."""
    columns = list(dict.fromkeys(key for row in table for key in row))
    symbols = {
        "ξ": r"$\xi$",
        "η": r"$\eta$",
        "±": r"$\pm$",
        "–": "--",
        "_": r"\_",
        "\u202f": r"\,",
        "#": r"\#",
        "%": r"\%",
    }

    def tex(text: str) -> str:
        return "".join(symbols.get(c, c) for c in text)

    lines = [r"\begin{tabular}{l" + "r" * (len(columns) - 1) + "}", r"\toprule"]
    lines.append(" & ".join(map(tex, columns)) + r" \\")
    lines.append(r"\midrule")
    lines += [" & ".join(tex(cell(row.get(column, ""))) for column in columns) + r" \\" for row in table]
    lines += [r"\bottomrule", r"\end{tabular}"]
    return "\n".join(lines) + "\n"


def flat(table: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the table with two columns for each estimate: mean and half-width."""
    result = []
    for row in table:
        out: dict[str, Any] = {}
        for key, value in row.items():
            if isinstance(value, Estimate):
                out[key], out[f"{key} ±"] = value.mean, value.half_width
            else:
                out[key] = value
        result.append(out)
    return result
