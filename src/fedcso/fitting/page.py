"""The page for people who decide with a model, decision.html, and its model card, model-card.md."""

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined, select_autoescape

from fedcso.core.version import __version__
from fedcso.fitting.result import Decision, Sent
from fedcso.fitting.words import summary, value_and_interval
from fedcso.reports.shares import Share
from fedcso.reports.tables import as_markdown, cell
from fedcso.runs.folder import RunFolder

_TEXTS = Environment(
    loader=ChoiceLoader([PackageLoader("fedcso.fitting"), PackageLoader("fedcso.reports")]),
    autoescape=select_autoescape(["html"]),
    undefined=StrictUndefined,
    keep_trailing_newline=True,
    trim_blocks=True,
)

CAPTIONS = {
    "decision-precision-recall": "Precision against recall on the test data, and the first threshold with its "
    "intervals. Further right more positives are found, further up more alerts are right.",
    "decision-reliability": "Calibration on the test data: of the rows with a probability, how many are positive? "
    "Points on the dotted line are as predicted; bars are 95 % intervals.",
    "decision-importance": "How much average precision the model loses on the test data when a column is shuffled "
    "within sites; lines show the spread over repeats. Columns that say the same share their importance.",
}

Row = dict[str, Any]


def write_page(folder: RunFolder, decision: Decision) -> None:
    """Write decision.html, model-card.md and their figures."""
    figures = decision.decisions.figures(decision.importance)
    for name, png in figures.items():
        folder.write(f"{name}.png", png)
    folder.write("decision.html", page(decision, figures))
    folder.write("model-card.md", model_card(decision))


def page(decision: Decision, figures: Mapping[str, bytes]) -> str:
    """Return the page; figures are PNG files by name, and are embedded."""
    return _TEXTS.get_template("decision.html").render(
        decision=decision,
        summary=summary(decision),
        figures=[(CAPTIONS[name], base64.b64encode(png).decode()) for name, png in figures.items()],
        tables={name: _cells(rows) for name, rows in tables(decision).items() if rows},
        version=__version__,
    )


def model_card(decision: Decision) -> str:
    """Return the model card as Markdown."""
    return _TEXTS.get_template("model-card.md").render(
        decision=decision,
        summary=summary(decision),
        tables={name: as_markdown(rows) for name, rows in tables(decision).items() if rows},
        version=__version__,
    )


def tables(decision: Decision) -> dict[str, list[Row]]:
    """Return the rows of all tables, by name; a table without rows is not shown."""
    return {
        "compared": _compared(decision),
        "thresholds": _thresholds(decision),
        "sites": _sites(decision),
        "sent": _sent(decision.sent),
        "importance": [
            {"column": one.column, "average precision lost": f"{one.mean:.3f} ± {one.spread:.3f}"}
            for one in decision.importance
        ],
        "settings": [{"setting": name, "value": str(value)} for name, value in decision.settings.items()],
        "trials": [dict(row) for row in decision.trials],
    }


def _compared(decision: Decision) -> list[Row]:
    return [
        {
            "method": one.name + (" (chosen)" if number == 0 else ""),
            "data": "needs the data in one place" if one.needs_pooled_data else "stay at the sites",
            "average precision": value_and_interval(one.average_precision),
            "chosen is ahead by": "" if one.difference is None else value_and_interval(one.difference),
            "AUROC": value_and_interval(one.auroc),
            "note": one.note,
        }
        for number, one in enumerate(decision.contenders)
    ]


def _thresholds(decision: Decision) -> list[Row]:
    made = decision.decisions
    return [
        {
            "chosen for": one.threshold.wanted,
            "probability of an alert": f"from {one.probability:.3g}",
            "alerts in 1000 rows": f"{1000 * one.test.alert_share(made.prevalence):.3g}",
            "alerts that are right": _percent(one.test.precision(made.prevalence)),
            "positives that are found": _percent(one.test.recall),
            "counts": f"{one.test.true_positives} of {one.test.alerts} alerts, "
            f"{one.test.true_positives} of {one.test.positives} positives",
        }
        for one in made.thresholds
    ]


def _sites(decision: Decision) -> list[Row]:
    held = {one.site: one for one in decision.decisions.sites}
    first = decision.decisions.thresholds[0].by_site if decision.decisions.thresholds else {}
    rows = []
    for data in decision.data:
        row: Row = {"site": data.site}
        for words, part in {"training": data.train, "validation": data.validation, "test": data.test}.items():
            row[f"{words} rows (positive)"] = f"{part.rows:,} ({part.positives:,})"
        if one := held.get(data.site):
            row["average precision"] = value_and_interval(one.average_precision)
        if outcome := first.get(data.site):
            row["right alerts"] = f"{outcome.true_positives} of {outcome.alerts}"
            row["found positives"] = f"{outcome.true_positives} of {outcome.positives}"
        rows.append(row)
    return rows


def _sent(messages: Sequence[Sent]) -> list[Row]:
    """Return one row for each kind of message: what all sites sent, and how much of it a single site."""
    rows = []
    for what in dict.fromkeys(one.what for one in messages):
        kind = [one for one in messages if one.what == what]
        rows.append(
            {
                "what": what,
                "sites": len(kind),
                "messages of a site": _range([one.messages for one in kind]),
                "numbers from a site": _range([one.values for one in kind]),
                "bytes from a site": _range([one.bytes for one in kind]),
                "bytes from all": sum(one.bytes for one in kind),
            }
        )
    return rows


def _range(values: Sequence[int]) -> str:
    low, high = cell(min(values)), cell(max(values))
    return low if low == high else f"{low} to {high}"


def _percent(share: Share) -> str:
    if share.value != share.value:
        return "undefined"
    return f"{100 * share.value:.0f} % ({100 * share.low:.0f} to {100 * share.high:.0f} %)"


def _cells(rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """Return the names of the columns that hold anything, and the cells."""
    columns = dict.fromkeys(name for row in rows for name in row if any(str(other.get(name, "")) for other in rows))
    return list(columns), [[cell(row.get(name, "")) for name in columns] for row in rows]
