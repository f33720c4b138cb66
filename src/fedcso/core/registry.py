"""Tables of methods, problems, estimators and the like by name. To add one, write its file and one row."""

from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module
from types import ModuleType
from typing import Any, TypeVar

from fedcso.core.definition import Definition, Imported, Written
from fedcso.core.errors import UnknownName

T = TypeVar("T")

ADDED = ""
"""The row of an object that a program has added."""


class Registry(MutableMapping[str, T]):
    """Objects of one kind by name, each imported when it is first used.

    A row says in which module of the table's package an object is defined, and under which name:

        ALGORITHMS: Registry[type[Algorithm]] = Registry("algorithm", __name__, {"FCSG-M": "fcsg_m:FCSGM"})

    Users name objects in their own files in the same form (`path.py:name`). A name that is not in the table raises
    `UnknownName`, which suggests the nearest ones. A program can add objects: `ALGORITHMS["Mine"] = Mine`.
    """

    def __init__(self, kind: str, package: str, rows: Mapping[str, str]):
        self.kind = kind
        self._package = package
        self._rows = dict(rows)
        self._groups: dict[str, str] = {}
        self._loaded: dict[str, T] = {}

    @classmethod
    def grouped(cls, kind: str, package: str, groups: Mapping[str, Mapping[str, str]]) -> "Registry[T]":
        """Return a table whose rows stand in groups: {title of a group: rows}."""
        found: Registry[T] = cls(kind, package, {name: row for rows in groups.values() for name, row in rows.items()})
        found._groups = {name: title for title, rows in groups.items() for name in rows}
        return found

    def groups(self) -> dict[str, list[str]]:
        """Return the names by the titles of their groups; the title is empty for those without a group."""
        found: dict[str, list[str]] = {}
        for name in self:
            found.setdefault(self._groups.get(name, ""), []).append(name)
        return found

    def __getitem__(self, name: str) -> T:
        if name in self._loaded:
            return self._loaded[name]
        if name not in self._rows:
            raise UnknownName(self.kind, name, self)
        self._loaded[name] = getattr(self.module(name), self._rows[name].partition(":")[2])
        return self._loaded[name]

    def __setitem__(self, name: str, loaded: T) -> None:
        self._rows[name] = ADDED
        self._loaded[name] = loaded

    def __delitem__(self, name: str) -> None:
        if name not in self:
            raise UnknownName(self.kind, name, self)
        self._loaded.pop(name, None)
        del self._rows[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, name: object) -> bool:  # without loading anything
        return isinstance(name, str) and name in self._rows

    def module(self, name: str) -> ModuleType:
        """Return the module in which an object is defined."""
        row = self._rows.get(name)
        return import_module(f"{self._package}.{row.partition(':')[0]}" if row else self[name].__module__)

    def definition(self, name: str) -> Definition:
        """Return what the definition of an object says, without importing it if it is in the table."""
        row = self._rows.get(name)
        file, _, attribute = (row or "").partition(":")
        return Written(f"{self._package}.{file}", attribute) if row else Imported(self[name])

    def package_attribute(self, name: str) -> Any:
        """Return a class defined in one of the table's modules, or a module: `from fedcso.algorithms import FCSG`.

        To be called by the package's `__getattr__`; raise `AttributeError` if there is no such name.
        """
        modules = dict.fromkeys(row.partition(":")[0] for row in self._rows.values() if row != ADDED)
        if name in modules:
            return import_module(f"{self._package}.{name}")
        for file in modules:
            module = import_module(f"{self._package}.{file}")
            found = vars(module).get(name)
            if isinstance(found, type) and found.__module__ == module.__name__:
                return found
        raise AttributeError(f"module {self._package!r} has no attribute {name!r}")
