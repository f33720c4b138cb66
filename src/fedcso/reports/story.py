"""A self-contained HTML page that tells what was found: sentences first, then the table and figure of each."""

import base64
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import yaml

from fedcso.reports import figures, notebook
from fedcso.reports.page import PAGES, cells


class Section(NamedTuple):
    """A question, what was measured, and what it means in plain words."""

    title: str
    about: str
    """What was done."""
    table: Sequence[dict[str, Any]]
    sentence: str
    """What the numbers say, computed from them."""
    figure: figures.Drawing
    caption: str


def page(title: str, sections: Sequence[Section], config: dict[str, Any], environment: dict[str, Any]) -> str:
    """Return the page."""
    return PAGES.get_template("story.html").render(
        title=title,
        sections=[
            {
                **section._asdict(),
                "cells": cells(section.table),
                "png": base64.b64encode(figures.render(section.figure, "png")).decode(),
            }
            for section in sections
        ],
        config=yaml.safe_dump(config, sort_keys=False, allow_unicode=True),
        environment=json.dumps(environment, indent=2),
    )


def fragment(sections: Sequence[Section]) -> str:
    """Return the sections as HTML for a notebook."""
    return "".join(
        notebook.heading(one.title)
        + notebook.paragraphs([one.about])
        + notebook.table(one.table)
        + notebook.paragraphs([one.sentence])
        + notebook.picture(one.figure)
        for one in sections
    )
