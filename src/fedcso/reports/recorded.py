"""Results read back from run folders."""

import csv
from pathlib import Path
from typing import Any

from fedcso.core.errors import FedcsoError
from fedcso.runs.folder import RunFolder


def metrics_of(folder: RunFolder) -> list[dict[str, Any]]:
    """The rows of metrics.csv, numbers as numbers."""
    path = folder.path / "metrics.csv"
    if not path.is_file():
        raise FedcsoError(f"{folder.path} has no results yet; go on with: fedcso resume {folder.path}")
    rows = table_in(path)
    if not rows or not {"algorithm", "seed", "round"} <= rows[0].keys():
        raise FedcsoError(f"{path} is not a table of metrics")
    return rows


def table_in(path: Path) -> list[dict[str, Any]]:
    """The rows of a CSV file; none if it is not there."""
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
