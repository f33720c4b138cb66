"""Tables of what there is, by name. A new method, problem, estimator, … is its file and one row."""

from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module
from types import ModuleType
from typing import Any, TypeVar

from fedcso.core.errors import UnknownName

T = TypeVar("T")


class Registry(MutableMapping[str, T]):
    """Things of one kind by name, each loaded when it is first asked for.

    A row says in which file of the table's package a thing is defined, and under which name:

        ALGORITHMS: Registry[type[Algorithm]] = Registry("algorithm", __name__, {"FCSG-M": "fcsg_m:FCSGM"})

    That is the form in which users name what is in their own files (`path.py:name`). Asking for a name that is not in
    the table raises `UnknownName`, which suggests the nearest ones. A program may also add a thing that it has made:
    `ALGORITHMS["Mine"] = Mine`.
    """

    def __init__(self, kind: str, package: str, rows: Mapping[str, str]):
        self.kind = kind
        self._package = package
        self._places = dict(rows)
        self._things: dict[str, T] = {}

    def __getitem__(self, name: str) -> T:
        if name in self._things:
            return self._things[name]
        if name not in self._places:
            raise UnknownName(self.kind, name, self)
        self._things[name] = getattr(self.file(name), self._places[name].partition(":")[2])
        return self._things[name]

    def __setitem__(self, name: str, thing: T) -> None:
        self._things[name] = thing

    def __delitem__(self, name: str) -> None:
        if name not in self:
            raise UnknownName(self.kind, name, self)
        self._things.pop(name, None)
        self._places.pop(name, None)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self._places, *self._things)))

    def __len__(self) -> int:
        return len(self._places.keys() | self._things.keys())

    def __contains__(self, name: object) -> bool:  # without loading anything
        return name in self._places or name in self._things

    def file(self, name: str) -> ModuleType:
        """Return the module in which a thing is defined."""
        place = self._places.get(name)
        return import_module(f"{self._package}.{place.partition(':')[0]}" if place else self[name].__module__)

    def exported(self, name: str) -> Any:
        """Return a class that one of the table's files defines, or such a file: `from fedcso.algorithms import FCSG`.

        For the `__getattr__` of a package whose names come from its table; raise `AttributeError` if there is none.
        """
        files = dict.fromkeys(place.partition(":")[0] for place in self._places.values())
        if name in files:
            return import_module(f"{self._package}.{name}")
        for file in files:
            module = import_module(f"{self._package}.{file}")
            found = vars(module).get(name)
            if isinstance(found, type) and found.__module__ == module.__name__:
                return found
        raise AttributeError(f"module {self._package!r} has no attribute {name!r}")
