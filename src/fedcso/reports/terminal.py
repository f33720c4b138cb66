"""Print tables and the summary of a finished run."""

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from fedcso.reports.recorded import record_of
from fedcso.reports.tables import cell
from fedcso.runs.folder import RunFolder

FAILED = 1
"""The exit code if some runs failed."""


def conclude(folder: RunFolder, table: Sequence[dict[str, Any]]) -> int:
    """Print the table and the paths of the results of a run that has ended; return the exit code."""
    show(table)
    show_models(folder)
    for what, file in {"figure": "curves.png", "report": "report.html", "folder": ""}.items():
        print(f"{what}  {folder.path / file}")
    broken = folder.status == "failed"
    print(f"next    {next_command(folder, broken)}")
    return FAILED if broken else 0


def next_command(folder: RunFolder, broken: bool) -> str:
    """Return the command that is most useful after a run, and what it does."""
    path, record = folder.path, record_of(folder)
    if broken:
        return f"fedcso run --config {path / 'config.yaml'} --learning-rate …    (try again with shorter steps)"
    if record.ranked and record.declared.validated:
        return f"fedcso decide {path} --recall 0.8    (choose thresholds for the best model)"
    if len(record.iterates()) > 1:
        return f"fedcso report {path} --legend direct    (a figure for a paper)"
    return f"fedcso compare {path} OTHER    (compare it with another run)"


def show_models(folder: RunFolder) -> None:
    """Print which models are exported."""
    for statement in record_of(folder).statements():
        print(f"model   {statement}")


def show(table: Sequence[dict[str, Any]], title: str | None = None) -> None:
    """Print a table, as plain text in a pipe."""
    print(as_text(table, title), end="")  # print raises BrokenPipeError; rich would end the process


def as_text(table: Sequence[dict[str, Any]], title: str | None = None) -> str:
    """Return a table as it is printed."""
    console = Console(markup=False)  # names may contain square brackets
    if not console.is_terminal:
        console = Console(markup=False, width=max(console.width, 220))
    columns = list(dict.fromkeys(key for row in table for key in row))
    grid = Table(title=title, title_justify="left")
    for number, column in enumerate(columns):
        grid.add_column(column.replace("_", " "), justify="right" if number else "left")
    for row in table:
        grid.add_row(*(cell(row.get(column, "")) for column in columns))
    with console.capture() as drawn:
        console.print(grid)
    return drawn.get()
