"""The journal sites.csv in the run folder: who answered in each round, with durations and bytes."""

from typing import Any

from fedcso.reports.tables import as_csv
from fedcso.runs.folder import RunFolder
from fedcso.runs.tables import table_in

FILE = "sites.csv"
ANSWERED = "answered"


class Journal:
    """A table with one row per round and site; repeating a round replaces its rows."""

    def __init__(self, folder: RunFolder):
        self.folder = folder
        self.lines = {_key(row): row for row in table_in(folder.path / FILE)}

    def record(self, rows: list[dict[str, Any]]) -> None:
        """Add the rows of a round."""
        for row in rows:
            self.lines[_key(row)] = row
        self.folder.write(FILE, as_csv(list(self.lines.values())))


def _key(row: dict[str, Any]) -> tuple[str, ...]:
    return tuple(str(row[name]) for name in ("algorithm", "seed", "round", "site"))
