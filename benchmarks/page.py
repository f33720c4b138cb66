"""Write `docs/performance.md` from the latest results of all benchmarks."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from matplotlib.figure import Figure

from benchmarks.results import load_all
from fedcso.core import atomic
from fedcso.reports import figures
from fedcso.reports.looks import look

DOCS = Path(__file__).parent.parent / "docs"
PLOTS = DOCS / "performance"


def write() -> Path:
    """Write the page and its plots, and return the path of the page."""
    measured = load_all()
    PLOTS.mkdir(parents=True, exist_ok=True)
    for name, draw in PICTURES.items():
        if name in measured:
            atomic.write(PLOTS / f"{name}.png", figures.render(draw(measured[name]), "png"))
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
    )
    environment.globals |= {"timings": timings, "machine": machine, "ratio": ratio, "many_compared": many_compared}
    text = environment.get_template("performance.md.jinja").render(measured=measured)
    target = DOCS / "performance.md"
    atomic.write(target, text.rstrip() + "\n")
    return target


def timings(rows: Sequence[dict[str, Any]], unit: str) -> str:
    """Return a table of medians with the fastest and slowest times."""
    lines = [f"| | median {unit} | fastest … slowest | times faster |", "| --- | ---: | ---: | ---: |"]
    for row in rows:
        spread = f"{_milliseconds(row['fastest'])} … {_milliseconds(row['slowest'])} ms"
        lines.append(f"| {row['name']} | {_milliseconds(row['median'])} ms | {spread} | {row['times_faster']:.1f}× |")
    return "\n".join(lines)


def _milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:.3g}" if seconds < 1 else f"{1e3 * seconds:,.0f}"


def ratio(rows: Sequence[dict[str, Any]], ours: str, theirs: str) -> float:
    """Return how many times faster one row of a table is than another."""
    median = {row["name"]: row["median"] for row in rows}
    return float(median[theirs] / median[ours])


def many_compared(rows: Sequence[dict[str, Any]]) -> tuple[float, float]:
    """Return how much longer and how much more memory the most clients take than 10,000, in the worse method."""
    most = max(row["clients"] for row in rows)
    at = {(row["method"], row["clients"]): row for row in rows}
    pairs = [(at[method, most], at[method, 10_000]) for method, clients in at if clients == most]
    longer = max(many["seconds"] * few["participants"] / few["seconds"] / many["participants"] for many, few in pairs)
    return longer, max(many["peak_bytes"] / few["peak_bytes"] for many, few in pairs)


MUCH = 0.1
"""Above this share, the use of the machine by other processes is mentioned."""


def machine(result: dict[str, Any]) -> str:
    """Return one line that describes the machine and the conditions of a measurement."""
    found = result["machine"]
    busy = f" Other processes used {found['busy']:.0%} of the machine." if found["busy"] > MUCH else ""
    turns = " Quick run with two turns." if found["quick"] else ""
    return (
        f"*{found['processor']}, {found['cores']} cores, torch {found['torch']}, Python {found['python']}; "
        f"{result['measured']}.{busy}{turns}*"
    )


def _many_clients(result: dict[str, Any]) -> Figure:
    figure = Figure(figsize=(9.6, 3.6), layout="constrained")
    time, memory = figure.subplots(1, 2)
    for number, method in enumerate(dict.fromkeys(row["method"] for row in result["rows"])):
        rows = [row for row in result["rows"] if row["method"] == method]
        style = look(number).in_figure()
        time.plot([r["participants"] for r in rows], [r["seconds"] for r in rows], label=method, **style)
        memory.plot([r["clients"] for r in rows], [r["peak_bytes"] / 1e6 for r in rows], label=method, **style)
    time.set(xlabel="participants", ylabel="seconds per round")
    memory.set(xlabel="clients", ylabel="peak memory, MB", xscale="log", ylim=(0, None))
    for axes in (time, memory):
        axes.grid(True, alpha=0.25, linewidth=0.6)
    figures.add_legend(figure)
    return figure


def _operators(result: dict[str, Any]) -> Figure:
    figure = Figure(figsize=(9.6, 5.6), layout="constrained")
    for axes, (name, found) in zip(figure.subplots(2, 2).flat, result["workloads"].items(), strict=False):
        top = found["top"][::-1]
        axes.barh([line["operator"] for line in top], [100 * line["share"] for line in top], color=look(0).colour)
        axes.set_title(name, fontsize=9)
        axes.set_xlabel("% of the time in operators", fontsize=8)
        axes.tick_params(labelsize=7)
    return figure


PICTURES: dict[str, Callable[[dict[str, Any]], Figure]] = {"many_clients": _many_clients, "operators": _operators}
"""Plots by benchmark."""
