"""Tables on the terminal, and how a run ends there."""

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from fedcso.reports.recorded import record_of
from fedcso.reports.tables import cell
from fedcso.runs.folder import RunFolder
from fedcso.runs.study import Results

FAILED = 1
"""The exit code of a run of which some part broke off."""


def conclude(folder: RunFolder, table: Sequence[dict[str, Any]], found: Results) -> int:
    """Show the table, say where everything is, and what broke off."""
    broken = [trace for settings in found.values() for traces in settings for trace in traces if trace.failure]
    folder.mark("failed" if broken else "done")  # before anything is shown: a reader that has gone is no failure
    show(table)
    show_models(folder)
    for what, file in {"figure": "curves.png", "report": "report.html", "folder": ""}.items():
        print(f"{what}  {folder.path / file}")
    return FAILED if broken else 0


def show_models(folder: RunFolder) -> None:
    """Say which models of a run are exported."""
    for statement in record_of(folder).statements():
        print(f"model   {statement}")


def show(table: Sequence[dict[str, Any]], title: str | None = None) -> None:
    """A table on the terminal, or as plain text in a pipe."""
    console = Console(markup=False)  # square brackets are part of names here
    if not console.is_terminal:
        console = Console(markup=False, width=max(console.width, 220))
    columns = list(dict.fromkeys(key for row in table for key in row))
    grid = Table(title=title, title_justify="left")
    for number, column in enumerate(columns):
        grid.add_column(column.replace("_", " "), justify="right" if number else "left")
    for row in table:
        grid.add_row(*(cell(row.get(column, "")) for column in columns))
    with console.capture() as drawn:  # printed by Python, which tells of a broken pipe; rich would end the process
        console.print(grid)
    print(drawn.get(), end="")
