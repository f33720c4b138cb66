"""Pieces of HTML for results that show themselves in a notebook."""

import base64
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from fedcso.reports import figures
from fedcso.reports.page import cells


def heading(text: str) -> str:
    """Return a heading."""
    return f"<h4>{escape(text)}</h4>"


def paragraphs(sentences: Sequence[str]) -> str:
    """Return a paragraph for each sentence."""
    return "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Return a table, with estimates as mean ± half-width."""
    columns, lines = cells(rows)
    head = "".join(f"<th>{escape(column.replace('_', ' '))}</th>" for column in columns)
    body = "".join("<tr>" + "".join(f"<td>{escape(value)}</td>" for value in line) + "</tr>" for line in lines)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def picture(figure: Figure) -> str:
    """Return a figure, as an image inside the page."""
    image = base64.b64encode(figures.render(figure, "png")).decode()
    return f'<img style="max-width: 100%; background: white" src="data:image/png;base64,{image}">'


def link(page: Path) -> str:
    """Return the path of a page as a link."""
    return f'<p>report: <a href="{escape(str(page))}">{escape(str(page))}</a></p>'
