"""Redraw the figures, tables and report of run folders from their metrics, also of unfinished runs.

examples:
  fedcso report runs/2026-01-31_120000_invariant_logistic_1a2b3c
  fedcso report runs/*
"""

from fedcso.cli.folders import open_run
from fedcso.cli.parser import simple_parser
from fedcso.runs.folder import RunFolder


def main(arguments: list[str]) -> int:
    """Write the report of every folder."""
    parser = simple_parser("report", str(__doc__))
    parser.add_argument("folder", nargs="+", help="run folders")
    paths = parser.parse_args(arguments).folder
    from fedcso.reports import outputs
    from fedcso.reports.recorded import record_of
    from fedcso.reports.terminal import show, show_models

    for path in paths:
        folder = open_run(path)
        record = record_of(folder)
        if not record.declared.metrics:
            print(
                f"note    {folder.path} has no metrics.json (it is from an older version), so metrics have no titles "
                f"and no best model is named; to write it: fedcso resume {folder.path}"
            )
        table = outputs.write_report(folder, record, outputs.title_of(folder), _all_rounds(folder))
        show(table, title=f"{folder.path} ({folder.status})")
        show_models(folder)
        print(f"report  {folder.path / 'report.html'}")
    return 0


def _all_rounds(folder: RunFolder) -> int | None:
    """Return the number of rounds that a finished run should have; runs with fewer rounds failed."""
    return folder.config().get("rounds") if folder.status in ("done", "failed") else None
