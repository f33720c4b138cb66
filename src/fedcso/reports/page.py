"""The self-contained HTML report of a run: interactive curves, tables, settings and environment."""

import base64
import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import yaml
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from fedcso.reports.tables import cell

PAGES = Environment(loader=PackageLoader("fedcso.reports"), autoescape=True, undefined=StrictUndefined)


def page(
    title: str,
    figures: Sequence[tuple[str, bytes]],
    table: Sequence[dict[str, Any]],
    config: dict[str, Any],
    environment: dict[str, Any],
    notes: Sequence[str] = (),
    more: Mapping[str, Sequence[dict[str, Any]]] = MappingProxyType({}),
    charts: Mapping[str, Any] = MappingProxyType({"charts": []}),
    models: Sequence[str] = (),
) -> str:
    """Return the report as HTML; figures are (caption, PNG) and are embedded; `more` maps headings to further tables.

    `charts` are drawn by the page itself, which then shows the figures only where scripts are not allowed. `models`
    say which models were exported.
    """
    return PAGES.get_template("report.html").render(
        title=title,
        figures=[(caption, base64.b64encode(png).decode()) for caption, png in figures],
        table=cells(table),
        more={heading: cells(rows) for heading, rows in more.items() if rows},
        notes=notes,
        charts=charts,
        models=models,
        json=_in_script(dict(charts)),
        config=yaml.safe_dump(config, sort_keys=False, allow_unicode=True),
        environment=json.dumps(environment, indent=2),
    )


def _in_script(data: Any) -> Markup:
    """Return JSON that is safe inside a script element, whatever names it contains."""
    return Markup(json.dumps(data, allow_nan=False).replace("<", "\\u003c"))


def cells(table: Sequence[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Return the column names and the cells of a table."""
    columns = list(dict.fromkeys(key for row in table for key in row))
    return columns, [[cell(row.get(column, "")) for column in columns] for row in table]
