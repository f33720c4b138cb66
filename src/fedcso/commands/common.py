"""What commands that work in a run folder have in common: carrying out, being interrupted, concluding."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.table import Table

from fedcso.errors import FedcsoError
from fedcso.folder import RunFolder
from fedcso.parser import Parser
from fedcso.progress import display
from fedcso.ranks import RankLost
from fedcso.results import cell
from fedcso.study import Interrupted, Results, Study
from fedcso.task import Task
from fedcso.tracking import TRACKERS

FAILED = 1


def carry_out(folder: RunFolder, study: Study, track: str, on_checkpoint: Callable[[], None] = lambda: None) -> Results:
    """Execute a study in a folder, with progress, a log and the folder's status kept."""
    with at_work(folder):
        tracker = TRACKERS[track](folder.path)
        try:
            return study.execute(display(), tracker, on_checkpoint)
        finally:
            tracker.close()


@contextmanager
def at_work(folder: RunFolder) -> Iterator[None]:
    """Alone in a folder, with a log there and the folder's status kept."""
    with folder.alone(), _logging_to(folder):
        folder.mark("running")
        try:
            yield
        except (Interrupted, KeyboardInterrupt) as reason:
            folder.mark("interrupted")
            what = reason if isinstance(reason, Interrupted) else "stopped at once, after the last checkpoint"
            raise Interrupted(f"{what}. To go on: fedcso resume {folder.path}") from None
        except RankLost as reason:
            folder.mark("interrupted")
            raise RankLost(f"{reason}. To go on from the last checkpoint: fedcso resume {folder.path}") from None


@contextmanager
def _logging_to(folder: RunFolder) -> Iterator[None]:
    """All that is logged goes into the folder's log.txt as well."""
    log = logging.getLogger("fedcso")
    handler = logging.FileHandler(folder.path / "log.txt")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    log.addHandler(handler)
    log.info("started")
    try:
        yield
    finally:
        log.info("ended")
        log.removeHandler(handler)
        handler.close()


def same_data(folder: RunFolder, task: Task) -> Task:
    """The task, if its data are those that the run in the folder began with."""
    began, now = folder.environment()["data"].get("digest"), task.digest()
    if began != now:
        raise FedcsoError(f"{folder.path} was begun on other data (digest {began}, now {now}); start a new run instead")
    return task


def conclude(folder: RunFolder, table: Sequence[dict[str, Any]], found: Results) -> int:
    """Show the table, say where everything is, and what broke off."""
    broken = [trace for settings in found.values() for traces in settings for trace in traces if trace.failure]
    folder.mark("failed" if broken else "done")  # before anything is shown: a reader that has gone is no failure
    show(table)
    for what, file in {"figure": "curves.png", "report": "report.html", "folder": ""}.items():
        print(f"{what}  {folder.path / file}")
    return FAILED if broken else 0


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


def simple_parser(command: str, description: str) -> Parser:
    """A parser for a command without a problem; its docstring is the help."""
    summary, _, rest = description.partition("\n")
    return Parser(prog=f"fedcso {command}", description=summary, epilog=rest.strip())
