"""The figures of Table 1: samples and rounds against ε, the curves with their bounds, the speed-up, and estimators."""

import math
from collections.abc import Sequence
from statistics import fmean
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullFormatter, NullLocator

from fedcso.experiments.reproduction import Picture
from fedcso.experiments.table1_estimators import NAMES, Crossings, of
from fedcso.experiments.table1_runs import METHODS, Cell, Curve, Steps
from fedcso.reports import figures
from fedcso.reports.looks import look
from fedcso.reports.tables import Estimate


def pictures(
    rows: Sequence[dict[str, Any]],
    curves: dict[Cell, Curve],
    steps: Steps,
    slopes: dict[str, Estimate],
    by_estimator: Crossings,
) -> list[Picture]:
    """Return all figures with their captions."""
    return [
        Picture(
            "table1-samples",
            _against_epsilon(rows, "samples", "inner samples of a client"),
            "Inner samples of a client until the mean of ‖∇F(x̄)‖² is at most ε², mean over seeds.",
        ),
        Picture(
            "table1-rounds",
            _against_epsilon(rows, "rounds", "communication rounds"),
            "Communication rounds until then, mean over seeds; steps for BSGD and BSpiderBoost, which do not "
            "communicate.",
        ),
        Picture(
            "table1-bounds",
            _under_bounds(curves),
            "The measured mean of ‖∇F(x̄_t)‖² up to step T with the theory's settings for the smallest ε (dotted: ε²), "
            "and the theorem's bound on it.",
        ),
        Picture(
            "table1-speed-up",
            _speed_up(steps, slopes),
            "Steps to the same ε with N clients, tuned for each N; mean over seeds, and the fitted slopes.",
        ),
        Picture(
            "table1-estimators",
            _estimators(by_estimator),
            "Inner samples of a client until then, with estimators of a smaller bias and a smooth f; mean over seeds.",
        ),
    ]


def _against_epsilon(rows: Sequence[dict[str, Any]], what: str, title: str) -> Figure:
    """Draw a panel for each kind of settings and problem, with a line for each method."""
    panels = list(dict.fromkeys((row["settings"], row["problem"]) for row in rows))
    figure = Figure(figsize=(10.5, 7.6), layout="constrained")
    cells = figure.subplots(2, 2).flat
    for axes, (kind, where) in zip(cells, panels, strict=True):
        some = [row for row in rows if (row["settings"], row["problem"]) == (kind, where)]
        for number, method in enumerate(METHODS):
            points: dict[float, list[float]] = {}
            for row in some:
                if row["method"] == method:
                    points.setdefault(row["share"], []).append(row[what])
            means = {share: fmean(values) for share, values in points.items() if max(values) < math.inf}
            axes.plot(list(means), list(means.values()), label=method, **look(number).in_figure())
        axes.set_title(f"{where}, {'the theory’s' if kind == 'theory' else kind} settings", fontsize=10)
        axes.set_xlabel("ε / ‖∇F(x₀)‖")
        axes.set_ylabel(title)
        _logarithmic(axes, sorted({row["share"] for row in some}))
        axes.invert_xaxis()
    figures.add_legend(figure)
    return figure


def _under_bounds(curves: dict[Cell, Curve]) -> Figure:
    """Draw a panel for each problem (rows) and method (columns)."""
    problems = list(dict.fromkeys(cell.where for cell in curves))
    figure = Figure(figsize=(14, 3.1 * len(problems)), layout="constrained")
    panels = figure.subplots(len(problems), len(METHODS), sharey="row", squeeze=False)
    for down, where in enumerate(problems):
        for across, method in enumerate(METHODS):
            axes = panels[down][across]
            cell = min((c for c in curves if c[:2] == (where, method)), key=lambda c: c.share)
            found = curves[cell]
            style = look(0).in_figure() | {"marker": None}
            axes.plot(found.steps, found.bound, label="bound", **style | {"color": "black", "linestyle": "--"})
            axes.plot(found.steps, found.measured, label="measured", **style)
            axes.axhline(found.target, color="#8A8A8A", linewidth=1, linestyle=":")
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.grid(True, alpha=0.25, linewidth=0.6)
            axes.spines[["top", "right"]].set_visible(False)
            axes.set_title(f"{method}\n{where}", fontsize=9)
            axes.xaxis.set_minor_formatter(NullFormatter())
    figures.add_legend(figure)
    for row in panels:
        row[0].set_ylabel("mean of ‖∇F(x̄)‖²")
    for axes in panels[-1]:
        axes.set_xlabel("steps T")
    return figure


def _speed_up(steps: Steps, slopes: dict[str, Estimate]) -> Figure:
    figure = Figure(figsize=(6, 4.4), layout="constrained")
    axes = figure.subplots()
    for number, (method, slope) in enumerate(slopes.items()):
        points = {n: fmean(by_seed) for (m, n), by_seed in steps.items() if m == method and max(by_seed) < math.inf}
        label = f"{method}: N^{slope.mean:.2f} ± {slope.half_width:.2f}"
        axes.plot(list(points), list(points.values()), label=label, **look(number).in_figure())
    counts = sorted({n for _, n in steps})
    first = fmean(steps[next(iter(slopes)), counts[0]])
    axes.plot(counts, [first * counts[0] / n for n in counts], color="#8A8A8A", linestyle=":", label="linear: N^−1")
    axes.set_xlabel("clients N")
    axes.set_ylabel("steps to ε")
    _logarithmic(axes, counts)
    figures.add_legend(figure)
    return figure


def _estimators(found: Crossings) -> Figure:
    """Draw a panel for each method, with a line for each estimator."""
    methods = list(dict.fromkeys(cell.method for cell in found))
    figure = Figure(figsize=(4.2 * len(methods), 4.4), layout="constrained")
    panels = figure.subplots(1, len(methods), squeeze=False)[0]
    for axes, method in zip(panels, methods, strict=True):
        for number, name in enumerate(NAMES):
            means = {share: fmean(one.samples for one in runs) for share, runs in of(found, method, name).items()}
            points = {share: value for share, value in means.items() if value < math.inf}
            axes.plot(list(points), list(points.values()), label=name, **look(number).in_figure())
        axes.set_title(method, fontsize=10)
        axes.set_xlabel("ε / ‖∇F(x₀)‖")
        _logarithmic(axes, sorted({cell.share for cell in found if cell.method == method}))
        axes.invert_xaxis()
    panels[0].set_ylabel("inner samples of a client")
    figures.add_legend(figure)
    return figure


def _logarithmic(axes: Axes, places: Sequence[float]) -> None:
    """Make both axes logarithmic, with ticks at the measured places."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.xaxis.set_major_locator(FixedLocator(list(places)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.grid(True, alpha=0.25, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
