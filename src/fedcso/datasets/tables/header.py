"""Check the column names of a table that has been read."""

from pathlib import Path

import pandas as pd

from fedcso.core.errors import FedcsoError


def with_names(frame: pd.DataFrame, file: Path) -> tuple[pd.DataFrame, list[str]]:
    """Return a table without its unnamed columns, and a note on them; raise for repeated names or no rows."""
    names = [str(name).strip() for name in frame.columns]
    frame.columns = pd.Index(names)
    repeated = [name for name in frame.columns[frame.columns.duplicated()] if name]
    if repeated:
        raise FedcsoError(f"{file} has two columns called {repeated[0]!r}; give each its own name")
    if not len(frame):
        raise FedcsoError(f"{file} has no rows")
    if "" not in names:
        return frame, []
    return frame[[name for name in names if name]], ["a column without a name was left out"]
