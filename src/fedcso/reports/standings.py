"""A self-contained HTML page of tables that sort by any column, with a choice of the rows to show."""

from collections.abc import Mapping, Sequence
from typing import Any

from fedcso.reports.page import PAGES, cells


def page(
    title: str,
    lead: Sequence[str],
    tables: Mapping[str, Sequence[dict[str, Any]]],
    filters: Mapping[str, Sequence[str]],
) -> str:
    """Return the page: paragraphs, then a table under each heading; a table without rows is not shown.

    `filters` are columns and the values to choose from; a choice hides the other rows of all tables with this column.
    """
    return PAGES.get_template("standings.html").render(
        title=title,
        lead=lead,
        tables={heading: cells(rows) for heading, rows in tables.items() if rows},
        filters=filters,
    )
