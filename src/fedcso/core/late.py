"""Names of a package that are imported when they are first used, so that importing the package stays fast (PEP 562)."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def importer(package: str, places: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a `__getattr__` for a package; `places` says the module of each name."""

    def find(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(places[name]), name)

    return find
