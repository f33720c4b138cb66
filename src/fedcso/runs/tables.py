"""Read the tables and the declared metrics in a run folder."""

import csv
from pathlib import Path
from typing import Any

from fedcso.core.metric import DeclaredMetrics
from fedcso.runs.folder import RunFolder

Row = dict[str, Any]


def declared_in(folder: RunFolder) -> DeclaredMetrics:
    """Return the metrics that a run has declared; nothing is known of those of earlier versions, which declared none.

    Such a folder is still shown, without titles and without a chosen model: earlier versions chose it on test data.
    """
    path = folder.path / "metrics.json"
    return DeclaredMetrics.from_json(path.read_text()) if path.is_file() else DeclaredMetrics()


def table_in(path: Path) -> list[Row]:
    """Return the rows of a CSV file, or none if it does not exist."""
    if not path.is_file():
        return []
    with path.open(newline="") as file:
        return [{key: _number(value) for key, value in row.items()} for row in csv.DictReader(file)]


def _number(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
