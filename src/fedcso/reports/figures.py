"""Figures to paste into a talk: curves with bands, readable in grey, as PNG and PDF."""

import io
import math
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from fedcso.core.metrics import CHANCE, HIGHER_IS_BETTER, mean_and_interval
from fedcso.reports.tables import TITLES, curve_names, has

# Okabe and Ito's colours, which colour-blind readers can tell apart; lines and markers do it in grey.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8A8A8A")
LINES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (7, 2, 1, 2)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")

LOGARITHMIC = frozenset({"gradient_norm"})
SHARES = HIGHER_IS_BETTER | {"precision"}
"""Between 0 and 1, whatever an interval over few seeds says."""


def style(number: int) -> dict[str, Any]:
    """Colour, line and marker of the n-th curve."""
    return {
        "color": COLOURS[number % len(COLOURS)],
        "linestyle": LINES[number % len(LINES)],
        # Shifted after every turn, so that line and marker together stay different for 64 curves.
        "marker": MARKERS[(number + number // len(LINES)) % len(MARKERS)],
        "markersize": 4.5,
        "linewidth": 1.6,
    }


def curve(axes: Axes, rows: Sequence[dict[str, Any]], metric: str, label: str, number: int, x: str = "round") -> None:
    """Mean over seeds with its 95 % confidence band, against rounds."""
    by_round: dict[float, list[float]] = {}
    for row in rows:
        value = float(row[metric])
        if value == value:
            by_round.setdefault(float(row[x]), []).append(value)
    places = sorted(by_round)
    if not places:
        return
    means, widths = zip(*(mean_and_interval(by_round[p]) for p in places), strict=True)
    look = style(number)
    axes.plot(places, means, label=label, markevery=max(1, len(places) // 8), **look)
    if all(width == width for width in widths):
        low = [m - w for m, w in zip(means, widths, strict=True)]
        high = [m + w for m, w in zip(means, widths, strict=True)]
        if metric in LOGARITHMIC:
            low = [max(value, min(means) / 3) for value in low]
        if metric.removeprefix("client_") in SHARES:
            low, high = [max(value, 0.0) for value in low], [min(value, 1.0) for value in high]
        axes.fill_between(places, low, high, color=look["color"], alpha=0.18, linewidth=0)


def curves(metrics: Sequence[dict[str, Any]], title: str) -> Figure:
    """Every metric in a panel of its own, every algorithm a curve."""
    names = curve_names(metrics)
    across = len(names) if len(names) <= 4 else 3
    down = math.ceil(len(names) / across)
    figure = Figure(figsize=(4.4 * across, 3.4 * down), layout="constrained")
    figure.suptitle(title, fontsize=11)
    algorithms = list(dict.fromkeys(row["algorithm"] for row in metrics))
    cells = list(figure.subplots(down, across, squeeze=False).flat)
    for unused in cells[len(names) :]:
        unused.set_visible(False)
    for axes, metric in zip(cells, names, strict=False):
        for number, name in enumerate(algorithms):
            rows = [row for row in metrics if row["algorithm"] == name and has(row, metric)]
            curve(axes, rows, metric, name, number)
        chance = [float(row[CHANCE[metric]]) for row in metrics if metric in CHANCE and has(row, CHANCE[metric])]
        if chance:
            axes.axhline(chance[0], color="#8A8A8A", linewidth=1, linestyle=":", label="chance")
        finish(axes, metric)
    return figure


def finish(axes: Axes, metric: str, legend: bool = True) -> None:
    """Labels, scale, light grid."""
    axes.set_xlabel("communication rounds")
    axes.set_ylabel(TITLES.get(metric, metric))
    if metric in LOGARITHMIC:
        axes.set_yscale("log")
        plain_numbers(axes.yaxis)
    axes.grid(True, alpha=0.25, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    if legend and axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, fontsize=8)


def plain_numbers(axis: Axis) -> None:
    """A logarithmic axis with 0.1, 0.2, 0.5, 1, … beside it instead of powers of ten."""
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def render(figure: Figure, kind: str) -> bytes:
    """The figure as `png` or `pdf`, the same bytes every time."""
    buffer = io.BytesIO()
    stable: dict[str, Any] = {"pdf": {"CreationDate": None}, "png": {"Software": None}}[kind]
    with mpl.rc_context({"pdf.fonttype": 42, "svg.hashsalt": "fedcso"}):
        figure.savefig(buffer, format=kind, dpi=200, metadata=stable)
    return buffer.getvalue()
