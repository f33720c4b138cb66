"""Static figures of learning curves with confidence bands, as PNG and PDF."""

import io
import math
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, LogLocator, NullFormatter, NullLocator

from fedcso.core.intervals import mean_and_interval
from fedcso.core.metric import Metric
from fedcso.reports.looks import Look, look
from fedcso.reports.recorded import Record, has


class Drawing(Figure):
    """A figure that a notebook shows without further settings."""

    def _repr_png_(self) -> bytes:
        return render(self, "png")


def curve(
    axes: Axes, rows: Sequence[dict[str, Any]], metric: Metric, label: str, number: int, x: str = "round"
) -> None:
    """Draw the mean over seeds with its 95 % confidence band against rounds."""
    by_round: dict[float, list[float]] = {}
    for row in rows:
        value = float(row[metric.name])
        if value == value:
            by_round.setdefault(float(row[x]), []).append(value)
    places = sorted(by_round)
    if not places:
        return
    means, widths = zip(*(mean_and_interval(by_round[p]) for p in places), strict=True)
    draw_band(axes, places, means, widths, metric, label, look(number))


def draw_band(
    axes: Axes,
    places: Sequence[float],
    means: Sequence[float],
    widths: Sequence[float],
    metric: Metric,
    label: str,
    drawn: Look,
) -> None:
    """Draw a curve, and a band around it that stays within the metric's range."""
    axes.plot(places, means, label=label, markevery=max(1, len(places) // 8), **drawn.in_figure())
    if all(width == width for width in widths):
        low = [m - w for m, w in zip(means, widths, strict=True)]
        high = [m + w for m, w in zip(means, widths, strict=True)]
        if metric.log:
            low = [max(value, min(means) / 3) for value in low]
        if metric.share:
            low, high = [max(value, 0.0) for value in low], [min(value, 1.0) for value in high]
        axes.fill_between(places, low, high, color=drawn.colour, linewidth=0)


def curves(record: Record, title: str) -> Drawing:
    """Draw one panel per metric with one curve per algorithm; stars mark the exported models."""
    metrics, exported = record.curves(), record.exported()
    across = len(metrics) if len(metrics) <= 4 else 3
    down = math.ceil(len(metrics) / across)
    figure = Drawing(figsize=(4.4 * across, 3.4 * down), layout="constrained")
    figure.suptitle(title, fontsize=11)
    algorithms = list(dict.fromkeys(row["algorithm"] for row in record.rows))
    cells = list(figure.subplots(down, across, squeeze=False).flat)
    for unused in cells[len(metrics) :]:
        unused.set_visible(False)
    for axes, metric in zip(cells, metrics, strict=False):
        for number, name in enumerate(algorithms):
            rows = [row for row in record.rows if row["algorithm"] == name and has(row, metric.name)]
            curve(axes, rows, metric, name, number)
            if name in exported and has(exported[name], metric.name):
                mark(axes, exported[name]["round"], float(exported[name][metric.name]), look(number).colour)
        if exported:
            mark(axes, math.nan, math.nan, "#8A8A8A", label="exported")  # for the legend alone
        if (chance := record.chance(metric)) is not None:
            axes.axhline(chance, color="#8A8A8A", linewidth=1, linestyle=":", label="chance")
        finish(axes, metric)
    add_legend(figure)
    return figure


def mark(axes: Axes, place: float, value: float, colour: str, label: str | None = None) -> None:
    """Draw a star for the exported model."""
    star: dict[str, Any] = {"marker": "*", "markersize": 11, "markeredgecolor": "white", "markeredgewidth": 0.8}
    axes.plot([place], [value], color=colour, linestyle="none", label=label, zorder=3, **star)


def finish(axes: Axes, metric: Metric) -> None:
    """Set labels, scale and a light grid; lighten the bands if there are many."""
    axes.set_xlabel("communication rounds")
    axes.set_ylabel(metric.title)
    if metric.log:
        axes.set_yscale("log")
        plain_numbers(axes.yaxis)
    axes.grid(True, alpha=0.25, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    for band in axes.collections:
        band.set_alpha(min(0.18, 0.7 / len(axes.collections)))


def add_legend(figure: Figure) -> None:
    """Add one legend below the panels and enlarge the figure by its height."""
    curves = {
        label: handle for axes in figure.axes for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    if not curves:
        return
    width, height = figure.get_size_inches()
    across = max(1, min(len(curves), int(width / (0.6 + 0.07 * max(map(len, curves))))))
    down = math.ceil(len(curves) / across)
    figure.set_size_inches(width, height + 0.1 + 0.18 * down)
    style: dict[str, Any] = {"ncols": across, "frameon": False, "fontsize": 8, "handlelength": 3}
    figure.legend(curves.values(), curves.keys(), loc="outside lower center", **style)


def plain_numbers(axis: Axis) -> None:
    """Label a logarithmic axis with 0.1, 0.2, 0.5, 1, … instead of powers of ten."""
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def stretch_towards_one(axes: Axes, low: float) -> None:
    """Show shares above `low`, with as much room for 0.99 to 0.999 as for 0.9 to 0.99."""
    highest = max(float(np.asarray(line.get_ydata(), float).max()) for line in axes.get_lines())
    axes.set_yscale("logit", nonpositive="clip")
    axes.set_ylim(low, 1 - (1 - highest) / 2)
    axes.yaxis.set_major_locator(
        FixedLocator([0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999])
    )
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_locator(NullLocator())


def render(figure: Figure, kind: str) -> bytes:
    """Return the figure as reproducible `png` or `pdf` bytes."""
    buffer = io.BytesIO()
    stable: dict[str, Any] = {"pdf": {"CreationDate": None}, "png": {"Software": None}}[kind]
    with mpl.rc_context({"pdf.fonttype": 42, "svg.hashsalt": "fedcso"}):
        figure.savefig(buffer, format=kind, dpi=200, metadata=stable)
    return buffer.getvalue()
