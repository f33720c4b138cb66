"""Redraw the figures, tables and report of a run from its metrics."""

from pathlib import Path

from fedcso.reports import outputs
from fedcso.studies.folders import open_run
from fedcso.studies.results import RunResult


def report(folder: str | Path | RunResult) -> RunResult:
    """Write the figures, tables and page of a run again, also of an unfinished one, and return the run.

    This is `fedcso report` in Python.
    """
    opened = open_run(folder.folder if isinstance(folder, RunResult) else folder)
    found = RunResult.open(opened.path)
    ended = found.status in ("done", "failed")
    outputs.write_report(opened, found.record, found.title, found.config.get("rounds") if ended else None)
    return found
