"""The roles of a table's columns, as given by the user."""

import csv
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from fedcso.core.errors import InvalidValue, UnknownName
from fedcso.datasets.tables.files import listed


@dataclass(frozen=True)
class Roles:
    """The columns with the label and the site, and those to learn from."""

    label: str
    site: str = ""
    drop: tuple[str, ...] = ()
    """Columns to leave out."""
    columns: tuple[str, ...] = ()
    """The only columns to learn from, even if they look like identifiers; if empty, all columns."""

    def __post_init__(self) -> None:
        if self.label and self.site == self.label:
            raise InvalidValue("site", self.site, "another column than the label")
        for name in (self.label, self.site):
            if name and name in self.drop:
                raise InvalidValue("drop", name, "a column to learn from, and this one is the label or the site")
        both = [name for name in self.drop if name in self.columns]
        if both:
            raise InvalidValue("drop", both[0], "a column that is not named by --columns too")

    def features(self, names: Iterable[str]) -> list[str]:
        """Return which of these columns to learn from."""
        taken = {self.label, self.site, "", *self.drop}
        return [name for name in names if name not in taken and (not self.columns or name in self.columns)]

    def require_known(self, names: Iterable[str]) -> None:
        """Raise if no file has a column that is to be left out or used."""
        known = list(names)
        for name in (*self.drop, *self.columns):
            if name not in known:
                raise UnknownName("column", name, [known_name for known_name in known if known_name])


def names_of(written: str | Sequence[str]) -> tuple[str, ...]:
    """Split names separated by commas; a name that contains a comma is in double quotes."""
    if not isinstance(written, str):
        return tuple(written)
    fields = next(csv.reader([written], skipinitialspace=True), [])
    return tuple(name for field in fields if (name := field.strip()))


def in_common(tables: Sequence[tuple[str, Collection[str]]]) -> tuple[list[str], list[str]]:
    """Return the columns to use of tables with different columns, each given as (name, columns), and notes.

    In tables that lack a column, its values are missing; a column that only one table has is left out.
    """
    every = dict.fromkeys(name for _, columns in tables for name in columns)
    kept, notes = [], []
    for name in every:
        holders = [table for table, columns in tables if name in columns]
        lacking = [table for table, columns in tables if name not in columns]
        if lacking and len(holders) == 1:
            notes.append(f"{name}: left out, because only {holders[0]} has this column")
            continue
        kept.append(name)
        if lacking:
            notes.append(f"{name}: there is no such column in {listed(lacking)}; its values are missing there")
    return kept, notes
