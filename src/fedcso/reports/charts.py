"""The data of the report page's interactive charts, as JSON."""

from collections.abc import Callable, Sequence
from typing import Any

from fedcso.core.intervals import mean_and_interval
from fedcso.core.metric import Metric
from fedcso.reports.looks import look
from fedcso.reports.precision_recall import PRECISION
from fedcso.reports.recorded import Record, has
from fedcso.runs.tables import Row

Rows = Sequence[Row]

AXES: dict[str, Callable[[dict[str, Any]], float]] = {
    "rounds": lambda row: row["round"],
    "local steps": lambda row: row["step"],
    "samples": lambda row: row["outer_samples"] + row["inner_samples"],
    "megabytes": lambda row: (row["bytes_up"] + row["bytes_down"]) / 1e6,
    "seconds": lambda row: row["seconds"],
}
"""The choices for the horizontal axis."""


def charts(record: Record) -> dict[str, Any]:
    """Return the data of all charts."""
    names = list(dict.fromkeys(row["algorithm"] for row in record.rows))
    drawn = [_metric(record, metric) for metric in record.curves()]
    if record.ranked:
        drawn.append(_precision_recall(record.ranked))
    if telling := record.at_clients():
        drawn.append(_at_clients(record.clients, telling))
    axes = [axis for axis in AXES if all(_placed(row, axis) is not None for row in record.rows)]
    looks = {name: look(number)._asdict() for number, name in enumerate(names)}
    return {"looks": looks, "axes": axes, "charts": drawn}


def _metric(record: Record, metric: Metric) -> dict[str, Any]:
    """Return the curves of one metric; `exported` are the models to mark with stars."""
    there = [row for row in record.rows if has(row, metric.name)]
    exported = {name: row for name, row in record.exported().items() if has(row, metric.name)}
    return {
        "title": metric.title,
        "log": metric.log,
        "bounds": _bounds(metric),
        "chance": record.chance(metric),
        "series": [
            series(name, these, metric, by="round", axes={axis: axis for axis in AXES})
            for name, these in _by_algorithm(there).items()
        ],
        "exported": [
            {"name": name, "x": {axis: _placed(row, axis) for axis in AXES}, "y": _finite(row[metric.name])}
            for name, row in exported.items()
        ],
    }


def _bounds(metric: Metric) -> list[int] | None:
    return [0, 1] if metric.share else None


def _precision_recall(rows: Rows) -> dict[str, Any]:
    return {
        "title": "precision against recall",
        "axis": "recall",
        "log": False,
        "bounds": _bounds(PRECISION),
        "chance": float(rows[0]["prevalence"]),
        "series": [
            series(name, these, PRECISION, by="recall", axes={"recall": "recall"})
            for name, these in _by_algorithm(rows).items()
        ],
        "exported": [],
    }


def _at_clients(rows: Rows, metric: Metric) -> dict[str, Any]:
    """Return a point with an interval for every client and method."""
    places = list(dict.fromkeys(str(row["client"]) for row in rows))
    series = []
    for name, these in _by_algorithm(rows).items():
        groups = {place: [row for row in these if str(row["client"]) == place] for place in places}
        found = [_estimate([row.get(metric.name) for row in group]) for group in groups.values()]
        series.append({"name": name, "x": {"client": list(range(len(places)))}, "y": found})
    return {
        "title": f"{metric.title} at each client",
        "axis": "client",
        "places": places,
        "log": False,
        "bounds": _bounds(metric),
        "chance": None,
        "series": series,
        "exported": [],
    }


def series(name: str, rows: Rows, metric: Metric, by: str, axes: dict[str, str]) -> dict[str, Any]:
    """Return mean and interval over seeds for every value of `by`, with its position on each axis."""
    groups: dict[Any, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(row[by], []).append(row)
    ordered = [groups[place] for place in sorted(groups)]
    places = {axis: [_mean([_placed(row, axis) for row in group]) for group in ordered] for axis in axes}
    return {"name": name, "x": places, "y": [_estimate([row[metric.name] for row in group]) for group in ordered]}


def _placed(row: dict[str, Any], axis: str) -> float | None:
    try:
        return float(AXES[axis](row)) if axis in AXES else float(row[axis])
    except (KeyError, TypeError, ValueError):
        return None


def _by_algorithm(rows: Rows) -> dict[str, Rows]:
    names = dict.fromkeys(row["algorithm"] for row in rows)
    return {name: [row for row in rows if row["algorithm"] == name] for name in names}


def _mean(values: Sequence[float | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    return _finite(sum(numbers) / len(numbers)) if numbers else None


def _estimate(values: Sequence[Any]) -> list[float | None]:
    """Return [mean, half-width], with None where undefined."""
    numbers = [number for value in values if (number := _finite(value)) is not None]
    if not numbers:
        return [None, None]
    return [_finite(value) for value in mean_and_interval(numbers)]


def _finite(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    # Six digits are enough for a screen; huge numbers may overflow when averaged.
    return float(f"{number:.6g}") if abs(number) < float("inf") else None
