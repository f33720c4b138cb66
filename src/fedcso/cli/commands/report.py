"""Make figures, tables and the report of run folders anew, from their metrics; also of unfinished runs.

examples:
  fedcso report runs/2026-01-31_120000_invariant_logistic_1a2b3c
  fedcso report runs/*
"""

from pathlib import Path

from fedcso.cli.parser import simple_parser
from fedcso.core.errors import FedcsoError
from fedcso.reports import outputs
from fedcso.reports.recorded import record_of
from fedcso.reports.terminal import show, show_models
from fedcso.runs.folder import RunFolder

HELP = "make figures, tables and the report of run folders anew"


def main(arguments: list[str]) -> int:
    """All folders in turn."""
    parser = simple_parser("report", str(__doc__))
    parser.add_argument("folder", nargs="+", help="run folders")
    for path in parser.parse_args(arguments).folder:
        folder = RunFolder.open(Path(path))
        if "problem" not in folder.config():
            raise FedcsoError(
                f"{folder.path} is a reproduction; make its figures anew with: fedcso resume {folder.path}"
            )
        record = record_of(folder)
        if not record.declared.metrics:
            print(
                f"note    {folder.path} has no metrics.json: it was made by a version that declared no metrics, so "
                f"they have no titles here, and no model is called the best. fedcso resume {folder.path} writes it."
            )
        table = outputs.write_report(folder, record, outputs.title_of(folder), _all_rounds(folder))
        show(table, title=f"{folder.path} ({folder.status})")
        show_models(folder)
        print(f"report  {folder.path / 'report.html'}")
    return 0


def _all_rounds(folder: RunFolder) -> int | None:
    """How many rounds runs should have, once they are over: with fewer they broke off."""
    return folder.config().get("rounds") if folder.status in ("done", "failed") else None
