"""Redraw the figures, tables and report of run folders from their metrics, also of unfinished runs.

examples:
  fedcso report runs/2026-01-31_120000_invariant_logistic_1a2b3c
  fedcso report runs/*
"""

from fedcso.runs.parser import simple_parser


def main(arguments: list[str]) -> int:
    """Write the report of every folder."""
    parser = simple_parser("report", str(__doc__))
    parser.add_argument("folder", nargs="+", help="run folders")
    paths = parser.parse_args(arguments).folder
    from fedcso.reports.terminal import show, show_models
    from fedcso.runs.folder import RunFolder
    from fedcso.studies.report import report

    for path in paths:
        found = report(path)
        if not found.record.declared.metrics:
            print(
                f"note    {found.folder} has no metrics.json (it is from an older version), so metrics have no titles "
                f"and no best model is named; to write it: fedcso resume {found.folder}"
            )
        show(found.rows, title=f"{found.folder} ({found.status})")
        show_models(RunFolder(found.folder))
        print(f"report  {found.page}")
    return 0
