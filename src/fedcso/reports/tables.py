"""Results as rows and tables: what stands in metrics.csv, clients.csv and table.{csv,md,tex}."""

import csv
import io
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from fedcso.core.costs import Costs
from fedcso.core.metrics import ASIDE, DIAGNOSTIC, INTERVAL, ByClient, at_clients, mean_and_interval
from fedcso.core.task import Task
from fedcso.core.trace import Trace
from fedcso.runs.study import Results

TITLES = {
    "accuracy": "test accuracy",
    "average_precision": "test average precision",
    "auroc": "test AUROC",
    "loss": "loss F(x)",
    "client_accuracy": "accuracy, mean over clients",
    "client_average_precision": "average precision, mean over clients",
    "client_auroc": "AUROC, mean over clients",
    "client_loss": "loss, mean over clients",
    "gradient_norm": "true gradient norm ‖∇F(x)‖",
    "mean_gradient_norm": "root mean ‖∇F(x)‖² so far",
    "bias": "estimated bias ‖E∇F̂ − ∇F‖",
    "noise": "noise of a round’s mean ∇F̂",
    "gradient_estimate": "estimated ‖∇F(x)‖",
    "inner_batch": "inner batch m",
    "train_loss": "training loss",
}
"""The usual metrics, in the order in which people want to see them."""


BOOKKEEPING = frozenset({"algorithm", "seed", "round", "step", "seconds", *Costs().as_dict()})


def metric_names(rows: Sequence[dict[str, Any]]) -> list[str]:
    """The metrics in some rows: the usual ones in their order, then a problem's own."""
    there = [key for key in dict.fromkeys(key for row in rows for key in row) if key not in BOOKKEEPING]
    return [name for name in TITLES if name in there] + [name for name in there if name not in TITLES]


def curve_names(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Those worth a curve: an interval's width belongs to its metric, and what is measured on test data says more
    than the loss seen in training."""
    names = [m for m in metric_names(rows) if not m.endswith(INTERVAL) and m not in ASIDE]
    names = [m for m in names if any(has(row, m) for row in rows)]
    return [m for m in names if m != "train_loss" or names == ["train_loss"]]


def has(row: dict[str, Any], metric: str) -> bool:
    """True if a row has a value of a metric."""
    return row.get(metric) not in (None, "")


def runs(results: Results, seeds: Sequence[int]) -> Iterator[tuple[str, int, Trace]]:
    """Every run: name, seed, trace. Units with several settings number them."""
    for name, settings in results.items():
        for number, traces in enumerate(settings):
            label = name if len(settings) == 1 else f"{name}#{number}"
            for seed, trace in zip(seeds, traces, strict=False):
                yield label, seed, trace


def as_csv(rows: Sequence[dict[str, Any]]) -> str:
    """Rows as CSV; floats with all their digits, missing values empty."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def metric_rows(results: Results, seeds: Sequence[int]) -> list[dict[str, Any]]:
    """One row per evaluation."""
    return [
        {"algorithm": name, "seed": seed, **row} for name, seed, trace in runs(results, seeds) for row in trace.rows
    ]


def client_rows(results: Results, seeds: Sequence[int], task: Task, measure: bool) -> list[dict[str, Any]]:
    """One row per run and client: how much data it has, how often it took part, how often it was dropped.

    Where there are held-out data of each client, they `measure` the last model by them, also who does not train.
    """
    numbers = [str(n) for n in range(len(task.clients))]
    rows = []
    for name, seed, trace in runs(results, seeds):
        found: dict[str, dict[str, Any]] = {}
        for number, (client, data) in enumerate(zip(task.names or numbers, task.clients, strict=True)):
            dropped = sum(fault.client == number for fault in trace.dropped)
            rounds = trace.participation[number]
            found[client] = {"size": task.problem.size(data), "rounds": rounds, "dropped": dropped}
        if isinstance(task.test, ByClient) and measure:
            names = task.test.names or list(found)
            for client, metrics in zip(names, at_clients(task.judge, trace.last, task.test), strict=True):
                found.setdefault(client, {"size": 0, "rounds": 0, "dropped": 0})
                found[client] |= {metric: _defined(value) for metric, value in metrics.items()}
        rows += [{"algorithm": name, "seed": seed, "client": client, **about} for client, about in found.items()]
    return rows


def telling_metric(rows: Sequence[dict[str, Any]]) -> str | None:
    """The first of the usual metrics that some rows have."""
    return next((name for name in TITLES if any(name in row for row in rows)), None)


def client_summary(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one row per client: its examples, and every method's most telling metric there, mean over seeds.

    A client that draws from a distribution has no examples; if it has not measured anything either, it has no row.
    """
    metric = telling_metric(rows)
    table: dict[Any, dict[str, Any]] = {}
    for row in rows:
        examples = {"examples": row["size"]} if has(row, "size") else {}
        line = table.setdefault(row["client"], {"client": str(row["client"])} | examples)
        if metric:
            line.setdefault(f"{metric} of {row['algorithm']}", []).append(row.get(metric, ""))
    for line in table.values():
        for name, values in line.items():
            if isinstance(values, list):
                numbers = [float(value) for value in values if value not in ("", "undefined")]
                line[name] = Estimate(*mean_and_interval(numbers)) if numbers else "undefined"
    return [line for line in table.values() if len(line) > 1]


def _defined(value: Any) -> float | str:
    """A number, or in words that there is none."""
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


def summary(metrics: Sequence[dict[str, Any]], rounds: int | None = None) -> list[dict[str, Any]]:
    """One row per algorithm: its last evaluation, mean ± interval over seeds, and what it cost per run.

    A run that broke off, short of all `rounds`, counts with its last evaluation, and is counted as broken off.
    """
    last: dict[str, dict[Any, dict[str, Any]]] = {}
    for row in metrics:
        last.setdefault(row["algorithm"], {})[row["seed"]] = row
    rounds = rounds or max(row["round"] for row in metrics)
    table = []
    for name, by_seed in last.items():
        final = list(by_seed.values())
        line: dict[str, Any] = {"algorithm": name, "seeds": len(final)}
        broken = sum(r["round"] < rounds for r in final)
        if broken:
            line["broke off"] = broken
        for metric in metric_names(final):
            if metric in DIAGNOSTIC:
                continue
            values = [float(r[metric]) for r in final if has(r, metric)]
            if values:
                line[metric] = Estimate(*mean_and_interval(values))
        line["rounds"] = int(final[0]["round"])
        line["samples ξ"], line["samples η"] = int(final[0]["outer_samples"]), int(final[0]["inner_samples"])
        line["gradients"] = int(final[0]["gradients"])
        line["bytes sent"] = int(final[0]["bytes_up"]) + int(final[0]["bytes_down"])
        line["seconds"] = max(float(r["seconds"]) for r in final)
        table.append(line)
    return table


def cell(value: Any) -> str:
    """A value as it stands in a table for people."""
    if isinstance(value, int):
        return f"{value:,}".replace(",", "\u202f")
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def as_markdown(table: Sequence[dict[str, Any]]) -> str:
    """A table in Markdown."""
    columns = list(dict.fromkeys(key for row in table for key in row))
    lines = [
        "| " + " | ".join(columns) + " |",
        "|" + "|".join([" --- ", *[" ---: "] * (len(columns) - 1)]) + "|",
    ]
    lines += ["| " + " | ".join(cell(row.get(column, "")) for column in columns) + " |" for row in table]
    return "\n".join(lines) + "\n"


def as_latex(table: Sequence[dict[str, Any]]) -> str:
    """A table for `booktabs`."""
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
    """The table for machines: an estimate becomes two columns."""
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
