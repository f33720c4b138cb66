"""Who answered in each round, how long it took and how many bytes it was: sites.csv in the run folder."""

from typing import Any

from fedcso.reports.recorded import table_in
from fedcso.reports.tables import as_csv
from fedcso.runs.folder import RunFolder

FILE = "sites.csv"
ANSWERED = "answered"


class Journal:
    """A table with a line for each round and site; a round that is played again replaces its lines."""

    def __init__(self, folder: RunFolder):
        self.folder = folder
        self.lines = {_key(row): row for row in table_in(folder.path / FILE)}

    def record(self, rows: list[dict[str, Any]]) -> None:
        """Add a round's lines."""
        for row in rows:
            self.lines[_key(row)] = row
        self.folder.write(FILE, as_csv(list(self.lines.values())))


def _key(row: dict[str, Any]) -> tuple[str, ...]:
    return tuple(str(row[name]) for name in ("algorithm", "seed", "round", "site"))
