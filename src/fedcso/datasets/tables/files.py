"""Find the files that a path denotes: one file, those that match a pattern, or all tables in a folder."""

import glob
from collections.abc import Iterable, Sequence
from pathlib import Path

from fedcso.core.errors import FedcsoError, InvalidValue, list_names
from fedcso.datasets.tables.formats import FORMATS, ending

ENDINGS = ", ".join(FORMATS)

DOCUMENTS = ("readme", "license", "licence", "changelog", "thumbs.db", "desktop.ini", ".", "~$")
"""Beginnings of the names of files that often lie beside data but contain none."""

NOT_TABLES = (
    *(".md", ".rst", ".html", ".pdf", ".docx", ".py", ".ipynb", ".sh", ".yaml", ".yml", ".toml", ".log"),
    *(".png", ".jpg", ".jpeg", ".svg"),
)
"""Endings of the names of such files."""

SHOWN = 3
"""The largest number of names in a note."""


def table_files(path: str | Path | Sequence[str | Path]) -> tuple[list[Path], list[str]]:
    """Return the files sorted by name, and notes on other content of their folder."""
    notes: list[str] = []
    if not isinstance(path, str | Path):
        found = [Path(name).expanduser() for name in path]
    elif str(path) and (place := Path(path).expanduser()).is_dir():
        found, notes = _in_folder(place)
    else:
        place = Path(path).expanduser()
        matching = [Path(name) for name in sorted(glob.glob(str(place))) if Path(name).is_file()]
        found = [place] if place.is_file() else matching
    if not found:
        raise InvalidValue("data", str(path), f"an existing file, folder of files or pattern; files end in {ENDINGS}")
    for file in found:
        if not ending(file):
            raise InvalidValue("data", str(file), f"a file that ends in {ENDINGS}; save it as one of these")
    return found, notes


def site_of(file: Path) -> str:
    """Return the name of the site that a file belongs to."""
    return file.name[: len(file.name) - len(ending(file))]


def listed(names: Iterable[str]) -> str:
    """List names; if there are many, list the first and the number of the others."""
    every = list(names)
    more = f" and {len(every) - SHOWN} more" if len(every) > SHOWN else ""
    return list_names(every[:SHOWN]) + more


def _in_folder(folder: Path) -> tuple[list[Path], list[str]]:
    """Return the tables in a folder, and a note on content that is clearly no table; raise for any other file."""
    tables, others = [], []
    for entry in sorted(folder.iterdir()):
        if entry.is_dir():
            inside = next((file for file in sorted(entry.iterdir()) if ending(file)), None)
            if inside:
                raise FedcsoError(
                    f"{inside} is a table inside a folder of {folder}: move it to {folder}, one file for each site"
                )
            others.append(entry.name + "/")
        elif _is_document(entry.name.lower()):
            others.append(entry.name)
        elif ending(entry):
            tables.append(entry)
        else:
            raise FedcsoError(f"{entry} can't be read as a table: save it as {ENDINGS}, or move it out of the folder")
    return tables, [f"left out of {folder}, because they are not tables: {listed(others)}"] if others else []


def _is_document(name: str) -> bool:
    return name.startswith(DOCUMENTS) or name.endswith(NOT_TABLES)
