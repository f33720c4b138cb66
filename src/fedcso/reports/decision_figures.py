"""Figures for deciding with a model: where the threshold is, whether probabilities hold, which columns matter."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from fedcso.reports.importance import Importance
from fedcso.reports.looks import look
from fedcso.reports.outcome import Outcome
from fedcso.reports.reliability import Group
from fedcso.reports.score_counts import ScoreCounts
from fedcso.reports.thresholds import OperatingPoints, Threshold

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GREY = "#8A8A8A"


def precision_recall(curves: Mapping[str, ScoreCounts], chosen: Threshold | None = None) -> "Figure":
    """Draw precision against recall for counts by name (such as test data), with the chosen threshold on each curve.

    The bars at the threshold are Wilson's intervals.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2, 4.8), layout="constrained")
    axes = figure.subplots()
    for number, (name, counts) in enumerate(curves.items()):
        points, drawn = OperatingPoints.of(counts), look(number)
        line = drawn.in_figure() | {"marker": ""}
        recall, precision = [0.0, *points.recall], [points.precision[0], *points.precision]
        axes.plot(recall, precision, drawstyle="steps-pre", label=f"{name} (dotted: chance)", **line)
        axes.axhline(points.prevalence, color=drawn.colour, linewidth=1, linestyle=":")
        if chosen:
            outcome = _outcome(points, chosen)
            _mark(axes, outcome, f"threshold {chosen.score:.3g}, {name}", drawn.colour, drawn.marker)
    axes.set(xlabel="recall", ylabel="precision", xlim=(0, 1.02), ylim=(0, 1.02))
    _finish(axes)
    figure.legend(loc="outside lower center", frameon=False, fontsize=8)
    return figure


def _outcome(points: OperatingPoints, chosen: Threshold) -> Outcome:
    """Return what the threshold does, by counts; bins that begin below it are no alerts."""
    alerts = points.thresholds >= chosen.score
    tp = int(points.true_positives[alerts].max(initial=0))
    fp = int(points.false_positives[alerts].max(initial=0))
    return Outcome(tp, fp, int(points.true_positives[-1]) - tp, int(points.false_positives[-1]) - fp)


def _mark(axes: "Axes", outcome: Outcome, label: str, colour: str, marker: str) -> None:
    if not outcome.alerts:
        return
    recall, precision = outcome.recall, outcome.precision()
    axes.errorbar(
        recall.value,
        precision.value,
        xerr=[[recall.value - recall.low], [recall.high - recall.value]],
        yerr=[[precision.value - precision.low], [precision.high - precision.value]],
        color=colour,
        marker=marker,
        markersize=8,
        markeredgecolor="white",
        linewidth=1.2,
        linestyle="none",
        label=f"{label}: precision {precision.value:.2f}, recall {recall.value:.2f}",
    )


def reliability(groups: Sequence[Group]) -> "Figure":
    """Draw observed shares with Wilson's intervals against probabilities, and the number of rows of each group."""
    from matplotlib.figure import Figure

    from fedcso.reports.figures import plain_numbers

    figure = Figure(figsize=(5.2, 5.2), layout="constrained")
    axes, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    predicted = [group.predicted for group in groups]
    observed = [group.observed for group in groups]
    bars = [[o.value - o.low for o in observed], [o.high - o.value for o in observed]]
    points = look(0).in_figure() | {"linestyle": "none"}
    furthest = min(1.0, 1.05 * max(*predicted, *(o.high for o in observed)))
    axes.plot([0, furthest], [0, furthest], color=GREY, linewidth=1, linestyle=":", label="as predicted")
    axes.errorbar(predicted, [o.value for o in observed], yerr=bars, capsize=2, label="observed", **points)
    axes.set(ylabel="observed share of positives", xlim=(-0.02 * furthest, furthest), ylim=(-0.02 * furthest, furthest))
    axes.legend(frameon=False, fontsize=8, loc="upper left")
    below.plot(predicted, [group.rows for group in groups], **points)
    below.set(xlabel="probability", ylabel="rows", yscale="log")
    plain_numbers(below.yaxis)
    for panel in (axes, below):
        _finish(panel)
    return figure


def importance(columns: Sequence[Importance], most: int = 20) -> "Figure":
    """Draw the importance of the first columns, with its spread over repeats."""
    from matplotlib.figure import Figure

    shown = list(columns)[:most]
    figure = Figure(figsize=(5.2, 0.8 + 0.28 * len(shown)), layout="constrained")
    axes = figure.subplots()
    places = range(len(shown))
    axes.barh(places, [c.mean for c in shown], xerr=[c.spread for c in shown], color=look(0).colour, ecolor="#000000")
    axes.axvline(0, color=GREY, linewidth=1)
    axes.set_yticks(places, [c.column for c in shown])
    axes.invert_yaxis()
    axes.set_xlabel("fall of average precision when shuffled")
    if len(shown) < len(columns):
        axes.set_title(f"the first {len(shown)} of {len(columns)} columns", fontsize=9)
    _finish(axes)
    axes.grid(False, axis="y")
    return figure


def _finish(axes: "Axes") -> None:
    axes.grid(True, alpha=0.25, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
