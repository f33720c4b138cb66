"""Read a user's table of classes: at which client each is, and whether it is for training, validation or testing."""

from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from fedcso.core.errors import FedcsoError, InvalidValue, UnknownName
from fedcso.datasets.tables.delimited import read_text
from fedcso.datasets.tables.formats import DELIMITED, UNREADABLE, ending

CLASS, CLIENT, PART = "class", "client", "part"
PARTS = ("train", "validation", "test")


class ClassTable(NamedTuple):
    """The client and the part of each class; empty if the table has no such column."""

    clients: dict[str, str]
    parts: dict[str, str]


def read_class_table(file: Path, classes: Collection[str], folder: Path) -> ClassTable:
    """Read a CSV file with the columns class and client, part or both; raise unless it has each class once."""
    rows = _rows(file)
    seen: set[str] = set()
    table = ClassTable({}, {})
    for number, row in enumerate(rows, start=1):
        where, name = f"in row {number} of {file}", row[CLASS]
        if name not in classes:
            raise UnknownName(f"class {where} (a folder in {folder})", name, classes)
        if name in seen:
            raise FedcsoError(f"class {name!r} is there again {where}: keep one row for each class")
        seen.add(name)
        part = row.get(PART, PARTS[0])
        if part not in PARTS:
            raise InvalidValue(f"part {where}", part, f"one of {', '.join(PARTS)}")
        if PART in row:
            table.parts[name] = part
        if CLIENT in row:
            if not row[CLIENT] and part == PARTS[0]:
                raise FedcsoError(f"class {name!r} has no client {where}: name one")
            table.clients[name] = row[CLIENT]
    missing = [name for name in classes if name not in seen]
    if missing:
        raise FedcsoError(
            f"class {missing[0]!r} of {folder} has no row in {file}: add one, or move the folder of the class away"
        )
    return table


def _rows(file: Path) -> list[dict[str, str]]:
    """Return the rows of the table as they are written, without other columns."""
    if not file.is_file() or ending(file) not in DELIMITED:
        raise InvalidValue("class_table", str(file), f"a file that ends in {', '.join(DELIMITED)}")
    try:
        frame = read_text(file, [CLASS])
    except UNREADABLE as error:
        raise FedcsoError(f"{file} can't be read ({' '.join(str(error).split())}): save it as CSV") from error
    if CLASS not in frame.columns:
        names = ", ".join(frame.columns)
        raise FedcsoError(f"{file} has no column {CLASS!r} with the names of the classes' folders (it has {names})")
    used = [name for name in (CLASS, CLIENT, PART) if name in frame.columns]
    if len(used) == 1:
        raise FedcsoError(
            f"{file} has neither a column {CLIENT!r} nor a column {PART!r}: add one of them, or leave out --class-table"
        )
    return [{name: str(row[name]).strip() for name in used} for row in frame.to_dict("records")]
