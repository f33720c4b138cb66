"""Figures for a paper: one metric in the size of a column, as PDF with embedded fonts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedcso.core.errors import InvalidValue, UnknownName, require
from fedcso.core.metric import Metric
from fedcso.reports.charts import AXES, series
from fedcso.reports.direct_labels import label_curves
from fedcso.reports.figures import draw_band, plain_numbers
from fedcso.reports.looks import look
from fedcso.reports.recorded import Record, has

SIDES: dict[str, Callable[[Figure, Axes], Any]] = {
    "inside": lambda figure, axes: axes.legend(**_PLAIN),
    "outside": lambda figure, axes: figure.legend(loc="outside right upper", **_PLAIN),
    "below": lambda figure, axes: figure.legend(loc="outside lower center", ncols=_fitting(figure, axes), **_PLAIN),
    "direct": lambda figure, axes: label_curves(figure, axes),
    "none": lambda figure, axes: None,
}
"""Where the names of the methods stand: in a legend inside the panel, to its right or below it, or at the curves."""

_PLAIN: dict[str, Any] = {"frameon": False, "handlelength": 2.8, "borderaxespad": 0.4, "labelspacing": 0.35}

X_TITLES = {"rounds": "communication rounds", "samples": "samples ξ and η", "megabytes": "megabytes sent"}
"""Titles of the horizontal axis, where they differ from its name."""

FONT = 8.0
"""Points of the text; papers set captions in 8 to 9."""


@dataclass(frozen=True)
class PaperStyle:
    """How a figure for a paper looks."""

    x: str = "rounds"
    """The horizontal axis: rounds, local-steps, samples, megabytes or seconds."""
    size: tuple[float, float] = (3.3, 2.5)
    """Width and height in inches, of everything in the figure; 3.3 is a column of two, 6.8 both."""
    legend: str = "inside"
    """Where the methods are named: inside, outside (to the right), below, direct (at the curves) or none."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Other names for methods; these come first, in this order, in the legend."""
    methods: Sequence[str] = ()
    """The methods to draw; all of them if empty."""

    def __post_init__(self) -> None:
        if self.axis not in AXES:
            raise UnknownName("horizontal axis", self.x, [name.replace(" ", "-") for name in AXES])
        if self.legend not in SIDES:
            raise UnknownName("place of a legend", self.legend, SIDES)
        require(
            "size",
            self.size,
            lambda size: len(size) == 2 and all(1 <= side <= 40 for side in size),
            "two lengths between 1 and 40 inches, as 3.3x2.5",
        )

    @property
    def axis(self) -> str:
        """The name of the horizontal axis among those of the report page."""
        return self.x.replace("-", " ")


def paper_figure(record: Record, metric: str | None = None, style: PaperStyle | None = None) -> Figure:
    """Draw one metric of a run: the mean over seeds and its 95 % band for each method.

    By default it is the metric that the run's models are chosen by. `render` in `reports.figures` makes a PDF of it.
    """
    style = style or PaperStyle()
    shown = _metric(record, metric)
    rows = [row for row in record.rows if has(row, shown.name)]
    names = _methods(list(dict.fromkeys(str(row["algorithm"]) for row in record.rows)), style)
    with mpl.rc_context(
        {"font.size": FONT, "axes.linewidth": 0.6, "axes.titlesize": FONT, "legend.fontsize": FONT - 1}
    ):
        figure = Figure(figsize=style.size, layout="constrained")
        axes = figure.subplots()
        for name, number in names.items():
            these = [row for row in rows if row["algorithm"] == name]
            found = series(name, these, shown, by="round", axes={style.axis: style.axis})
            points = [
                (x, *y)
                for x, y in zip(found["x"][style.axis], found["y"], strict=True)
                if x is not None and y[0] is not None
            ]
            if points:
                places, means, widths = zip(*points, strict=True)
                widths = tuple(float("nan") if width is None else width for width in widths)
                draw_band(axes, places, means, widths, shown, style.labels.get(name, name), look(number))
        if not axes.lines:
            raise InvalidValue("x", style.x, f"one that {shown.name} was recorded with")
        _finish(axes, shown, style)
        SIDES[style.legend](figure, axes)
    return figure


def parse_labels(texts: Sequence[str], record: Record) -> dict[str, str]:
    """Parse `METHOD=LABEL`; a method's name may contain the sign too, as FCSG-M(momentum=0.5)."""
    recorded = list(dict.fromkeys(str(row["algorithm"]) for row in record.rows))
    found: dict[str, str] = {}
    for text in texts:
        name = max((known for known in recorded if text.startswith(f"{known}=")), key=len, default="")
        if not name:
            require("labels", text, lambda text: "=" in text, "METHOD=LABEL, as in 'FCSG-M=FCSG-M (ours)'")
            raise UnknownName("method of this run", text.partition("=")[0], recorded)
        found[name] = text.removeprefix(f"{name}=")
    return found


def parse_size(text: str) -> tuple[float, float]:
    """Parse a width and a height in inches, as 3.3x2.5."""
    width, _, height = text.partition("x")
    try:
        return float(width), float(height)
    except ValueError:
        raise InvalidValue("size", text, "a width and a height in inches, as in 3.3x2.5") from None


def _metric(record: Record, name: str | None) -> Metric:
    """Return the metric with this name, or the one that models are chosen by."""
    known = {metric.name: metric for metric in record.metrics() if any(has(row, metric.name) for row in record.rows)}
    name = name or next(
        (one for one in (record.declared.headline, record.declared.deciding, *known) if one in known), ""
    )
    if name not in known:
        raise UnknownName("metric", name, known)
    return known[name]


def _methods(recorded: Sequence[str], style: PaperStyle) -> dict[str, int]:
    """Return the methods to draw in the order of the legend, each with its place among all, which decides its look."""
    for name in (*style.labels, *style.methods):
        if name not in recorded:
            raise UnknownName("method of this run", name, recorded)
    wanted = [name for name in recorded if not style.methods or name in style.methods]
    first = [name for name in style.labels if name in wanted]
    return {name: recorded.index(name) for name in dict.fromkeys([*first, *wanted])}


def _finish(axes: Axes, metric: Metric, style: PaperStyle) -> None:
    axes.set_xlabel(X_TITLES.get(style.axis, style.axis))
    axes.set_ylabel(metric.title)
    axes.margins(x=0.02)
    if metric.log:
        axes.set_yscale("log")
        plain_numbers(axes.yaxis)
    if metric.share:
        low, high = axes.get_ylim()
        margin = 0.02 * (high - low)  # for the thickness of a line at the very end of the range
        axes.set_ylim(max(low, -margin), min(high, 1 + margin))
    axes.grid(True, alpha=0.3, linewidth=0.4)
    axes.spines[["top", "right"]].set_visible(False)
    axes.ticklabel_format(axis="x", style="sci", scilimits=(-3, 5), useMathText=True)
    for line in axes.lines:
        line.set_linewidth(1.1)
        line.set_markersize(3)
    for band in axes.collections:
        band.set_alpha(min(0.18, 0.7 / len(axes.collections)))


def _fitting(figure: Figure, axes: Axes) -> int:
    """Return the number of columns of a legend that fits into the width of a figure."""
    names = axes.get_legend_handles_labels()[1]
    width = 0.45 + 0.055 * max(map(len, names))
    return max(1, min(len(names), int(figure.get_size_inches()[0] / width)))
