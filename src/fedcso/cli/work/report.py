"""Write the report of a run folder again, or draw one of its metrics for a paper."""

from collections.abc import Sequence
from typing import Any

from fedcso.reports import figures
from fedcso.reports.paper import PaperStyle, paper_figure, parse_labels, parse_size
from fedcso.reports.recorded import record_of
from fedcso.reports.terminal import show, show_models
from fedcso.runs.folder import RunFolder
from fedcso.studies.folders import open_run
from fedcso.studies.report import report


def write_report(path: str) -> None:
    """Write the figures, tables and page of a run, and print its table."""
    found = report(path)
    if not found.record.declared.metrics:
        print(
            f"note    {found.folder} has no metrics.json (it is from an older version), so metrics have no titles "
            f"and no best model is named; to write it: fedcso resume {found.folder}"
        )
    show(found.rows, title=f"{found.folder} ({found.status})")
    show_models(RunFolder(found.folder))
    print(f"report  {found.page}")


def draw_for_paper(
    path: str, metric: str | None = None, size: str | None = None, labels: Sequence[str] = (), **style: Any
) -> None:
    """Draw one metric of a run; the file is named after the metric and the horizontal axis."""
    folder = open_run(path)
    record = record_of(folder)
    given = style | ({"size": parse_size(size)} if size else {})
    looks = PaperStyle(labels=parse_labels(labels, record), **given)
    figure = paper_figure(record, metric, looks)
    name = f"paper-{metric or 'figure'}-{looks.x}"
    for kind in ("pdf", "png"):
        folder.write(f"{name}.{kind}", figures.render(figure, kind))
        print(f"figure  {folder.path / name}.{kind}")
